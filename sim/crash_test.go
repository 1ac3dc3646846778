package sim_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 2: a crash at each step of a transaction. What is committed is what SQLite
// says, the lock is free at once, and the deferred Rollback does no harm.
func TestCrashAtEachStepOfATransaction(t *testing.T) {
	eachJournal(t, crashAtEachStepOfATransaction)
}

func crashAtEachStepOfATransaction(t *testing.T, j sim.Journal) {
	run := func(f *faults) (*world, *sim.Database) {
		w := newWorld(t, over(j, f))
		d := w.bank("bank")
		w.task("a", func(p *sim.Process) {
			must(0, p.Clock().Sleep(background, 10*ms))
			tx := begin(background, p.OpenDB(d, sim.DBOptions{Immediate: true}))
			defer tx.Rollback()
			exec(background, tx, takeA)
			must(0, p.Clock().Sleep(background, time.Second))
			exec(background, tx, giveB)
			must(0, tx.Commit())
		})
		w.task("b", func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{})
			must(0, read(background, db))
			must(0, p.Clock().Sleep(background, 500*ms))
			exec(background, db, "-- name: Other\nUPDATE accounts SET cents = cents + 1 WHERE name = 'B'")
		})
		w.Run(time.Minute)
		return w, d
	}
	plain := &faults{}
	w, d := run(plain)
	require.Equal(t, "A90,B111", w.balances(d))
	committed := false
	tried := 0
	for _, step := range plain.seen {
		if !strings.HasPrefix(step, "a/") {
			continue
		}
		tried++
		committed = committed || step == "a/boot#1/COMMIT:after"
		w, d := run(crashAt(step))
		free := max(501200*time.Microsecond, w.at(sim.EventCrash, step))
		if committed {
			require.Equal(t, "A90,B111", w.balances(d), step)
		} else {
			require.Equal(t, "A100,B101", w.balances(d), step)
		}
		require.Equal(t, free, w.at(sim.EventSQL, "Other"), step)
	}
	require.Equal(t, 12, tried)
}

// Each way of database/sql to run a statement survives a crash at each of its steps.
func TestCrashInsideDatabaseSQL(t *testing.T) { eachJournal(t, crashInsideDatabaseSQL) }

func crashInsideDatabaseSQL(t *testing.T, j sim.Journal) {
	scan := func(rows *sql.Rows, err error) {
		if err == nil {
			for rows.Next() {
			}
			rows.Close()
		}
	}
	ways := map[string]func(db *sql.DB){
		"query in a transaction": func(db *sql.DB) {
			tx := begin(background, db)
			defer tx.Rollback()
			exec(background, tx, takeA)
			scan(tx.QueryContext(background, readA))
			must(0, tx.Commit())
		},
		"rows left open": func(db *sql.DB) {
			tx := begin(background, db)
			defer tx.Rollback()
			rows := must(tx.QueryContext(background, readA))
			defer rows.Close()
			exec(background, tx, takeA)
			must(0, tx.Commit())
		},
		"prepared": func(db *sql.DB) {
			tx := begin(background, db)
			defer tx.Rollback()
			st := must(tx.PrepareContext(background, readA))
			defer st.Close()
			scan(st.QueryContext(background))
			exec(background, tx, takeA)
			scan(must(tx.PrepareContext(background, readA+" AND id = ?")).QueryContext(background, 1))
			must(0, tx.Commit())
		},
		"connection": func(db *sql.DB) {
			conn := must(db.Conn(background))
			defer conn.Close()
			exec(background, conn, takeA)
			scan(conn.QueryContext(background, readA))
		},
		"transaction on a connection": func(db *sql.DB) {
			conn := must(db.Conn(background))
			defer conn.Close()
			tx, err := conn.BeginTx(background, nil)
			if err != nil {
				return
			}
			defer tx.Rollback()
			scan(tx.QueryContext(background, readA))
			exec(background, tx, takeA)
			must(0, tx.Commit())
		},
	}
	ways["transaction on a connection, rolled back"] = func(db *sql.DB) {
		conn := must(db.Conn(background))
		defer conn.Close()
		tx, err := conn.BeginTx(background, nil)
		if err == nil {
			defer tx.Rollback()
			exec(background, tx, takeA)
		}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			run := func(f *faults) {
				w := newWorld(t, over(j, f))
				d := w.bank("bank")
				w.task("n", func(p *sim.Process) { way(p.OpenDB(d, sim.DBOptions{})) })
				w.Run(time.Minute)
				require.NoError(t, d.Exec(giveB), "a lock was left")
				require.Empty(t, w.story(sim.EventPanic))
			}
			plain := &faults{}
			run(plain)
			for _, step := range plain.seen {
				run(crashAt(step))
			}
		})
	}
}

