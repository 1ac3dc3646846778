package sim_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 9: DBOptions.MaxConns in virtual time.
func TestPoolGivesEachWaiterItsTurn(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{MaxConns: 2})
		for i := range 5 {
			p.Go(fmt.Sprint("user", i), func(ctx context.Context) {
				conn := must(db.Conn(ctx))
				defer conn.Close()
				note(p, "has", i)
				p.Clock().Sleep(ctx, time.Second)
			})
		}
	})
	w.Run(time.Minute)
	require.Equal(t, []string{
		"0s n/user0#1 has: 0", "0s n/user1#1 has: 1", "1s n/user2#1 has: 2", "1s n/user3#1 has: 3", "2s n/user4#1 has: 4",
	}, w.notes())
}

func TestPoolWaitRespectsTheDeadline(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{MaxConns: 1})
		p.Go("holder", func(ctx context.Context) {
			conn := must(db.Conn(ctx))
			defer conn.Close()
			p.Clock().Sleep(ctx, 3*time.Second)
		})
		p.Go("impatient", func(ctx context.Context) {
			limited, cancel := p.Clock().WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := db.Conn(limited)
			note(p, "conn", err)
			p.Clock().Sleep(ctx, 9*time.Second)
			note(p, "slept", "")
		})
		p.Go("patient", func(ctx context.Context) {
			note(p, "read", read(ctx, db))
		})
	})
	w.Run(time.Minute)
	require.Equal(t, []string{
		"1s n/impatient#1 conn: context deadline exceeded", "3.0002s n/patient#1 read: <nil>", "10s n/impatient#1 slept",
	}, w.notes())
}

// A connection that could not be opened gives its place to the next.
func TestPoolLosesNoPlaceByErrors(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("holder", func(p *sim.Process) { hold(p, d, giveB) })
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{MaxConns: 1, BusyTimeout: 1500 * ms})
		must(0, p.Clock().Sleep(background, 1100*ms))
		for _, name := range []string{"a", "b", "c"} {
			p.Go(name, func(ctx context.Context) { note(p, "read", read(ctx, db)) })
		}
	})
	w.Run(time.Minute)
	require.Equal(t, []string{
		"2.6s n/a#1 read: database is locked", "3.0016s n/b#1 read: <nil>", "3.0018s n/c#1 read: <nil>",
	}, w.notes())
}

func TestPoolStartsAgainAfterACrash(t *testing.T) {
	f := crashAt("n/boot#1/sleep:after")
	w := newWorld(t, with(f))
	d := w.bank("bank")
	w.Node("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{MaxConns: 1})
		p.Go("waiter", func(ctx context.Context) { note(p, "read", read(ctx, db)) })
		conn := must(db.Conn(background))
		defer conn.Close()
		p.Clock().Sleep(background, time.Second)
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"3.0002s n/waiter#2 read: <nil>"}, w.notes())
}
