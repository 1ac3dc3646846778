package sim_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// A reset loses the leg that it strikes: of a request, the work is not done; of an
// answer, it is. The client sees the same.
func TestReset(t *testing.T) {
	for leg, worked := range map[string]int{"work#1": 0, "work#1:answer": 1} {
		t.Run(leg, func(t *testing.T) {
			done := 0
			w := call(t, with(onMessage(leg, sim.Passage{Reset: true})), func(w http.ResponseWriter, r *http.Request) {
				done++
			}, func(p *sim.Process) {
				_, err := post(background, p, "http://server/", "")
				require.ErrorIs(t, err, syscall.ECONNRESET)
				note(p, "failed", "")
			})
			require.Equal(t, worked, done)
			require.Len(t, w.notes(), 1)
			require.Len(t, w.story(sim.EventReset), 1)
			require.Contains(t, w.story(sim.EventReset)[0], leg)
		})
	}
}

// three sends three requests from "client" to "server", a second apart, and returns
// when each was delivered, by its name.
func three(t *testing.T, f sim.Faults) (arrivals []string) {
	w := newWorld(t, sim.Config{Naming: work, Faults: f})
	w.Node("server", func(p *sim.Process) {
		p.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { note(p, "handled", "") }))
	})
	w.task("client", func(p *sim.Process) {
		for i := range 3 {
			p.Go("asker"+strconv.Itoa(i), func(ctx context.Context) {
				must(0, p.Clock().Sleep(ctx, time.Duration(i)*time.Second))
				post(ctx, p, "http://server/", "")
			})
		}
	})
	w.Run(time.Hour)
	for _, line := range w.notes() {
		at, task, _ := strings.Cut(strings.TrimSuffix(line, " handled"), " ")
		arrivals = append(arrivals, strings.TrimPrefix(task, "server/")+" "+at)
	}
	return arrivals
}

// A held message lets exactly the next one pass, and comes right behind it.
func TestHold(t *testing.T) {
	const hold = 10 * time.Second
	for name, c := range map[string]struct {
		passages map[string]sim.Passage
		want     []string
	}{
		"nothing held":    {nil, []string{"work#1 5ms", "work#2 1.005s", "work#3 2.005s"}},
		"the first":       {map[string]sim.Passage{"work#1": {Hold: hold}}, []string{"work#2 1.005s", "work#1 1.01s", "work#3 2.005s"}},
		"the cap":         {map[string]sim.Passage{"work#1": {Hold: 200 * ms}}, []string{"work#1 205ms", "work#2 1.005s", "work#3 2.005s"}},
		"nothing follows": {map[string]sim.Passage{"work#3": {Hold: hold}}, []string{"work#1 5ms", "work#2 1.005s", "work#3 12.005s"}},
		"two": {map[string]sim.Passage{"work#1": {Hold: hold}, "work#2": {Hold: hold}},
			[]string{"work#3 2.005s", "work#1 2.01s", "work#2 2.01s"}},
		"the second's cap lets the first go too": {map[string]sim.Passage{"work#1": {Hold: hold}, "work#2": {Hold: 100 * ms}},
			[]string{"work#2 1.105s", "work#1 1.11s", "work#3 2.005s"}},
		"the first's cap does not let the second go": {map[string]sim.Passage{"work#1": {Hold: 1100 * ms}, "work#2": {Hold: hold}},
			[]string{"work#1 1.105s", "work#3 2.005s", "work#2 2.01s"}},
		"not before its own delay": {map[string]sim.Passage{"work#1": {Delay: 1500 * ms, Hold: hold}},
			[]string{"work#2 1.005s", "work#3 2.005s", "work#1 2.01s"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &faults{message: func(m *sim.Message) sim.Passage { return c.passages[m.Name()] }}
			require.Equal(t, c.want, three(t, f))
		})
	}
}

// Only what goes the same way passes: answers don't let requests go.
func TestHoldIsOfOneWay(t *testing.T) {
	f := &faults{message: func(m *sim.Message) sim.Passage {
		return map[string]sim.Passage{"work#2": {Hold: time.Minute}, "work#1:answer": {Delay: 1500 * ms}, "work#3": {Drop: true}}[m.Name()]
	}}
	require.Equal(t, []string{"work#1 5ms", "work#2 1m1.005s"}, three(t, f))
}

