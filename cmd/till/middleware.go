package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/httpjson"
)

// limited works on a bounded number of requests at once, each for a bounded time.
func limited(next http.Handler) http.Handler {
	places := make(chan struct{}, maxInFlight)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			httpjson.WriteError(w, httpjson.Errorf(http.StatusServiceUnavailable, "overloaded", "too many requests at once; come again"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestPatience)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// logged gives each request a trace id, unless it brings one, and logs how it ended.
func logged(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(system.TraceHeader) == "" {
			r.Header.Set(system.TraceHeader, newID())
		}
		w.Header().Set(system.TraceHeader, r.Header.Get(system.TraceHeader))
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		start := time.Now()
		next.ServeHTTP(seen, r)
		log.Info("request", "method", r.Method, "path", r.URL.Path, "status", seen.status,
			"ms", time.Since(start).Milliseconds(), "trace", w.Header().Get(system.TraceHeader))
	})
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}
