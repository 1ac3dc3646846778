package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/conformance"
)

func TestRealClockAndLoopsConform(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	loops := &realLoops{ctx: ctx}
	require.NoError(t, conformance.Check(ctx, conformance.Subject{Clock: realClock{}, Loops: loops, Unit: 200 * time.Millisecond}))
	cancel()
	require.True(t, loops.wait(10*time.Second))
	loops.Go("late", func(context.Context) { t.Error("work began after the end") })
	require.True(t, loops.wait(time.Second))
}

func TestInsideTransport(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + string(body)))
	})
	outside := httptest.NewServer(echo)
	defer outside.Close()
	client := &http.Client{Transport: &insideTransport{
		handlers: map[string]http.Handler{"in.till.invalid": echo}, network: http.DefaultTransport,
	}}
	for _, base := range []string{"http://in.till.invalid", outside.URL} {
		reply, err := client.Post(base+"/a", "text/plain", strings.NewReader("b"))
		require.NoError(t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, "POST /a b", string(body))
		require.Equal(t, http.StatusTeapot, reply.StatusCode)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://in.till.invalid/", nil)
	require.NoError(t, err)
	_, err = client.Do(r)
	require.ErrorIs(t, err, context.Canceled)
}

func TestMoreThanTheLimitIsToldToComeAgain(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	handler := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}), slog.New(slog.DiscardHandler)).Handler
	var group sync.WaitGroup
	for range maxInFlight {
		group.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) })
		<-entered
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), "overloaded")
	close(release)
	group.Wait()
}
