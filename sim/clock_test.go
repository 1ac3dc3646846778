package sim_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	_ "time/tzdata" // for machines that have no zone database of their own

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 5: contexts in virtual time.
func TestContextHasNoDoneChannel(t *testing.T) {
	w := newWorld(t, sim.Config{})
	w.task("n", func(p *sim.Process) {
		p.Go("job", func(ctx context.Context) {
			for _, d := range []time.Duration{0, time.Second, 1<<63 - 1} {
				limited, cancel := p.Clock().WithTimeout(ctx, d)
				inner, cancelInner := p.Clock().WithTimeout(limited, time.Hour)
				note(p, "done", []bool{ctx.Done() == nil, limited.Done() == nil, inner.Done() == nil})
				note(p, "err", []any{ctx.Err(), limited.Err(), inner.Err()})
				cancelInner()
				note(p, "err", []any{limited.Err(), inner.Err()})
				child, cancelChild := p.Clock().WithTimeout(limited, time.Hour)
				cancel()
				note(p, "err", []any{ctx.Err(), limited.Err(), child.Err()})
				cancelChild()
			}
		})
	})
	w.Run(time.Second)
	over, canceled := context.DeadlineExceeded.Error(), context.Canceled.Error()
	alive := []string{
		"0s n/job#1 done: [true true true]", "0s n/job#1 err: [<nil> <nil> <nil>]",
		"0s n/job#1 err: [<nil> " + canceled + "]", "0s n/job#1 err: [<nil> " + canceled + " " + canceled + "]",
	}
	require.Equal(t, append(append([]string{
		"0s n/job#1 done: [true true true]", "0s n/job#1 err: [<nil> " + over + " " + over + "]",
		"0s n/job#1 err: [" + over + " " + over + "]", "0s n/job#1 err: [<nil> " + over + " " + over + "]",
	}, alive...), alive...), w.notes())
}

func TestSleepEndsWithItsContext(t *testing.T) {
	w := newWorld(t, sim.Config{})
	w.task("n", func(p *sim.Process) {
		ctx, cancel := p.Clock().WithTimeout(background, time.Second)
		defer cancel()
		note(p, "deadline", p.Clock().Sleep(ctx, time.Hour))
		note(p, "ended", p.Clock().Sleep(ctx, time.Hour))
		note(p, "derived", p.Clock().Sleep(context.WithValue(ctx, t, 1), time.Hour))
		under, stop := context.WithCancel(ctx)
		defer stop()
		note(p, "under", p.Clock().Sleep(under, time.Hour))
		note(p, "without", p.Clock().Sleep(context.WithoutCancel(ctx), time.Hour))
	})
	w.Run(24 * time.Hour)
	over := context.DeadlineExceeded.Error()
	require.Equal(t, []string{
		"1s n/boot#1 deadline: " + over, "1s n/boot#1 ended: " + over, "1s n/boot#1 derived: " + over,
		"1s n/boot#1 under: " + over, "1h0m1s n/boot#1 without: <nil>",
	}, w.notes())
}

