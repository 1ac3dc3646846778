package system

import (
	"context"
	"log/slog"
	"net/http"
)

// TraceHeader carries a request's trace id from hop to hop.
const TraceHeader = "X-Trace-Id"

const maxTraceID = 64

type traceKey struct{}

func withTrace(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, traceKey{}, id)
}

func traceID(ctx context.Context) string {
	id, _ := ctx.Value(traceKey{}).(string)
	return id
}

// requestTrace takes the caller's trace id if it is a decent one, else a new one.
func (s *Shop) requestTrace(r *http.Request) string {
	if id := r.Header.Get(TraceHeader); isName(id, maxTraceID) {
		return id
	}
	return s.env.NewID()
}

// log is the logger for one request or run.
func (s *Shop) log(ctx context.Context) *slog.Logger {
	return s.env.Log.With("instance", s.cfg.Instance, "trace", traceID(ctx))
}
