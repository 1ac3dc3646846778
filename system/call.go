package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// caller calls other services. Its calls end within Config.CallTimeout, and are never made while a transaction is open.
type caller struct {
	cfg Config
	env Env
}

// callError is an answer that refuses: the other side has understood us, and says no.
type callError struct {
	path    string
	status  int
	code    string // the other side's stable word for it; empty if it has none
	message string
}

func (e *callError) Error() string {
	return fmt.Sprintf("%s answered status %d %s: %.200s", e.path, e.status, e.code, e.message)
}

// refusedAs reports whether the other side has refused a call for one of these reasons.
func refusedAs(err error, codes ...string) bool {
	var refusal *callError
	if !errors.As(err, &refusal) {
		return false
	}
	for _, code := range codes {
		if refusal.code == code {
			return true
		}
	}
	return false
}

// post sends one request and reads its answer whole within the call's time. After an error that is no *callError the
// other side may have done what was asked, or not.
func (c caller) post(ctx context.Context, base, path string, request, answer any) error {
	if err := refuseStalled(ctx, base); err != nil {
		return err
	}
	ctx, cancel := c.env.Clock.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	status, text, err := c.exchange(ctx, base+path, request)
	if err != nil {
		noteStall(ctx, base, err)
		return fmt.Errorf("call %s: %w", path, err)
	}
	if status != http.StatusOK {
		refusal := &callError{path: path, status: status, message: string(text)}
		var body httpjson.ErrorBody
		if json.Unmarshal(text, &body) == nil {
			refusal.code, refusal.message = body.Error.Code, body.Error.Message
		}
		return refusal
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("answer of %s: %w", path, err)
	}
	return nil
}

func (c caller) exchange(ctx context.Context, url string, request any) (int, []byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(TraceHeader, traceID(ctx))
	reply, err := c.env.HTTP.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	text, err := httpjson.ReadBody(reply.Body)
	var refusal *httpjson.Error
	if errors.As(err, &refusal) { // it is about the other side's answer, and must not become ours
		err = errors.New(refusal.Error())
	}
	return reply.StatusCode, text, err
}

// maxStalls is how many calls of one service may run out of time within one run of a job. After that the run passes
// over what needs this service, so that it doesn't keep everything else waiting.
const maxStalls = 3

type stallsKey struct{}

// withStalls starts the count for one run of a job.
func withStalls(ctx context.Context) context.Context {
	return context.WithValue(ctx, stallsKey{}, map[string]int{})
}

func refuseStalled(ctx context.Context, service string) error {
	stalls, _ := ctx.Value(stallsKey{}).(map[string]int)
	if stalls[service] >= maxStalls {
		return fmt.Errorf("%s has not answered %d times in this run", service, maxStalls)
	}
	return nil
}

func noteStall(ctx context.Context, service string, err error) {
	stalls, _ := ctx.Value(stallsKey{}).(map[string]int)
	var slow net.Error
	if stalls != nil && errors.As(err, &slow) && slow.Timeout() {
		stalls[service]++
	}
}