// A cancel by another task ends each kind of wait at once.
func TestCancelWakes(t *testing.T) {
	waits := map[string]func(ctx context.Context, p *sim.Process, d *sim.Database) error{
		"sleep": func(ctx context.Context, p *sim.Process, _ *sim.Database) error {
			return p.Clock().Sleep(ctx, time.Hour)
		},
		"request": func(ctx context.Context, p *sim.Process, _ *sim.Database) error {
			_, err := post(ctx, p, "http://server/", "")
			return err
		},
		"lock": func(ctx context.Context, p *sim.Process, d *sim.Database) error {
			return read(ctx, p.OpenDB(d, sim.DBOptions{}))
		},
		"pool": func(ctx context.Context, p *sim.Process, d *sim.Database) error {
			db := p.OpenDB(d, sim.DBOptions{MaxConns: 1})
			defer must(db.Conn(background)).Close()
			return read(ctx, db)
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, with(onMessage("POST /#1", sim.Passage{Drop: true})))
			d, other := w.bank("bank"), w.bank("other")
			w.Node("server", func(p *sim.Process) {})
			w.task("holder", func(p *sim.Process) { hold(p, d, giveB) })
			w.task("n", func(p *sim.Process) {
				if name == "pool" {
					d = other
				}
				must(0, p.Clock().Sleep(background, 1500*ms))
				ctx, cancel := p.Clock().WithTimeout(background, time.Hour)
				p.Go("canceler", func(ctx context.Context) { p.Clock().Sleep(ctx, 500*ms); cancel() })
				err := wait(ctx, p, d)
				require.ErrorIs(t, err, context.Canceled)
				note(p, "ended", "")
			})
			w.Run(time.Minute)
			require.Equal(t, []string{"2s n/boot#1 ended"}, w.notes())
		})
	}
}

// settledGoroutines counts the goroutines once those of earlier worlds have ended.
func settledGoroutines() int {
	n := runtime.NumGoroutine()
	for quiet := 0; quiet < 50; quiet++ {
		time.Sleep(ms)
		if now := runtime.NumGoroutine(); now != n {
			n, quiet = now, 0
		}
	}
	return n
}

// The contexts start no goroutine; database/sql's own of a transaction ends with it.
func TestContextsStartNoGoroutines(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		must(0, read(background, db))
		before := settledGoroutines()
		ctx, cancel := p.Clock().WithTimeout(background, time.Second)
		defer cancel()
		rows := must(db.QueryContext(ctx, readA))
		exec(ctx, db, giveB)
		require.Equal(t, before, runtime.NumGoroutine())
		must(0, rows.Close())
		tx := begin(ctx, db)
		defer tx.Rollback()
		require.Equal(t, before+1, runtime.NumGoroutine()) // Tx.awaitDone waits for Commit or Rollback
		must(0, must(tx.QueryContext(ctx, readA)).Close())
		must(0, tx.Commit())
		require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 10*time.Second, ms) // +1: Eventually's own
		note(p, "done", "")
	})
	w.Run(time.Minute)
	require.Len(t, w.notes(), 1)
}

// A transaction whose context ended is rolled back then, and can't commit.
func TestTransactionEndsWithItsContext(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		ctx, cancel := p.Clock().WithTimeout(background, time.Second)
		defer cancel()
		tx := begin(ctx, p.OpenDB(d, sim.DBOptions{}))
		defer tx.Rollback()
		exec(ctx, tx, takeA)
		must(0, p.Clock().Sleep(background, 2*time.Second))
		_, err := tx.ExecContext(background, giveB)
		note(p, "ended", []any{err, tx.Commit(), tx.Rollback()})
	})
	w.task("other", func(p *sim.Process) {
		must(0, p.Clock().Sleep(background, 500*ms))
		exec(background, p.OpenDB(d, sim.DBOptions{}), "-- name: Other\n"+giveB)
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"2.0004s n/boot#1 ended: [context deadline exceeded context deadline exceeded sql: transaction has already been committed or rolled back]"}, w.notes())
	require.Equal(t, "A100,B110", w.balances(d))
	require.Equal(t, 1001*ms, w.at(sim.EventSQL, "Other"), "the lock was not released when the context ended")
}

// Trap 15: clocks that are wrong.
func TestNodeClock(t *testing.T) {
	w := newWorld(t, sim.Config{})
	n := w.Node("n", func(*sim.Process) {})
	shows := func() time.Duration { return n.Clock.Now().Sub(start) }
	w.Run(time.Hour)
	require.Equal(t, time.Hour, shows())
	n.Clock.Skew(-time.Minute)
	require.Equal(t, 59*time.Minute, shows())
	w.Run(2 * time.Hour)
	require.Equal(t, 119*time.Minute, shows())
	n.Clock.Jump(2 * time.Minute)
	require.Equal(t, 121*time.Minute, shows())
	n.Clock.Drift(1000)
	w.Run(2*time.Hour + 1000*time.Second)
	require.Equal(t, 121*time.Minute+1001*time.Second, shows())
	n.Clock.Drift(0)
	w.Run(3 * time.Hour)
	require.Equal(t, 181*time.Minute+time.Second, shows())
}

