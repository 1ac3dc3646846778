package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"
)

// realClock is the machine's clock.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (realClock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// realLoops runs background work on goroutines until its context ends. A panic in one ends the process: whoever starts
// it again finds everything in the databases.
type realLoops struct {
	ctx     context.Context
	running sync.WaitGroup
}

// Go runs run once.
func (l *realLoops) Go(_ string, run func(ctx context.Context)) {
	if l.ctx.Err() != nil { // it is taken up by the next start
		return
	}
	l.running.Go(func() { run(l.ctx) })
}

// Every runs run at each multiple of the interval since 1970. A run that outlasts its interval makes the runs meanwhile
// fall out.
func (l *realLoops) Every(name string, interval time.Duration, run func(ctx context.Context)) {
	l.Go(name, func(ctx context.Context) {
		for {
			now := time.Now()
			next := now.Truncate(interval).Add(interval)
			if (realClock{}).Sleep(ctx, next.Sub(now)) != nil {
				return
			}
			run(ctx)
		}
	})
}

// wait waits for everything to end, at most for d, and reports whether it has.
func (l *realLoops) wait(d time.Duration) bool {
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

// newID is a random identifier of 128 bits.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails: crypto/rand ends the process if the system has no randomness
	return hex.EncodeToString(id[:])
}
