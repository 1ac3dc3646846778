package sim_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// hold keeps a lock from 1 s to 3 s: by writing, or with SELECT by reading.
func hold(p *sim.Process, d *sim.Database, query string) {
	db := p.OpenDB(d, sim.DBOptions{})
	must(0, p.Clock().Sleep(background, time.Second))
	tx := begin(background, db)
	defer tx.Rollback()
	must(0, must(tx.QueryContext(background, query)).Close())
	must(0, p.Clock().Sleep(background, 2*time.Second))
	must(0, tx.Commit())
}

// attempts are what another process tries at 2 s, having opened its connection
// before, but in "connect". Those of a reader, or beside one, find no lock in WAL.
var attempts = map[string]struct {
	held   string // what the holder does
	reader bool
	cost   time.Duration
	try    func(ctx context.Context, db *sql.DB) error
}{
	"BEGIN":   {giveB, false, 200 * time.Microsecond, func(ctx context.Context, db *sql.DB) error { return tryTx(ctx, db) }},
	"COMMIT":  {readA, true, 1400 * time.Microsecond, func(ctx context.Context, db *sql.DB) error { return tryTx(ctx, db, giveB) }},
	"write":   {giveB, false, ms, func(ctx context.Context, db *sql.DB) error { _, err := db.ExecContext(ctx, takeA); return err }},
	"read":    {giveB, true, 200 * time.Microsecond, func(ctx context.Context, db *sql.DB) error { return read(ctx, db) }},
	"connect": {giveB, true, 0, func(ctx context.Context, db *sql.DB) error { return read(ctx, db) }},
}

// eachAttempt runs a test for each attempt that meets a lock, with each journal.
func eachAttempt(t *testing.T, test func(t *testing.T, j sim.Journal, name string)) {
	eachJournal(t, func(t *testing.T, j sim.Journal) {
		for name, a := range attempts {
			if j == sim.MemDB || !a.reader {
				t.Run(name, func(t *testing.T) { test(t, j, name) })
			}
		}
	})
}

func tryTx(ctx context.Context, db *sql.DB, statements ...string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func read(ctx context.Context, db *sql.DB) error {
	var cents int
	return db.QueryRowContext(ctx, readA).Scan(&cents)
}

// attempt runs one of the attempts against a holder and notes how it ended.
func attempt(t *testing.T, j sim.Journal, f *faults, name string, busy, timeout time.Duration) *world {
	w := newWorld(t, over(j, f))
	d := w.bank("bank")
	a := attempts[name]
	w.task("holder", func(p *sim.Process) { hold(p, d, a.held) })
	w.task("waiter", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{BusyTimeout: busy, Immediate: true})
		if name != "connect" {
			must(0, read(background, db))
			must(0, p.Clock().Sleep(background, 2*time.Second-200*time.Microsecond))
		} else {
			must(0, p.Clock().Sleep(background, 2*time.Second))
		}
		ctx, cancel := p.Clock().WithTimeout(background, timeout)
		defer cancel()
		note(p, "ended", a.try(ctx, db))
	})
	w.Run(time.Minute)
	require.NoError(t, d.Exec("UPDATE accounts SET cents = 0"), "a lock was left")
	return w
}

// Trap 3: whatever meets a lock waits in virtual time until its holder ends.
func TestBusyWaitsForTheHolder(t *testing.T) {
	eachAttempt(t, func(t *testing.T, j sim.Journal, name string) {
		w := attempt(t, j, nil, name, 0, time.Hour)
		released := w.at(sim.EventSQL, "COMMIT")
		if name == "COMMIT" { // the waiter's own BEGIN and UPDATE went through at once
			require.Equal(t, 2*time.Second+400*time.Microsecond, w.at(sim.EventSQL, "GiveB"))
		}
		require.Contains(t, w.notes()[0], "ended: <nil>")
		require.GreaterOrEqual(t, w.at(sim.EventNote, "ended"), released)
		require.LessOrEqual(t, w.at(sim.EventNote, "ended"), released+2*ms)
	})
}

func TestBusyTimeout(t *testing.T) {
	eachAttempt(t, func(t *testing.T, j sim.Journal, name string) {
		w := attempt(t, j, nil, name, 300*ms, time.Hour)
		require.Contains(t, w.notes()[0], "database is locked")
		require.Equal(t, 2*time.Second+attempts[name].cost+300*ms, w.at(sim.EventNote, "ended"))
	})
}