// Answers can pass each other too.
func TestHeldAnswer(t *testing.T) {
	w := newWorld(t, with(onMessage("POST /1#1:answer", sim.Passage{Hold: time.Minute})))
	w.Node("server", func(p *sim.Process) { p.Serve(http.HandlerFunc(hello)) })
	w.task("client", func(p *sim.Process) {
		for _, path := range []string{"/1", "/2"} {
			p.Go("ask"+path, func(ctx context.Context) {
				got := must(post(ctx, p, "http://server"+path, ""))
				note(p, "got", got)
			})
		}
	})
	w.Run(time.Hour)
	require.Equal(t, []string{"10ms client/ask/2#1 got: 200 hi", "15ms client/ask/1#1 got: 200 hi"}, w.notes())
}

// A cut way loses what goes over it; the other direction is fine.
func TestCutWay(t *testing.T) {
	for way, worked := range map[string]int{"client>server": 0, "server>client": 1} {
		t.Run(way, func(t *testing.T) {
			done := 0
			w := call(t, sim.Config{Faults: onWay(way, sim.Way{Cut: true})}, func(w http.ResponseWriter, r *http.Request) { done++ },
				func(p *sim.Process) {
					impatient(p)
					must(0, p.Clock().Sleep(background, time.Minute))
					impatient(p)
				})
			require.Equal(t, worked+1, done)
			require.Equal(t, []string{
				`1s client/boot#1 answer: Post "http://server/work": context deadline exceeded`,
				"1m1.01s client/boot#1 answer: 200",
			}, trimmed(w.notes()), "and it is repaired")
			from, to, _ := strings.Cut(way, ">")
			require.Len(t, w.story(sim.EventDrop), 1)
			require.Contains(t, w.story(sim.EventDrop)[0], "the way from "+from+" to "+to+" is cut")
		})
	}
}

