// Package httpjson is the one way in which the services of the system read requests and write answers: JSON both ways,
// bounded bodies, and errors of the shape {"error":{"code":"amount_invalid","message":"..."}} with a stable code.
package httpjson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// MaxBodyBytes bounds every body that is read, of requests and of other services' answers.
const MaxBodyBytes = 64 << 10

// Error is an answer that refuses a request: an HTTP status, a code for programs and a message for people.
type Error struct {
	Status  int
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Errorf makes an Error.
func Errorf(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// ReadBody reads a whole body of at most MaxBodyBytes. A larger one is a 413 body_too_large, one that breaks off a
// 400 body_unreadable.
func ReadBody(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, MaxBodyBytes+1))
	switch {
	case err != nil:
		return nil, Errorf(http.StatusBadRequest, "body_unreadable", "the body could not be read: %v", err)
	case len(body) > MaxBodyBytes:
		return nil, Errorf(http.StatusRequestEntityTooLarge, "body_too_large", "a body has at most %d bytes", MaxBodyBytes)
	}
	return body, nil
}

// Write answers with value as JSON.
func Write(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"no answer"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone away asks again
}

// AsError is the answer that an error stands for. What isn't an *Error is our own trouble, told without its inside: a
// 503 busy when the database's lock or time for the request couldn't be had, which passes, else a 500 internal.
func AsError(err error) *Error {
	var refusal *Error
	switch {
	case errors.As(err, &refusal):
		return refusal
	case sqldb.IsBusy(err), errors.Is(err, context.DeadlineExceeded):
		return Errorf(http.StatusServiceUnavailable, "busy", "the database is busy; try again")
	}
	return Errorf(http.StatusInternalServerError, "internal", "the request failed here; try it again")
}

// WriteError answers with an error, and after a 503 tells when to come again.
func WriteError(w http.ResponseWriter, err error) {
	answer := AsError(err)
	if answer.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	Write(w, answer.Status, ErrorBody{Error: ErrorDetail{Code: answer.Code, Message: answer.Message}})
}

// ErrorBody is the JSON shape of every answer that refuses or fails.
type ErrorBody struct {
	Error ErrorDetail `json:"error"`
}

// ErrorDetail is what an ErrorBody says.
type ErrorDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