// A context's deadline ends the wait earlier, and is told as such.
func TestBusyWaitEndsWithItsContext(t *testing.T) {
	eachAttempt(t, func(t *testing.T, j sim.Journal, name string) {
		w := attempt(t, j, nil, name, 0, 300*ms)
		if name == "COMMIT" { // a commit that has begun is not undone by its context
			require.Contains(t, w.notes()[0], "ended: <nil>")
			return
		}
		require.Equal(t, []string{"2.3s waiter/boot#1 ended: context deadline exceeded"}, w.notes())
	})
}

func TestHolderThatCrashesFreesTheWaiters(t *testing.T) {
	eachAttempt(t, func(t *testing.T, j sim.Journal, name string) {
		w := attempt(t, j, &faults{step: func(s sim.Step) sim.Strike {
			return sim.Strike{Crash: s.Name() == "holder/boot#1/sleep#2:after", Restart: time.Second}
		}}, name, 0, time.Hour)
		crashed := w.at(sim.EventCrash, "holder/boot#1/sleep#2:after")
		require.Contains(t, w.notes()[0], "ended: <nil>")
		require.LessOrEqual(t, w.at(sim.EventNote, "ended"), crashed+2*ms)
	})
}

// A deferred transaction that has read can't wait: its snapshot would be old.
func TestReaderThatTurnsWriterIsBusyAtOnce(t *testing.T) {
	eachJournal(t, readerThatTurnsWriterIsBusyAtOnce)
}

func readerThatTurnsWriterIsBusyAtOnce(t *testing.T, j sim.Journal) {
	w := newWorld(t, over(j, nil))
	d := w.bank("bank")
	w.task("holder", func(p *sim.Process) { hold(p, d, giveB) })
	w.task("reader", func(p *sim.Process) {
		tx := begin(background, p.OpenDB(d, sim.DBOptions{}))
		defer tx.Rollback()
		var cents int
		must(0, tx.QueryRowContext(background, readA).Scan(&cents))
		must(0, p.Clock().Sleep(background, 2*time.Second))
		_, err := tx.ExecContext(background, takeA)
		note(p, "ended", err)
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"2.0006s reader/boot#1 ended: database is locked"}, w.notes())
}

// A first statement that ran into its busy timeout got no lock, so the next one may wait.
func TestDeferredTransactionMayTryAgain(t *testing.T) {
	eachJournal(t, deferredTransactionMayTryAgain)
}

func deferredTransactionMayTryAgain(t *testing.T, j sim.Journal) {
	w := newWorld(t, over(j, nil))
	d := w.bank("bank")
	w.task("holder", func(p *sim.Process) { hold(p, d, giveB) })
	w.task("waiter", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{BusyTimeout: 800 * ms})
		must(0, read(background, db))
		must(0, p.Clock().Sleep(background, 2*time.Second))
		tx := begin(background, db)
		defer tx.Rollback()
		_, first := tx.ExecContext(background, takeA)
		_, second := tx.ExecContext(background, takeA)
		note(p, "ended", []any{first, second, tx.Commit()})
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"3.0024s waiter/boot#1 ended: [database is locked <nil> <nil>]"}, w.notes())
}

func TestPragmaBusyTimeoutIsVirtual(t *testing.T) {
	eachJournal(t, pragmaBusyTimeoutIsVirtual)
}

func pragmaBusyTimeoutIsVirtual(t *testing.T, j sim.Journal) {
	w := newWorld(t, over(j, nil))
	d := w.bank("bank")
	w.task("holder", func(p *sim.Process) { hold(p, d, giveB) })
	w.task("waiter", func(p *sim.Process) {
		conn := must(p.OpenDB(d, sim.DBOptions{}).Conn(background))
		defer conn.Close()
		exec(background, conn, "PRAGMA busy_timeout = 700")
		must(0, p.Clock().Sleep(background, 2*time.Second))
		_, err := conn.ExecContext(background, takeA)
		note(p, "ended", err)
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"2.701s waiter/boot#1 ended: database is locked"}, w.notes())
}