func trimmed(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

// A slow way delays each leg that goes over it, and nothing passes anything on it.
func TestSlowWay(t *testing.T) {
	for way, want := range map[string]string{
		"client>server": "110ms", "server>client": "110ms", "client>elsewhere": "10ms",
	} {
		w := call(t, sim.Config{Faults: onWay(way, sim.Way{Slow: 100 * ms})}, hello, ask)
		require.Equal(t, []string{want + " client/boot#1 answer: 200 hi"}, w.notes(), way)
	}
	slow := onWay("client>server", sim.Way{Slow: 3 * time.Second})
	require.Equal(t, []string{"work#1 3.005s", "work#2 4.005s", "work#3 5.005s"}, three(t, slow))
	slow.message = func(m *sim.Message) sim.Passage {
		return map[string]sim.Passage{"work#1": {Hold: time.Minute}}[m.Name()]
	}
	require.Equal(t, []string{"work#2 4.005s", "work#1 4.01s", "work#3 5.005s"}, three(t, slow), "a held message stays behind")
}

// A server that went down while a request was on a slow way to it refuses it.
func TestServerDiesBeforeASlowRequestArrives(t *testing.T) {
	w := newWorld(t, sim.Config{Naming: work, Faults: onWay("client>server", sim.Way{Slow: time.Second})})
	server := w.Node("server", func(p *sim.Process) { p.Serve(http.HandlerFunc(hello)) })
	w.task("client", ask)
	w.At(500*ms, "", func() { server.Crash(time.Hour) })
	w.Run(time.Minute)
	require.Equal(t, []string{`1.01s client/boot#1 answer: Post "http://server/work": dial tcp: connection refused`}, w.notes())
}

// published is a world where "shop" publishes a message that "worker" handles.
func published(t *testing.T, f sim.Faults) *world {
	w := newWorld(t, sim.Config{Faults: f})
	b := w.Broker("broker")
	w.Node("worker", func(p *sim.Process) {
		p.Broker(b).Subscribe("close", func(_ context.Context, d sim.Delivery) error {
			note(p, "handles", d.Key)
			return nil
		})
	})
	w.task("shop", func(p *sim.Process) {
		ctx, cancel := p.Clock().WithTimeout(background, 3*time.Second)
		defer cancel()
		note(p, "published", p.Broker(b).Publish(ctx, "close", "A", nil, time.Second))
	})
	w.Run(time.Hour)
	return w
}

// What goes to a broker, from it and back to it can be lost or late. What it has
// taken, it hands out until a handler's end gets through to it.
func TestWaysOfABroker(t *testing.T) {
	const ok, handled = "10ms shop/boot#1 published: <nil>", "1.01s worker/close(A)#1 handles: A"
	for name, c := range map[string]struct {
		faults *cuts
		want   []string
	}{
		"fine":         {onWay("", sim.Way{}), []string{ok, handled}},
		"cut there":    {onWay("shop>broker", sim.Way{Cut: true}), []string{"3s shop/boot#1 published: context deadline exceeded"}},
		"cut back":     {onWay("broker>shop", sim.Way{Cut: true}), []string{handled, "3s shop/boot#1 published: context deadline exceeded"}},
		"cut delivery": {onWay("broker>worker", sim.Way{Cut: true}), []string{ok, "1m1.01s worker/close(A)#1 handles: A"}},
		"cut acknowledgement": {onWay("worker>broker", sim.Way{Cut: true}), []string{
			ok, handled, "31.01s worker/close(A)#1#2 handles: A", "1m1.01s worker/close(A)#1#3 handles: A"}},
		"slow there":    {onWay("shop>broker", sim.Way{Slow: time.Second}), []string{"1.01s shop/boot#1 published: <nil>", "2.01s worker/close(A)#1 handles: A"}},
		"slow back":     {onWay("broker>shop", sim.Way{Slow: time.Second}), []string{handled, "1.01s shop/boot#1 published: <nil>"}},
		"slow delivery": {onWay("broker>worker", sim.Way{Slow: 40 * time.Second}), []string{ok, "41.01s worker/close(A)#1 handles: A"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.ElementsMatch(t, c.want, published(t, c.faults).notes())
		})
	}
}

// Without a deadline, the silence of a service ends as that of a node does.
func TestSilentService(t *testing.T) {
	w := newWorld(t, sim.Config{Faults: onWay("n>leases", sim.Way{Cut: true})})
	leases := w.Leases("leases")
	w.task("n", func(p *sim.Process) {
		_, ok, err := p.Leases(leases).Acquire(background, "scan", "n", time.Hour)
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		note(p, "acquired", ok)
		_, ok, err = p.Leases(leases).Acquire(background, "scan", "n", time.Hour)
		note(p, "acquired", []any{ok, err})
	})
	w.Run(time.Hour)
	require.Equal(t, []string{"2m0s n/boot#1 acquired: false", "2m0.01s n/boot#1 acquired: [true <nil>]"}, w.notes())
}

// A lease whose grant is lost on the way back is held by one who does not know it.
func TestLostGrant(t *testing.T) {
	w := newWorld(t, sim.Config{Faults: onWay("leases>n", sim.Way{Cut: true})})
	leases := w.Leases("leases")
	w.task("n", func(p *sim.Process) {
		ctx, cancel := p.Clock().WithTimeout(background, time.Second)
		defer cancel()
		lease, ok, err := p.Leases(leases).Acquire(ctx, "scan", "n", time.Hour)
		note(p, "acquired", []any{ok, err})
		must(0, p.Clock().Sleep(background, time.Minute))
		held, err := p.Leases(leases).Held(background, lease)
		note(p, "held", []any{held, err})
	})
	w.task("other", func(p *sim.Process) {
		must(0, p.Clock().Sleep(background, 2*time.Second))
		_, ok, err := p.Leases(leases).Acquire(background, "scan", "other", time.Hour)
		note(p, "acquired", []any{ok, err})
	})
	w.Run(time.Hour)
	require.Equal(t, []string{
		"1s n/boot#1 acquired: [false context deadline exceeded]",
		"2.01s other/boot#1 acquired: [false <nil>]",
		"1m1.01s n/boot#1 held: [true <nil>]",
	}, w.notes())
}
