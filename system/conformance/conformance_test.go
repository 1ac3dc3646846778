package conformance_test

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/conformance"
)

// world is a faultless implementation in the virtual time of synctest, and by its flaws a faulty one.
type world struct {
	ctx   context.Context
	flaw  string
	mu    sync.Mutex
	next  int64
	locks map[string]lock
	keys  map[string]time.Time
	subs  map[string]func(context.Context, system.Message) error
}

type lock struct {
	system.Lease
	until time.Time
}

func (w *world) Now() time.Time { return time.Now() }

func (w *world) Sleep(ctx context.Context, d time.Duration) error {
	if w.flaw == "short sleep" {
		d /= 2
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		if w.flaw == "deaf sleep" {
			return nil
		}
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func (w *world) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if w.flaw == "no timeout" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func (w *world) Go(_ string, run func(context.Context)) {
	if w.flaw == "waits" {
		run(w.ctx)
		return
	}
	go run(w.ctx)
}

func (w *world) Every(_ string, interval time.Duration, run func(context.Context)) {
	if w.flaw == "slow loop" {
		interval *= 2
	}
	go func() {
		for {
			select {
			case <-w.ctx.Done():
				return
			case <-time.After(interval):
			}
			if w.flaw == "overlap" {
				go run(w.ctx)
			} else {
				run(w.ctx)
			}
		}
	}()
}

func (w *world) Publish(_ context.Context, topic, key string, body []byte, delay time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	m := system.Message{ID: strconv.FormatInt(w.next, 10), Topic: topic, Key: key, Body: bytes.Clone(body)}
	handle := w.subs[topic]
	switch w.flaw {
	case "early message":
		delay = 0
	case "shared body":
		m.Body = body
	case "same id":
		m.ID = "1"
	}
	time.AfterFunc(delay+time.Millisecond, func() {
		for handle(w.ctx, m) != nil && w.flaw != "no redelivery" && w.ctx.Err() == nil {
			if time.Sleep(time.Second); w.flaw == "new id" {
				m.ID += "x"
			}
		}
	})
	return nil
}

func (w *world) Subscribe(topic string, handle func(context.Context, system.Message) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subs[topic] = handle
}

func (w *world) Acquire(_ context.Context, name, owner string, ttl time.Duration) (system.Lease, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.locks[name]
	if time.Now().Before(old.until) && w.flaw != "two owners" {
		return system.Lease{}, false, nil
	}
	lease := system.Lease{Name: name, Owner: owner, Token: old.Token + 1}
	if w.flaw == "same token" {
		lease.Token = 1
	}
	if w.flaw == "eternal lease" {
		ttl = time.Hour
	}
	w.locks[name] = lock{lease, time.Now().Add(ttl)}
	return lease, true, nil
}

func (w *world) Release(_ context.Context, l system.Lease) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.locks[l.Name]; old.Lease == l || w.flaw == "freed by strangers" {
		old.until = time.Time{}
		w.locks[l.Name] = old
	}
	return nil
}

func (w *world) Held(_ context.Context, l system.Lease) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.locks[l.Name]
	return old.Lease == l && time.Now().Before(old.until), nil
}

func (w *world) Expire(_ context.Context, key string, ttl time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.keys[key]; !known || w.flaw != "first setting" {
		w.keys[key] = time.Now().Add(ttl)
	}
	return nil
}

func (w *world) OnExpire(prefix string, handle func(context.Context, string)) {
	w.Every("", 10*time.Millisecond, func(ctx context.Context) {
		w.mu.Lock()
		var ended []string
		for key, until := range w.keys {
			if (strings.HasPrefix(key, prefix) || w.flaw == "any prefix") && !time.Now().Before(until) {
				ended = append(ended, key)
				delete(w.keys, key)
			}
		}
		w.mu.Unlock()
		for _, key := range ended {
			handle(ctx, key)
			if w.flaw == "twice" {
				handle(ctx, key)
			}
		}
	})
}

func check(t *testing.T, flaw string) (err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{
			ctx: ctx, flaw: flaw, locks: map[string]lock{}, keys: map[string]time.Time{},
			subs: map[string]func(context.Context, system.Message) error{},
		}
		err = conformance.Check(t.Context(), conformance.Subject{Clock: w, Loops: w, Broker: w, Leases: w, Unit: time.Second})
		cancel()
	})
	return err
}

func TestTheFaultlessPasses(t *testing.T) { require.NoError(t, check(t, "")) }

func TestEachFlawIsSeen(t *testing.T) {
	for flaw, want := range map[string]string{
		"short sleep":        "clock: slept",
		"deaf sleep":         "clock: a sleep over its deadline returns",
		"no timeout":         "clock: a context with a timeout has the deadline",
		"waits":              "loops: a task waited for another one",
		"slow loop":          "loops: in 8 intervals a loop ran",
		"overlap":            "loops: two runs of one loop ran at once",
		"early message":      "broker: a message delayed by",
		"shared body":        "broker: published",
		"same id":            "broker: two messages have the IDs",
		"new id":             "broker: a message that comes again has the ID",
		"no redelivery":      "broker: a message whose handler failed came 1 times",
		"two owners":         "leases: a name was granted to two owners",
		"same token":         "leases: the token went from 1 to 1",
		"eternal lease":      "never ends",
		"freed by strangers": "leases: a stranger freed a name",
		"first setting":      "leases: a key that ends after",
		"any prefix":         "leases: a key of another prefix",
		"twice":              "leases: the end of a key was notified twice",
	} {
		t.Run(flaw, func(t *testing.T) { require.ErrorContains(t, check(t, flaw), want) })
	}
}