// A time server sets a clock right, whatever is wrong with it, but not its zone.
func TestClockIsSetRight(t *testing.T) {
	w := newWorld(t, sim.Config{})
	n := w.Node("n", func(*sim.Process) {})
	n.Clock.Skew(time.Minute)
	n.Clock.Drift(1000)
	n.Clock.Move(time.FixedZone("east", 8*3600))
	w.Run(1000 * time.Second)
	require.Equal(t, time.Minute+1001*time.Second, n.Clock.Now().Sub(start))
	n.Clock.SetRight()
	w.Run(time.Hour)
	require.Equal(t, "2026-03-01 23:00:00 +0800 east", n.Clock.Now().String())
}

// Moving a clock to another zone changes what it shows, not what time it is: the sleep
// under way ends when it would have.
func TestClockMovesToAnotherZone(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York") // summer time begins there a week after the start
	require.NoError(t, err)
	w := newWorld(t, sim.Config{})
	n := w.task("n", func(p *sim.Process) {
		note(p, "shows", p.Clock().Now().Format(time.RFC3339))
		p.Clock().Sleep(background, 7*24*time.Hour)
		note(p, "shows", p.Clock().Now().Format(time.RFC3339))
	})
	w.At(time.Hour, "", func() { n.Clock.Move(zone) })
	w.Run(8 * 24 * time.Hour)
	require.Equal(t, []string{
		"0s n/boot#1 shows: 2026-03-01T14:00:00Z", "168h0m0s n/boot#1 shows: 2026-03-08T10:00:00-04:00",
	}, w.notes())
	require.Equal(t, start.Add(w.Now()).UnixMilli(), n.Clock.Now().UnixMilli())
}

// Whatever the clock has been through, Sleep(d) ends when it shows d more, and not
// before: at the first nanosecond of true time at which it does.
func TestSleepGoesByTheNodeClock(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ppm := rapid.Int64Range(-500_000, 500_000)
		d := rapid.Int64Range(1, int64(100*24*time.Hour))
		w := sim.New(sim.Config{Start: start})
		defer w.Close()
		n := w.Node("n", func(p *sim.Process) {
			before := p.Clock().Now()
			want := time.Duration(d.Draw(rt, "sleep"))
			p.Clock().Sleep(background, want)
			got := p.Clock().Now().Sub(before)
			require.GreaterOrEqual(rt, got, want)
			require.LessOrEqual(rt, got, want+2)
			note(p, "slept", "")
		})
		n.Clock.Drift(ppm.Draw(rt, "ppm before"))
		n.Crash(time.Duration(d.Draw(rt, "boot")))
		n.Clock.Jump(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(rt, "jump")))
		w.Run(time.Duration(1<<62 - 1))
		require.Equal(rt, sim.EventNote, w.Trace().Records[len(w.Trace().Records)-1].Event)
	})
}

func TestTimeoutGoesByTheNodeClock(t *testing.T) {
	w := newWorld(t, sim.Config{})
	n := w.task("n", func(p *sim.Process) {
		ctx, cancel := p.Clock().WithTimeout(background, 3*time.Second)
		defer cancel()
		deadline, _ := ctx.Deadline()
		note(p, "deadline", deadline.Sub(p.Clock().Now()))
		note(p, "ended", p.Clock().Sleep(ctx, time.Hour))
	})
	n.Clock.Drift(500_000)
	w.Run(time.Minute)
	require.Equal(t, "2s n/boot#1 ended: context deadline exceeded", w.notes()[1])
}
