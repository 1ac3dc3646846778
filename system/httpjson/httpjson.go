// Package httpjson is the one way in which the services of the system read requests and write answers: JSON both ways,
// bounded bodies, and errors of the shape {"error":{"code":"amount_invalid","message":"..."}} with a stable code.
package httpjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// Decode fills value from body, which must be exactly one JSON object. What isn't is a 400 body_invalid. A field of the
// wrong type is named in the message; fields nobody knows are ignored, so that a channel may add some.
func Decode(body []byte, value any) error {
	if trimmed := bytes.TrimSpace(body); len(trimmed) == 0 || trimmed[0] != '{' {
		return Errorf(http.StatusBadRequest, "body_invalid", "the body must be a JSON object")
	}
	err := json.Unmarshal(body, value) // unlike a Decoder, it refuses what follows the object
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return Errorf(http.StatusBadRequest, "body_invalid", "%s can't be a %s", mismatch.Field, mismatch.Value)
	case err != nil:
		return Errorf(http.StatusBadRequest, "body_invalid", "the body is not JSON: %v", err)
	}
	return nil
}

// Read is ReadBody followed by Decode.
func Read(r *http.Request, value any) error {
	body, err := ReadBody(r.Body)
	if err != nil {
		return err
	}
	return Decode(body, value)
}

// ReadStrict is Read for a body that our own callers write: a field nobody knows is a 400 field_unknown, since a
// misspelt one would otherwise be taken for one that was left out.
func ReadStrict(r *http.Request, value any) error {
	body, err := ReadBody(r.Body)
	if err != nil {
		return err
	}
	if err := Decode(body, value); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return Errorf(http.StatusBadRequest, "field_unknown", "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
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

// WriteError answers with an error. What isn't an *Error is our own trouble, a 500 that tells nothing of the inside.
func WriteError(w http.ResponseWriter, err error) {
	var refusal *Error
	if !errors.As(err, &refusal) {
		refusal = Errorf(http.StatusInternalServerError, "internal", "the request failed here; try it again")
	}
	Write(w, refusal.Status, ErrorBody{Error: ErrorDetail{Code: refusal.Code, Message: refusal.Message}})
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
