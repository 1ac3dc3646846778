package sim_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 1: a task gives way inside database/sql.
func TestTasksInterleaveBetweenStatements(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		for _, name := range []string{"x", "y"} {
			p.Go(name, func(ctx context.Context) {
				var cents int
				tx := begin(ctx, db)
				defer tx.Rollback()
				must(0, tx.QueryRowContext(ctx, readA).Scan(&cents))
				must(0, tx.QueryRowContext(ctx, readA).Scan(&cents))
				must(0, tx.Commit())
			})
		}
	})
	w.Run(time.Second)
	require.Equal(t, []string{
		"200µs n/x#1 BEGIN", "200µs n/y#1 BEGIN",
		"400µs n/x#1 ReadA: 1 row", "400µs n/y#1 ReadA: 1 row",
		"600µs n/x#1 ReadA#2: 1 row", "600µs n/y#1 ReadA#2: 1 row",
		"1.6ms n/x#1 COMMIT", "1.6ms n/y#1 COMMIT",
	}, w.story(sim.EventSQL))
	require.Equal(t, 8, w.Statements())
}

// Trap 6: rows are read whole, so an open *sql.Rows holds no lock.
func TestOpenRowsHoldNoLock(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("reader", func(p *sim.Process) {
		rows := must(p.OpenDB(d, sim.DBOptions{}).QueryContext(background, "SELECT name, cents FROM accounts ORDER BY name"))
		defer rows.Close()
		for rows.Next() {
			var name string
			var cents int
			must(0, rows.Scan(&name, &cents))
			must(0, p.Clock().Sleep(background, time.Second))
			note(p, name, cents)
		}
	})
	w.task("writer", func(p *sim.Process) {
		must(0, p.Clock().Sleep(background, 500*ms))
		exec(background, p.OpenDB(d, sim.DBOptions{}), giveB)
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"1.0002s reader/boot#1 A: 100", "2.0002s reader/boot#1 B: 100"}, w.notes())
	require.Equal(t, 501*ms, w.at(sim.EventSQL, "GiveB"))
	require.Empty(t, w.story(sim.EventBusy))
}

func TestQueryCanWrite(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		var id int64
		must(0, db.QueryRowContext(background, "INSERT INTO transfers(key, cents) VALUES (?, :cents) RETURNING id", "k", sql.Named("cents", 7)).Scan(&id))
		note(p, "id", id)
		r := must(db.ExecContext(background, "INSERT INTO transfers(key, cents) VALUES ('l', 8)"))
		note(p, "result", []int64{must(r.LastInsertId()), must(r.RowsAffected())})
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"1ms n/boot#1 id: 1", "2ms n/boot#1 result: [2 1]"}, w.notes())
	require.Equal(t, []string{"bank.transfers#1 id=1 key=k cents=7", "bank.transfers#2 id=2 key=l cents=8"}, w.changes())
}

// What differs from run to run is refused by the database itself.
func TestSQLRefusesChance(t *testing.T) {
	for _, call := range []string{"random()", "randomblob(4)", "total_changes()"} {
		w := newWorld(t, sim.Config{})
		d := w.bank("bank")
		w.task("n", func(p *sim.Process) {
			var v any
			note(p, call, p.OpenDB(d, sim.DBOptions{}).QueryRowContext(background, "SELECT "+call).Scan(&v))
		})
		w.Run(time.Second)
		require.Contains(t, w.notes()[0], "differs from run to run", call)
	}
}

func TestSchemaThatCannotBeTracedIsRefused(t *testing.T) {
	w := newWorld(t, sim.Config{})
	_, err := w.Database("x", sim.Schema{Name: "x", Build: func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE x (key TEXT PRIMARY KEY) WITHOUT ROWID")
		return err
	}})
	require.ErrorContains(t, err, "the table x is WITHOUT ROWID")
}

// A transaction begun by hand, and one that is left open when the connection goes back.
func TestTransactionByHand(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		conn := must(p.OpenDB(d, sim.DBOptions{}).Conn(background))
		defer conn.Close()
		short, cancel := p.Clock().WithTimeout(background, ms)
		defer cancel()
		exec(short, conn, "BEGIN IMMEDIATE")
		must(0, p.Clock().Sleep(background, time.Second))
		exec(background, conn, giveB) // the context of BEGIN is not the transaction's
		exec(background, conn, "COMMIT")
	})
	w.Run(time.Minute)
	require.Equal(t, "A100,B110", w.balances(d))
}

func TestDatabaseClockIsTrueTime(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	n := w.task("n", func(p *sim.Process) {
		must(0, p.Clock().Sleep(background, time.Hour))
		var now int64
		must(0, p.OpenDB(d, sim.DBOptions{}).QueryRowContext(background, "SELECT db_now_ms()").Scan(&now))
		note(p, "now", time.UnixMilli(now).Sub(start))
	})
	n.Clock.Skew(42 * time.Minute)
	w.Run(2 * time.Hour)
	require.Equal(t, []string{"1h0m0.0002s n/boot#1 now: 1h0m0s"}, w.notes())
	require.Equal(t, start.Add(2*time.Hour).UnixMilli(), w.value(d, "SELECT db_now_ms()"))
}
