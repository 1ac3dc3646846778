package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// The names under which the services inside this process call each other. They never leave it: the ledger of an emulator
// notes where a callback goes, and any instance on the same data can deliver it there, whatever its address.
const (
	shopHost  = "shop.till.invalid"
	stockHost = "stock.till.invalid"
)

func channelHost(name string) string { return name + ".channel.till.invalid" }

// insideTransport hands requests for services of this process to their handlers, and all others to the network.
type insideTransport struct {
	handlers map[string]http.Handler // by host
	network  http.RoundTripper
}

// RoundTrip serves the request in the caller's goroutine. The caller's deadline is in the request's context, which every
// handler watches.
func (t *insideTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	handler, inside := t.handlers[r.URL.Host]
	if !inside {
		return t.network.RoundTrip(r)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	request := r.Clone(r.Context())
	request.RequestURI = r.URL.RequestURI()
	if request.Body == nil {
		request.Body = http.NoBody
	}
	defer request.Body.Close()
	answer := &recorder{header: http.Header{}, status: http.StatusOK}
	handler.ServeHTTP(answer, request)
	if err := r.Context().Err(); err != nil { // too late: the caller has gone away
		return nil, err
	}
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", answer.status, http.StatusText(answer.status)),
		StatusCode: answer.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        answer.header,
		Body:          io.NopCloser(&answer.body),
		ContentLength: int64(answer.body.Len()),
		Request:       r,
	}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorder) Header() http.Header                  { return a.header }
func (a *recorder) WriteHeader(status int)               { a.status = status }
func (a *recorder) Write(text []byte) (n int, err error) { return a.body.Write(text) }
