package sim_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// pay takes 10 cents from A and gives them to B; where a statement fails, it still
// tries the rest. It returns all errors.
func pay(ctx context.Context, db *sql.DB) (errs []error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return []error{err}
	}
	defer tx.Rollback()
	for _, s := range []string{takeA, giveB} {
		_, err := tx.ExecContext(ctx, s)
		errs = append(errs, err)
	}
	return append(errs, tx.Commit())
}

// payWith pays under a fault at one step, and then reads with the same *sql.DB. It
// returns the errors of the payment and how the accounts are afterwards.
func payWith(t *testing.T, step string, fault sim.SQLFault, options sim.DBOptions) (w *world, errs []error, balances any) {
	w = newWorld(t, with(strikeAt("n/boot#1/"+step, sim.Strike{SQL: fault})))
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, options)
		errs = pay(background, db)
		note(p, "read", read(background, db))
	})
	w.Run(time.Minute)
	require.Len(t, w.notes(), 1)
	require.Contains(t, w.notes()[0], "read: <nil>", "the database is of use again")
	require.Equal(t, []string{string(fault)}, details(w, sim.EventFault, step))
	require.NoError(t, d.Exec("UPDATE accounts SET cents = cents"), "a lock was left")
	return w, errs, w.balances(d)
}

// details returns the details of the records of that kind and operation.
func details(w *world, event sim.Event, op string) (all []string) {
	for _, r := range w.Trace().Records {
		if r.Event == event && r.Op == op {
			all = append(all, r.Detail)
		}
	}
	return all
}

const lost = "the connection to the database was lost: whether the last statement took effect is not known"

// codes tells each error by SQLite's text, or else by its own; "ok" is none.
func codes(errs []error) (all []string) {
	for _, err := range errs {
		var e sqlite3.Error
		switch {
		case err == nil:
			all = append(all, "ok")
		case errors.As(err, &e):
			all = append(all, "SQLite: "+e.Error())
		default:
			all = append(all, err.Error())
		}
	}
	return all
}

// A statement that fails is not done; what the transaction did before it stays, and
// its commit decides.
func TestSQLFaults(t *testing.T) {
	const (
		busy, ioError, full = "SQLite: database is locked", "SQLite: disk I/O error", "SQLite: database or disk is full"
		untouched, paid     = "A100,B100", "A90,B110"
	)
	for _, c := range []struct {
		step     string
		fault    sim.SQLFault
		codes    []string
		balances string
	}{
		{"BEGIN:before", sim.SQLBusy, []string{busy}, untouched},
		{"TakeA:before", sim.SQLBusy, []string{busy, "ok", "ok"}, "A100,B110"},
		{"COMMIT:before", sim.SQLBusy, []string{"ok", "ok", busy}, untouched},
		{"BEGIN:before", sim.SQLError, []string{ioError}, untouched},
		{"TakeA:before", sim.SQLError, []string{ioError, "ok", "ok"}, "A100,B110"},
		{"GiveB:before", sim.SQLError, []string{"ok", ioError, "ok"}, "A90,B100"},
		{"COMMIT:before", sim.SQLError, []string{"ok", "ok", ioError}, untouched},
		{"GiveB:before", sim.SQLFull, []string{"ok", full, "ok"}, "A90,B100"},
		{"BEGIN:before", sim.SQLLost, []string{lost}, untouched},
		{"BEGIN:after", sim.SQLLost, []string{lost}, untouched},
		{"TakeA:after", sim.SQLLost, []string{lost, lost, lost}, untouched},
		{"GiveB:before", sim.SQLLost, []string{"ok", lost, lost}, untouched},
		{"COMMIT:before", sim.SQLLost, []string{"ok", "ok", lost}, untouched},
		{"COMMIT:after", sim.SQLLost, []string{"ok", "ok", lost}, paid},
	} {
		t.Run(c.step+" "+string(c.fault), func(t *testing.T) {
			w, errs, balances := payWith(t, c.step, c.fault, sim.DBOptions{})
			require.Equal(t, c.codes, codes(errs))
			require.Equal(t, c.balances, balances)
			require.Len(t, w.changes(), map[string]int{untouched: 0, paid: 2, "A100,B110": 1, "A90,B100": 1}[c.balances]+2, "and 2 of the test's own")
		})
	}
}

// SQLITE_BUSY comes after the busy timeout, unless the context ends before.
func TestInjectedBusyTakesTheBusyTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		timeout, busy time.Duration
		want          string
	}{
		"default":  {time.Hour, 0, "5s n/boot#1 ended: database is locked"},
		"shorter":  {time.Hour, 700 * ms, "700ms n/boot#1 ended: database is locked"},
		"deadline": {300 * ms, 0, "300ms n/boot#1 ended: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, with(strikeAt("n/boot#1/TakeA:before", sim.Strike{SQL: sim.SQLBusy})))
			d := w.bank("bank")
			w.task("n", func(p *sim.Process) {
				ctx, cancel := p.Clock().WithTimeout(background, c.timeout)
				defer cancel()
				_, err := p.OpenDB(d, sim.DBOptions{BusyTimeout: c.busy}).ExecContext(ctx, takeA)
				note(p, "ended", err)
			})
			w.Run(time.Minute)
			require.Equal(t, []string{c.want}, w.notes())
			require.Equal(t, "A100,B100", w.balances(d))
		})
	}
}