// Trap 8: no recover survives a crash, and what comes after has no effect.
func TestCrashCannotBeSurvived(t *testing.T) {
	try := func(f func()) { defer func() { _ = recover() }(); f() }
	ways := map[string]func(p *sim.Process, db *sql.DB){
		"recover and go on": func(p *sim.Process, db *sql.DB) {
			try(func() { p.Clock().Sleep(background, time.Second) })
			try(func() { db.Exec(takeA) })
			try(func() { post(background, p, "http://server/", "") })
			try(func() { p.Note("survived", "") })
			try(func() { p.Logger().Error("survived") })
			try(func() { p.Go("survived", func(context.Context) { db.Exec(takeA) }) })
			try(func() { p.Every("survived", time.Second, func(context.Context) { db.Exec(takeA) }) })
			try(func() { p.Serve(http.NotFoundHandler()) })
		},
		"recover for ever": func(p *sim.Process, db *sql.DB) {
			for {
				try(func() { p.Clock().Sleep(background, time.Second); p.Note("survived", "") })
			}
		},
		"query for ever": func(p *sim.Process, db *sql.DB) {
			tx := begin(background, db)
			defer tx.Rollback()
			p.Clock().Sleep(background, 2*time.Second)
		},
		"errors for ever": func(p *sim.Process, db *sql.DB) {
			tx := begin(background, db)
			defer tx.Rollback()
			for {
				if rows, err := tx.QueryContext(background, "SELECT 1"); err == nil {
					rows.Close()
				}
			}
		},
		"deferred effects": func(p *sim.Process, db *sql.DB) {
			defer p.Note("survived", "")
			defer post(background, p, "http://server/", "")
			defer db.Exec(takeA)
			defer func() { recover(); db.Exec(takeA) }()
			defer func() {
				for {
					try(func() { db.Exec(takeA) })
				}
			}()
			p.Clock().Sleep(background, time.Second)
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sim.Config{})
			d := w.bank("bank")
			n := w.task("n", func(p *sim.Process) { way(p, p.OpenDB(d, sim.DBOptions{})) })
			w.Node("server", func(p *sim.Process) { p.Serve(http.NotFoundHandler()) })
			w.At(500*ms, "crash", func() { n.Crash(time.Hour) })
			w.Run(time.Minute)
			require.Equal(t, "A100,B100", w.balances(d))
			require.Empty(t, w.story(sim.EventNote, sim.EventLog, sim.EventSend, sim.EventRow, sim.EventPanic))
			require.NoError(t, d.Exec(giveB), "a lock was left")
		})
	}
}

// A crash that the step itself causes can't be survived either.
func TestCrashAtOwnStepCannotBeSurvived(t *testing.T) {
	w := newWorld(t, with(crashAt("n/boot#1/sleep#2:before")))
	w.task("n", func(p *sim.Process) {
		for {
			func() {
				defer func() { _ = recover() }()
				p.Clock().Sleep(background, time.Second)
				p.Note("beat", "")
			}()
		}
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"1s n/boot#1 beat"}, w.notes())
}

// Faults and watchers of the trace may kill the process whose step or record they see.
func TestCrashFromInsideAStepOrARecord(t *testing.T) {
	for _, from := range []string{"step", "record"} {
		f := &faults{}
		w := newWorld(t, with(f))
		d := w.bank("bank")
		n := w.task("n", func(p *sim.Process) {
			tx := begin(background, p.OpenDB(d, sim.DBOptions{}))
			defer tx.Rollback()
			must(0, must(tx.QueryContext(background, readA)).Close())
			p.Note("survived", "")
		})
		if from == "step" {
			f.step = func(s sim.Step) sim.Strike {
				if s.Op == "ReadA" {
					n.Crash(time.Second)
				}
				return sim.Strike{}
			}
		} else {
			w.Trace().Watch(func(r *sim.Record) {
				if r.Op == "ReadA" {
					n.Crash(time.Second)
				}
			})
		}
		w.Run(time.Minute)
		require.Empty(t, w.story(sim.EventNote, sim.EventPanic), from)
		require.Len(t, w.story(sim.EventBoot), 2, from)
	}
}

// Trap 16: a panic in the background kills the process, one in boot does so for ever.
func TestPanicKillsTheProcess(t *testing.T) {
	w := newWorld(t, sim.Config{Timing: sim.Timing{Restart: 3 * time.Second}})
	w.Node("n", func(p *sim.Process) {
		p.Go("other", func(ctx context.Context) { p.Clock().Sleep(ctx, time.Hour); p.Note("survived", "") })
		p.Go("job", func(ctx context.Context) { p.Clock().Sleep(ctx, time.Second); panic("oops") })
	})
	w.Run(5 * time.Second)
	require.Equal(t, []string{"0s n/: life 1", "4s n/: life 2"}, w.story(sim.EventBoot))
	require.Equal(t, []string{"1s n/ panic: restarts after 3s", "5s n/ panic: restarts after 3s"}, w.story(sim.EventCrash))
	require.Contains(t, w.story(sim.EventPanic)[0], "1s n/job#1: oops\ngithub.com/tillstorm/tillstorm/sim_test.TestPanicKillsTheProcess")
	require.NotContains(t, w.story(sim.EventPanic)[0], ".go:")
}

func TestPanicInBootLoops(t *testing.T) {
	w := newWorld(t, sim.Config{})
	n := w.Node("n", func(p *sim.Process) { panic(fmt.Sprint("no ", p.Name())) })
	w.Run(10 * time.Second)
	require.Len(t, w.story(sim.EventBoot), 11)
	require.Len(t, w.story(sim.EventPanic), 11)
	require.False(t, n.Up())
}
