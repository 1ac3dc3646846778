package sim_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// play is a world that looks at everything a connection could remember.
func play(t *testing.T, j sim.Journal, arena *sim.Arena) (hash uint64, text string) {
	w := newWorld(t, sim.Config{Journal: j, Arena: arena, Faults: crashAt("n/boot#2/GiveB:after")})
	d, other := w.bank("bank"), w.bank("other")
	w.Node("n", func(p *sim.Process) {
		for _, d := range []*sim.Database{d, other} {
			db := p.OpenDB(d, sim.DBOptions{})
			for _, query := range []string{
				"SELECT last_insert_rowid()", "SELECT changes()", "PRAGMA foreign_keys", "PRAGMA user_version", "PRAGMA cache_size",
				"SELECT count(*) FROM sqlite_temp_schema", "SELECT group_concat(name) FROM sqlite_schema", "SELECT * FROM accounts",
				"SELECT count(*) FROM transfers", "SELECT coalesce(max(seq), 0) FROM sqlite_sequence", "SELECT db_now_ms()",
			} {
				note(p, query, all(db, query))
			}
			exec(background, db, "INSERT INTO transfers(key, cents) VALUES ('k' || (SELECT count(*) FROM transfers), 1)")
			must(0, tryTx(background, db, takeA, giveB))
		}
		p.Clock().Sleep(background, time.Second)
		panic("again")
	})
	w.Run(5 * time.Second)
	require.Greater(t, len(w.notes()), 50)
	require.Contains(t, w.notes()[1], "SELECT changes(): [changes()] 0")
	var b strings.Builder
	require.NoError(t, w.Trace().WriteText(&b))
	hash = w.Trace().Hash()
	w.Close()
	return hash, b.String()
}

// all reads all rows of a query as text.
func all(db *sql.DB, query string) string {
	rows := must(db.QueryContext(background, query))
	defer rows.Close()
	columns := must(rows.Columns())
	text := fmt.Sprint(columns)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		must(0, rows.Scan(values...))
		for _, v := range values {
			text += fmt.Sprint(" ", *v.(*any))
		}
	}
	return text
}

// spoil is a very different world on the same schema that leaves what it can.
func spoil(t *testing.T, arena *sim.Arena) {
	w := newWorld(t, sim.Config{Arena: arena})
	for i := range 4 {
		d := w.bank(fmt.Sprint("bank", i))
		n := w.Node(fmt.Sprint("n", i), func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{})
			for _, conn := range []*sql.Conn{must(db.Conn(background)), must(db.Conn(background)), must(db.Conn(background))} {
				for _, s := range []string{
					"INSERT INTO transfers(key, cents) VALUES ('x' || (SELECT count(*) FROM transfers), 1)", "PRAGMA foreign_keys = ON",
					"PRAGMA user_version = 7", "PRAGMA cache_size = 77", "PRAGMA journal_mode = DELETE", "PRAGMA wal_autocheckpoint = 3", "CREATE TEMP TABLE accounts (x)",
					"CREATE TABLE IF NOT EXISTS more (x); CREATE TEMPORARY TABLE extra (x)", "ATTACH ':memory:' AS elsewhere",
					"ALTER TABLE main.accounts ADD COLUMN more TEXT DEFAULT 'm'", "SELECT * FROM accounts", "DELETE FROM main.accounts",
				} {
					conn.ExecContext(background, s)
				}
			}
			for range 3 {
				exec(background, db, "INSERT INTO transfers(key, cents) VALUES ('y' || (SELECT count(*) FROM transfers), 1)")
			}
			must(db.QueryContext(background, "SELECT * FROM transfers")) // left open
			tx := begin(background, db)
			defer tx.Rollback()
			exec(background, tx, "INSERT INTO transfers(key, cents) VALUES ('z' || (SELECT count(*) FROM transfers), 1)")
			p.Clock().Sleep(background, time.Hour)
		})
		w.At(time.Minute, "crash", func() { n.Crash(time.Second) })
		w.At(100*time.Second, "operator", func() { d.Exec("PRAGMA foreign_keys = ON"); d.Exec("CREATE TEMP TABLE mine (x)") })
	}
	other, err := w.Database("other", sim.Schema{Name: "other", Build: func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE accounts (other TEXT)")
		return err
	}})
	require.NoError(t, err)
	require.NoError(t, other.Exec("INSERT INTO accounts VALUES ('x')"))
	w.Run(2 * time.Minute)
	w.Close()
}

// Trap 4: a used arena gives the same world as a new one.
func TestArenaForgetsEverything(t *testing.T) { eachJournal(t, arenaForgetsEverything) }

func arenaForgetsEverything(t *testing.T, j sim.Journal) {
	fresh, text := play(t, j, nil)
	arena := j.NewArena()
	defer arena.Close()
	for i := range 3 {
		got, again := play(t, j, arena)
		require.Equal(t, text, again, "world %d", i)
		require.Equal(t, fresh, got)
		spoil(t, arena)
		got, again = play(t, j, arena)
		require.Equal(t, text, again, "after spoiling, world %d", i)
		require.Equal(t, fresh, got)
	}
}

// memory returns the resident set of the process in MiB, SQLite's memory included.
func memory() int {
	var size, resident int
	b, _ := os.ReadFile("/proc/self/statm")
	fmt.Sscan(string(b), &size, &resident)
	return resident * os.Getpagesize() >> 20
}

var worldsFlag = flag.Int("worlds", 300, "how many worlds TestWorldsLeaveNothingBehind runs")

// Trap 11: goroutines and memory stay flat.
func TestWorldsLeaveNothingBehind(t *testing.T) { eachJournal(t, worldsLeaveNothingBehind) }

func worldsLeaveNothingBehind(t *testing.T, j sim.Journal) {
	arena := j.NewArena()
	defer arena.Close()
	one := func() {
		w := sim.New(sim.Config{Start: start, Arena: arena, Faults: crashAt("n/work#3/TakeA:before", "n/work#5/COMMIT:after", "n/work#7/ReadA:after")})
		defer w.Close()
		d, err := w.Database("bank", bankSchema)
		require.NoError(t, err)
		w.Node("n", func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{})
			p.Every("tick", time.Second, func(context.Context) {})
			for {
				p.Go("work", func(ctx context.Context) {
					ctx, cancel := p.Clock().WithTimeout(ctx, time.Second)
					defer cancel()
					tx := begin(ctx, db)
					defer tx.Rollback()
					must(0, must(tx.QueryContext(ctx, readA)).Close())
					exec(ctx, tx, takeA)
					must(0, tx.Commit())
				})
				p.Clock().Sleep(background, time.Second)
				func() {
					defer func() { _ = recover() }() // a task that will not die
					p.Clock().Sleep(background, time.Second)
				}()
			}
		})
		w.Run(20 * time.Second)
	}
	worlds := *worldsFlag
	for range worlds / 3 {
		one()
	}
	runtime.GC()
	goroutines, resident := settledGoroutines(), memory()
	for range worlds {
		one()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, 10*time.Second, 10*ms)
	runtime.GC()
	require.Less(t, memory(), resident+16+roomForRace)
}
