package sim_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// pauseAt lets the process stand still at the named step.
func pauseAt(name string, d time.Duration) *faults { return strikeAt(name, sim.Strike{Pause: d}) }

// A pause holds up the whole process, its sleeps and its schedule, and no other process.
func TestPauseHoldsUpTheWholeProcess(t *testing.T) {
	w := newWorld(t, with(pauseAt("n/boot#1/sleep:after", time.Minute)))
	for _, name := range []string{"n", "other"} {
		w.task(name, func(p *sim.Process) {
			p.Go("napper", func(ctx context.Context) {
				for range 2 {
					p.Clock().Sleep(ctx, 10*time.Second)
					note(p, "awake", "")
				}
			})
			p.Clock().Sleep(background, time.Second)
			note(p, "up", "")
		})
	}
	w.Run(time.Hour)
	require.Equal(t, []string{"1s n/ n/boot#1/sleep:after: 1m0s"}, w.story(sim.EventPause))
	require.Equal(t, []string{
		"1s other/boot#1 up", "10s other/napper#1 awake", "20s other/napper#1 awake",
		"1m1s n/boot#1 up", "1m1s n/napper#1 awake", "1m11s n/napper#1 awake",
	}, w.notes())
}

// Periodic runs that fall into a pause are made up for by one, which is late and has the
// first one's name.
func TestPauseDelaysPeriodicRuns(t *testing.T) {
	type run struct {
		at   time.Duration
		name string
	}
	var runs []run
	w := newWorld(t, sim.Config{})
	n := w.Node("n", func(p *sim.Process) {
		p.Every("job", 10*time.Second, func(context.Context) {
			p.Note("run", "")
			r := w.Trace().Records
			runs = append(runs, run{w.Now(), r[len(r)-1].Task})
		})
	})
	w.Run(10 * time.Second)
	require.Len(t, runs, 1)
	planned := func(i int) run {
		at := runs[0].at + time.Duration(i)*10*time.Second
		return run{at, "job@" + start.Add(at).Format("15:04:05.000")}
	}
	n.Pause(25 * time.Second)
	w.Run(50 * time.Second)
	require.Equal(t, []run{planned(0), {35 * time.Second, planned(1).name}, planned(4)}, runs[:3])
}

// What arrives meanwhile waits, and is answered afterwards.
func TestPauseLosesNoMessage(t *testing.T) {
	w := newWorld(t, sim.Config{Naming: work})
	server := w.Node("server", func(p *sim.Process) { p.Serve(http.HandlerFunc(hello)) })
	w.task("client", func(p *sim.Process) {
		for i := range 3 {
			p.Go(fmt.Sprint("asker", i), func(ctx context.Context) {
				p.Clock().Sleep(ctx, time.Duration(i)*time.Second)
				answer(ctx, p)
			})
		}
	})
	w.Run(0)
	server.Pause(time.Minute)
	w.Run(time.Hour)
	require.Equal(t, []string{
		"1m0.005s client/asker0#1 answer: 200 hi", "1m0.005s client/asker1#1 answer: 200 hi", "1m0.005s client/asker2#1 answer: 200 hi",
	}, w.notes())
}

// Time goes on during a pause: a deadline may have passed when it ends, and an answer
// that came meanwhile comes too late.
func TestDeadlinePassesDuringAPause(t *testing.T) {
	w := call(t, with(pauseAt("client/boot#1/work:before", 2*time.Second)), hello, impatient)
	require.Equal(t, []string{`2s client/boot#1 answer: Post "http://server/work": context deadline exceeded`}, w.notes())
	require.Empty(t, w.story(sim.EventSend), "the deadline had passed before anything was sent")
}

// A transaction that is open keeps its lock while its process stands still.
func TestPauseKeepsLocks(t *testing.T) {
	w := newWorld(t, with(pauseAt("n/boot#1/TakeA:after", 3*time.Second)))
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		tx := begin(background, p.OpenDB(d, sim.DBOptions{}))
		defer tx.Rollback()
		exec(background, tx, takeA)
		must(0, tx.Commit())
	})
	w.task("other", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		must(0, read(background, db))
		must(0, p.Clock().Sleep(background, time.Second))
		exec(background, db, giveB)
	})
	w.Run(time.Minute)
	require.Equal(t, "A90,B110", w.balances(d))
	require.Greater(t, w.at(sim.EventSQL, "GiveB"), 3*time.Second)
}

// The lease that a process had when it was paused may belong to another when it
// goes on, and it does not know until it asks.
func TestPauseOutlivesALease(t *testing.T) {
	w := newWorld(t, with(pauseAt("slow/boot#1/sleep:before", time.Minute)))
	leases := w.Leases("leases")
	w.task("slow", func(p *sim.Process) {
		l := p.Leases(leases)
		lease, ok, err := l.Acquire(background, "scan", "slow", 15*time.Second)
		note(p, "acquired", []any{lease.Token, ok, err})
		must(0, p.Clock().Sleep(background, time.Second))
		held, err := l.Held(background, lease)
		note(p, "held", []any{held, err})
	})
	w.task("quick", func(p *sim.Process) {
		must(0, p.Clock().Sleep(background, 20*time.Second))
		lease, ok, err := p.Leases(leases).Acquire(background, "scan", "quick", time.Hour)
		note(p, "acquired", []any{lease.Token, ok, err})
	})
	w.Run(time.Hour)
	require.Equal(t, []string{
		"10ms slow/boot#1 acquired: [1 true <nil>]",
		"20.01s quick/boot#1 acquired: [2 true <nil>]",
		"1m1.02s slow/boot#1 held: [false <nil>]",
	}, w.notes())
}

// A pause ends with its process, and one within another does not shorten it.
func TestPauseAndCrash(t *testing.T) {
	w := newWorld(t, sim.Config{})
	n := w.Node("n", func(p *sim.Process) { note(p, "up", "") })
	w.Run(time.Second)
	n.Pause(time.Hour)
	n.Crash(time.Second)
	n.Pause(time.Hour) // of nobody
	w.Run(10 * time.Second)
	require.Equal(t, []string{"0s n/boot#1 up", "2s n/boot#2 up"}, w.notes())

	w = newWorld(t, sim.Config{})
	n = w.Node("n", func(p *sim.Process) { note(p, "up", "") })
	n.Pause(time.Minute)
	n.Pause(time.Second)
	w.Run(time.Hour)
	require.Equal(t, []string{"1m0s n/boot#1 up"}, w.notes())
}