// Outside a transaction, a statement commits by itself: the loss of the connection
// leaves open whether it did.
func TestConnectionLostAtAWrite(t *testing.T) {
	for step, balances := range map[string]string{"TakeA:before": "A100,B100", "TakeA:after": "A90,B100"} {
		w := newWorld(t, with(strikeAt("n/boot#1/"+step, sim.Strike{SQL: sim.SQLLost})))
		d := w.bank("bank")
		w.task("n", func(p *sim.Process) {
			_, err := p.OpenDB(d, sim.DBOptions{}).ExecContext(background, takeA)
			require.EqualError(t, err, lost)
			note(p, "failed", "")
		})
		w.Run(time.Minute)
		require.Len(t, w.notes(), 1)
		require.Equal(t, balances, w.balances(d), step)
	}
}

// A statement that failed by itself is not made to fail once more.
func TestFaultAfterAStatementThatFailed(t *testing.T) {
	w := newWorld(t, with(strikeAt("n/boot#1/Broken:after", sim.Strike{SQL: sim.SQLLost})))
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		_, err := p.OpenDB(d, sim.DBOptions{}).ExecContext(background, "-- name: Broken\nUPDATE nowhere SET x = 1")
		require.ErrorContains(t, err, "no such table")
		note(p, "failed", "")
	})
	w.Run(time.Minute)
	require.Len(t, w.notes(), 1)
	require.Empty(t, w.story(sim.EventFault))
}

// A lost connection leaves the pool and gives its place to another; its lock is free
// at once, whenever its transaction is told.
func TestPoolDropsALostConnection(t *testing.T) {
	for _, fault := range []sim.SQLFault{sim.SQLLost, sim.SQLError} {
		w := newWorld(t, with(strikeAt("n/payer#1/GiveB:before", sim.Strike{SQL: fault})))
		d := w.bank("bank")
		w.task("n", func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{MaxConns: 1})
			p.Go("payer", func(ctx context.Context) {
				tx := begin(ctx, db)
				defer tx.Rollback()
				exec(ctx, tx, takeA)
				_, err := tx.ExecContext(ctx, giveB)
				note(p, "failed", err != nil)
				must(0, p.Clock().Sleep(ctx, time.Second))
			})
			p.Go("waiter", func(ctx context.Context) {
				must(0, p.Clock().Sleep(ctx, ms))
				note(p, "read", read(ctx, db))
			})
		})
		w.task("other", func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{})
			must(0, p.Clock().Sleep(background, 100*ms))
			exec(background, db, "-- name: Other\n"+giveB)
		})
		w.Run(time.Minute)
		require.Contains(t, w.notes()[0], "n/payer#1 failed: true", fault)
		require.Contains(t, w.notes()[1], "n/waiter#1 read: <nil>", fault)
		require.Equal(t, "A100,B110", w.balances(d))
		if fault == sim.SQLLost {
			require.Equal(t, 101*ms, w.at(sim.EventSQL, "Other"), "the lock is free at once")
		} else {
			require.Greater(t, w.at(sim.EventSQL, "Other"), time.Second, "the lock is held until the rollback")
		}
	}
}

// What a step tells of its SQL operation.
func TestStepTellsOfSQL(t *testing.T) {
	type told struct {
		step  string
		kind  sim.SQLKind
		waits bool
	}
	for _, immediate := range []bool{false, true} {
		var got []told
		f := &faults{step: func(s sim.Step) sim.Strike {
			if s.SQL != "" && s.Phase == sim.Before {
				require.Equal(t, "bank", s.Database)
				got = append(got, told{s.Operation(), s.SQL, s.Waits})
			}
			if s.SQL == "" {
				require.Empty(t, s.Database)
				require.False(t, s.Waits)
			}
			return sim.Strike{}
		}}
		w := newWorld(t, with(f))
		d := w.bank("bank")
		w.task("n", func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{Immediate: immediate})
			must(0, read(background, db))
			exec(background, db, takeA)
			must(0, p.Clock().Sleep(background, time.Second))
			pay(background, db)
			tx := begin(background, db)
			must(0, tx.Rollback())
		})
		w.Run(time.Minute)
		require.Equal(t, []told{
			{"ReadA", sim.SQLRead, true},
			{"TakeA", sim.SQLWrite, true},
			{"BEGIN", sim.SQLBegin, true},
			{"TakeA#2", sim.SQLWrite, !immediate}, // BEGIN IMMEDIATE has the lock already
			{"GiveB", sim.SQLWrite, false},
			{"COMMIT", sim.SQLCommit, true},
			{"BEGIN#2", sim.SQLBegin, true},
			{"ROLLBACK", sim.SQLRollback, false},
		}, got, "immediate %v", immediate)
	}
}
