package conformance

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/tillstorm/tillstorm/system"
)

// CheckBroker checks that a broker, left in peace, delivers every message unchanged and not too early, and again after
// an error.
func CheckBroker(ctx context.Context, s Subject) error {
	r := &run{Subject: s, ctx: ctx, subject: "broker"}
	r.checkContent()
	r.checkDelay()
	r.checkRedelivery()
	r.checkTopicsApart()
	return r.result()
}

func (r *run) publish(topic, key string, body []byte, delay time.Duration) {
	r.must(r.Broker.Publish(r.ctx, topic, key, body, delay), "publish on "+topic)
}

func (r *run) checkContent() {
	var got log[system.Message]
	r.Broker.Subscribe("conformance-content", func(_ context.Context, m system.Message) error {
		got.add(m)
		return nil
	})
	body := []byte("{\"a\":1}\x00\xff")
	want := bytes.Clone(body)
	r.publish("conformance-content", "A(1)", body, 0)
	body[0] = 'x' // what was published is published
	r.publish("conformance-content", "", nil, 0)
	byKey := map[string]system.Message{}
	complete := r.eventually(func() bool {
		for _, m := range got.all() {
			byKey[m.Key] = m
		}
		return len(byKey) == 2
	})
	if !complete {
		r.expect(false, "of two messages only %d came", len(byKey))
		return
	}
	full, empty := byKey["A(1)"], byKey[""]
	r.expect(full.Topic == "conformance-content", "a message of another topic came: %q", full.Topic)
	r.expect(bytes.Equal(full.Body, want), "published %q, delivered %q", want, full.Body)
	r.expect(len(empty.Body) == 0, "published an empty body, delivered %q", empty.Body)
	r.expect(full.ID != "" && full.ID != empty.ID, "two messages have the IDs %q and %q", full.ID, empty.ID)
}

func (r *run) checkDelay() {
	type arrival struct {
		key string
		at  time.Time
	}
	var got log[arrival]
	r.Broker.Subscribe("conformance-delay", func(_ context.Context, m system.Message) error {
		got.add(arrival{m.Key, r.Clock.Now()})
		return nil
	})
	start := r.Clock.Now()
	r.publish("conformance-delay", "late", nil, 4*r.Unit)
	r.publish("conformance-delay", "soon", nil, 0)
	seen := func(key string) func() bool {
		return func() bool {
			for _, a := range got.all() {
				if a.key == key {
					return true
				}
			}
			return false
		}
	}
	r.expect(r.eventually(seen("soon")), "a message without a delay doesn't come")
	r.expect(r.eventually(seen("late")), "a delayed message doesn't come")
	for _, a := range got.all() {
		// A database counts in whole milliseconds, so that a moment may be missing.
		early := a.key == "late" && a.at.Sub(start) < 4*r.Unit-2*time.Millisecond
		r.expect(!early, "a message delayed by %v came after %v", 4*r.Unit, a.at.Sub(start))
	}
}

func (r *run) checkRedelivery() {
	var got log[system.Message]
	r.Broker.Subscribe("conformance-again", func(_ context.Context, m system.Message) error {
		m.Body = bytes.Clone(m.Body)
		if got.add(m) == 1 {
			return errors.New("conformance: deliver it again")
		}
		return nil
	})
	r.publish("conformance-again", "A", []byte("body"), 0)
	if !r.eventually(func() bool { return got.len() >= 2 }) {
		r.expect(false, "a message whose handler failed came %d times", got.len())
		return
	}
	first, again := got.all()[0], got.all()[1]
	r.expect(first.ID == again.ID, "a message that comes again has the ID %q, then %q", first.ID, again.ID)
	r.expect(bytes.Equal(first.Body, again.Body), "a message that comes again says %q, then %q", first.Body, again.Body)
}

func (r *run) checkTopicsApart() {
	var quick log[string]
	r.Broker.Subscribe("conformance-slow", func(ctx context.Context, _ system.Message) error {
		return r.Clock.Sleep(ctx, 3*patience*r.Unit)
	})
	r.Broker.Subscribe("conformance-quick", func(_ context.Context, m system.Message) error {
		quick.add(m.Key)
		return nil
	})
	r.publish("conformance-slow", "A", nil, 0)
	r.wait(2)
	r.publish("conformance-quick", "B", nil, 0)
	r.expect(r.eventually(func() bool { return quick.len() > 0 }), "a slow handler keeps another topic's messages waiting")
}
