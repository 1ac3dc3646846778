package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

// deliver plays a shop that publishes a message, for now, to a worker.
func deliver(t *testing.T, plan string) *world {
	return play(t, plan, func(w *world) {
		b := w.Broker("broker")
		w.Node("worker", func(p *sim.Process) {
			p.Broker(b).Subscribe("close", func(_ context.Context, d sim.Delivery) error {
				p.Note("handles", d.ID)
				return nil
			})
		})
		w.Node("shop-1", func(p *sim.Process) {
			err := p.Broker(b).Publish(background, "close", "A", nil, 0)
			p.Note("published", map[bool]string{true: "yes", false: "no"}[err == nil])
		})
	})
}

func TestBrokerLoss(t *testing.T) {
	assert.Equal(t, []string{"10ms shop-1 published: yes", "10ms worker handles: close(A)#1"}, deliver(t, "").notes())
	assert.Equal(t, []string{"10ms shop-1 published: yes"}, deliver(t, "broker loses close(A)#1").notes())
}

func TestBrokerDuplicate(t *testing.T) {
	w := deliver(t, "broker repeats-message close(A)#1 after 20s")
	assert.Equal(t, []string{"10ms shop-1 published: yes", "10ms worker handles: close(A)#1", "20.01s worker handles: close(A)#1"}, w.notes())
}

// The network's delay of a message is one of what the broker hands out.
func TestDelayOfAPublishedMessage(t *testing.T) {
	w := deliver(t, "network delays close(A)#1 by 20s")
	assert.Equal(t, []string{"10ms shop-1 published: yes", "20.01s worker handles: close(A)#1"}, w.notes())
}

func TestExpiryLost(t *testing.T) {
	for plan, want := range map[string][]string{
		"":                                    {"10.01s shop-1 expired: close/A", "20.02s shop-1 expired: close/A"},
		`leases forgets "expired close(A)#1"`: {"20.02s shop-1 expired: close/A"},
	} {
		w := play(t, plan, func(w *world) {
			leases := w.Leases("leases")
			w.Node("shop-1", func(p *sim.Process) {
				l := p.Leases(leases)
				l.OnExpire("close/", func(_ context.Context, key string) { p.Note("expired", key) })
				for range 2 {
					assert.NoError(t, l.Expire(background, "close/A", 10*second))
					assert.NoError(t, p.Clock().Sleep(background, 10*second))
				}
			})
		})
		assert.Equal(t, want, w.notes(), plan)
	}
}

// rivals lets "shop-1" acquire a lease of a minute at 0 s, and "shop-2" at 10 s. Each
// notes at 20 s, if it has been granted the lease, whether it has it.
func rivals(w *world) {
	leases := w.Leases("leases")
	for i, name := range []string{"shop-1", "shop-2"} {
		w.Node(name, func(p *sim.Process) {
			l := p.Leases(leases)
			assert.NoError(w.t, p.Clock().Sleep(background, time.Duration(i)*10*second))
			lease, ok, err := l.Acquire(background, "scan", name, minute)
			assert.NoError(w.t, err)
			assert.NoError(w.t, p.Clock().Sleep(background, 20*second-w.Now()))
			if !ok {
				p.Note("refused", "")
				return
			}
			held, err := l.Held(background, lease)
			assert.NoError(w.t, err)
			p.Note("has it", map[bool]string{true: "yes", false: "no"}[held])
		})
	}
}

func TestLeaseEarly(t *testing.T) {
	for plan, want := range map[string][]string{
		"": {"20s shop-2 refused", "20.01s shop-1 has it: yes"},
		`shop-1 loses-lease "boot#1/acquire scan:before" after 2s`: {"20.01s shop-1 has it: no", "20.01s shop-2 has it: yes"},
		`shop-1 loses-lease "boot#1/acquire scan:before" after 0s`: {"20.01s shop-1 has it: no", "20.01s shop-2 has it: yes"},
	} {
		assert.Equal(t, want, play(t, plan, rivals).notes(), plan)
	}
}

func TestTwoOwners(t *testing.T) {
	w := play(t, `shop-2 shares-lease "boot#1/acquire scan:before"`, rivals)
	assert.Equal(t, []string{"20.01s shop-1 has it: yes", "20.01s shop-2 has it: yes"}, w.notes())
}

// A lease is shared where another has it, and ends early where it was granted; what the
// network does to requests is not what the broker does to messages.
func TestStepsAndMessagesThatServicesDoNotFit(t *testing.T) {
	for _, line := range []string{
		`shop-1 shares-lease "boot#1/acquire scan:before"`,
		`shop-2 loses-lease "boot#1/acquire scan:before" after 1s`,
		`shop-1 loses-lease "boot#1/acquire scan:after" after 1s`,
		`shop-1 loses-lease "boot#1/ask scan:before" after 1s`,
		"network drops close(A)#1",
		"network duplicates close(A)#1 after 1s",
		"broker loses pay(A)#1",
		"broker repeats-message pay(A)#1 after 1s",
		"leases forgets pay(A)#1",
		"leases forgets close(A)#1",
	} {
		plan, err := ParsePlan(line)
		assert.NoError(t, err)
		script := NewScript(plan)
		w := newWorld(t, script)
		rivals(w)
		b := w.Broker("broker")
		w.Node("shop-3", func(p *sim.Process) {
			assert.NoError(t, p.Broker(b).Publish(background, "close", "A", nil, 0))
			post(background, p, "http://shop-1/pay", "A")
		})
		w.Run(minute)
		assert.Equal(t, plan, script.Unreached())
		assert.Contains(t, w.notes(), "20.01s shop-1 has it: yes", line)
	}
}
