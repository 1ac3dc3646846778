package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// rivals lets "first" acquire a lease of a minute at 0 s and "second" at 10 s. Each
// notes what it got, and at 20 s whether it has it.
func rivals(t *testing.T, f *faults) []string {
	w := newWorld(t, with(f))
	leases := w.Leases("leases")
	for i, name := range []string{"first", "second"} {
		w.task(name, func(p *sim.Process) {
			l := p.Leases(leases)
			must(0, p.Clock().Sleep(background, time.Duration(i)*10*time.Second))
			lease, ok, err := l.Acquire(background, "scan", name, time.Minute)
			note(p, "got", []any{ok, lease.Token, err})
			must(0, p.Clock().Sleep(background, 20*time.Second-w.Now()))
			if !ok {
				return
			}
			held, err := l.Held(background, lease)
			note(p, "has", []any{held, err})
			if name == "second" {
				note(p, "released", l.Release(background, lease))
				return
			}
			must(0, p.Clock().Sleep(background, time.Second))
			held, err = l.Held(background, lease)
			note(p, "still", []any{held, err})
		})
	}
	w.Run(time.Minute)
	return w.notes()
}

// A lease has one owner, unless a fault gives it to two or ends it early.
func TestLeaseFaults(t *testing.T) {
	const acquisition = "/boot#1/acquire scan:before"
	for name, c := range map[string]struct {
		faults *faults
		want   []string
	}{
		"no fault": {nil, []string{
			"10ms first/boot#1 got: [true 1 <nil>]", "10.01s second/boot#1 got: [false 0 <nil>]",
			"20.01s first/boot#1 has: [true <nil>]", "21.02s first/boot#1 still: [true <nil>]",
		}},
		"granted to both": {strikeAt("second"+acquisition, sim.Strike{Grant: true}), []string{
			"10ms first/boot#1 got: [true 1 <nil>]", "10.01s second/boot#1 got: [true 2 <nil>]",
			"20.01s first/boot#1 has: [true <nil>]", "20.01s second/boot#1 has: [true <nil>]",
			"20.02s second/boot#1 released: <nil>", // only its own
			"21.02s first/boot#1 still: [true <nil>]",
		}},
		"ends early": {strikeAt("first"+acquisition, sim.Strike{Ends: 5 * time.Second}), []string{
			"10ms first/boot#1 got: [true 1 <nil>]", "10.01s second/boot#1 got: [true 2 <nil>]",
			"20.01s first/boot#1 has: [false <nil>]", "20.01s second/boot#1 has: [true <nil>]",
			"20.02s second/boot#1 released: <nil>", "21.02s first/boot#1 still: [false <nil>]",
		}},
		"does not end late": {strikeAt("first"+acquisition, sim.Strike{Ends: time.Hour}), []string{
			"10ms first/boot#1 got: [true 1 <nil>]", "10.01s second/boot#1 got: [false 0 <nil>]",
			"20.01s first/boot#1 has: [true <nil>]", "21.02s first/boot#1 still: [true <nil>]",
		}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, rivals(t, c.faults)) })
	}
}

// A lease ends by itself at its time, and Ends makes that no later.
func TestLeaseEnds(t *testing.T) {
	for ends, want := range map[time.Duration]bool{0: true, 4 * time.Second: false, time.Hour: true} {
		w := newWorld(t, with(strikeAt("n/boot#1/acquire scan:before", sim.Strike{Ends: ends})))
		leases := w.Leases("leases")
		w.task("n", func(p *sim.Process) {
			l := p.Leases(leases)
			lease, _, err := l.Acquire(background, "scan", "n", 10*time.Second)
			require.NoError(t, err)
			for _, at := range []time.Duration{9 * time.Second, 11 * time.Second} {
				must(0, p.Clock().Sleep(background, at-w.Now()))
				note(p, "held", must(l.Held(background, lease)))
			}
		})
		w.Run(time.Minute)
		require.Len(t, w.notes(), 2)
		require.Equal(t, want, strings.HasSuffix(w.notes()[0], "true"), ends)
		require.Contains(t, w.notes()[1], "held: false", ends)
	}
}

// A step of an acquisition tells whether the name is taken.
func TestStepTellsOfATakenLease(t *testing.T) {
	var taken []string
	f := &faults{step: func(s sim.Step) sim.Strike {
		if s.Taken {
			taken = append(taken, s.Name())
		}
		return sim.Strike{}
	}}
	rivals(t, f)
	require.Equal(t, []string{"second/boot#1/acquire scan:before", "second/boot#1/acquire scan:after"}, taken)
	require.Contains(t, f.seen, "first/boot#1/"+sim.OpAcquire+"scan:before")
}

func TestStepTellsWhatIsDoneUnderALease(t *testing.T) {
	var under []string
	f := &faults{step: func(s sim.Step) sim.Strike {
		if s.Leased {
			under = append(under, s.Name())
		}
		return sim.Strike{}
	}}
	rivals(t, f)
	require.NotEmpty(t, under)
	for _, name := range under {
		require.Contains(t, name, "first/boot#1/", "the second never has it")
		require.NotContains(t, name, "acquire scan:before")
	}
	require.Contains(t, strings.Join(under, "\n"), "first/boot#1/acquire scan:after")

	under = nil
	grant := strikeAt("second/boot#1/acquire scan:before", sim.Strike{Grant: true})
	rivals(t, &faults{step: func(s sim.Step) sim.Strike { f.step(s); return grant.Step(s) }})
	require.Contains(t, strings.Join(under, "\n"), "second/boot#1/release scan:before")
	require.NotContains(t, strings.Join(under, "\n"), "second/boot#1/release scan:after")
}
