package sim_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Nobody waits for a reader, and no reader waits.
func TestReadersMeetNoLockInWAL(t *testing.T) {
	for name, a := range attempts {
		if !a.reader {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := attempt(t, sim.WAL, nil, name, 0, time.Hour)
			require.Empty(t, w.story(sim.EventBusy))
			require.Contains(t, w.notes()[0], "ended: <nil>")
			require.LessOrEqual(t, w.at(sim.EventNote, "ended"), 2*time.Second+1400*time.Microsecond)
		})
	}
}

// A transaction reads what was there when it began to read, and may not write over what
// was committed since; waiting would not help it.
func TestOldSnapshotIsReadAndNotWritten(t *testing.T) {
	w := newWorld(t, over(sim.WAL, nil))
	d := w.bank("bank")
	var refused error
	w.task("reader", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		balance := "SELECT group_concat(name || cents ORDER BY name) FROM accounts"
		tx := begin(background, db)
		defer tx.Rollback()
		for range 2 {
			var read string
			must(0, tx.QueryRowContext(background, balance).Scan(&read))
			note(p, "reads", read)
			must(0, p.Clock().Sleep(background, time.Second))
		}
		_, refused = tx.ExecContext(background, takeA)
		must(0, tx.Rollback())
		note(p, "reads", all(db, balance))
	})
	w.At(500*ms, "operator", func() { require.NoError(t, d.Exec(giveB)) })
	w.Run(time.Minute)
	require.Equal(t, []string{
		"400µs reader/boot#1 reads: A100,B100", "1.0006s reader/boot#1 reads: A100,B100", "2.0012s reader/boot#1 reads: [group_concat(name || cents ORDER BY name)] A100,B110",
	}, w.notes())
	var e sqlite3.Error
	require.True(t, errors.As(refused, &e))
	require.Equal(t, sqlite3.ErrBusySnapshot, e.ExtendedCode)
	require.Empty(t, w.story(sim.EventBusy))
}

// A script can't be undone half-way, so it waits for a writer before it begins; for a
// reader it need not.
func TestScriptsWaitForWritersInWAL(t *testing.T) {
	for held, ended := range map[string]string{readA: "2.001s", giveB: "3.0014s"} {
		w := newWorld(t, over(sim.WAL, nil))
		d := w.bank("bank")
		w.task("holder", func(p *sim.Process) { hold(p, d, held) })
		w.task("script", func(p *sim.Process) {
			must(0, p.Clock().Sleep(background, 2*time.Second))
			exec(background, p.OpenDB(d, sim.DBOptions{}), takeA+";"+giveB)
			p.Note("ended", "")
		})
		w.Run(time.Minute)
		require.Equal(t, []string{ended + " script/boot#1 ended"}, w.notes(), held)
	}
}

// From outside, what is committed can be read at any time.
func TestQueryBesideAWriter(t *testing.T) {
	w := newWorld(t, over(sim.WAL, nil))
	d := w.bank("bank")
	w.task("holder", func(p *sim.Process) { hold(p, d, giveB) })
	w.At(2*time.Second, "look", func() {
		require.Equal(t, "A100,B100", w.balances(d))
		require.ErrorContains(t, d.Exec(takeA), "database is locked")
	})
	w.Run(time.Minute)
	require.Equal(t, "A100,B110", w.balances(d))
}

// fileOf returns the name of a database's file.
func fileOf(w *world, d *sim.Database) string {
	return w.value(d, "SELECT file FROM pragma_database_list WHERE name = 'main'").(string)
}

// The log is moved to the database again and again, beside readers of all ages, and at
// the same commits in a used arena as in a new one: both begin with an empty log.
func TestCheckpointsLeaveNoTrace(t *testing.T) {
	run := func(arena *sim.Arena) uint64 {
		w := newWorld(t, sim.Config{Journal: sim.WAL, Arena: arena})
		defer w.Close()
		d := w.bank("bank")
		log := fileOf(w, d) + "-wal"
		require.Zero(t, must(os.Stat(log)).Size())
		w.task("n", func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{})
			for i := range 300 {
				exec(background, db, "INSERT INTO transfers(key, cents) VALUES (?, 1)", strings.Repeat("k", 4000)+fmt.Sprint(i))
				p.Go("reader", func(ctx context.Context) {
					tx := begin(ctx, db)
					defer tx.Rollback()
					must(0, must(tx.QueryContext(ctx, readA)).Close())
					must(0, p.Clock().Sleep(ctx, time.Duration(i%50)*ms))
					_, err := tx.ExecContext(ctx, takeA)
					note(p, "turns writer", err)
				})
				must(0, p.Clock().Sleep(background, 2*ms))
			}
		})
		w.Run(time.Minute)
		require.Len(t, w.notes(), 300)
		require.Greater(t, must(os.Stat(fileOf(w, d))).Size(), int64(1<<20), "nothing was moved")
		return w.Trace().Hash()
	}
	fresh := run(nil)
	arena := sim.WAL.NewArena()
	defer arena.Close()
	for range 3 {
		require.Equal(t, fresh, run(arena))
		spoil(t, arena)
	}
}

func TestArenaRemovesItsFiles(t *testing.T) {
	arena := sim.WAL.NewArena()
	w := newWorld(t, sim.Config{Arena: arena})
	folder := filepath.Dir(fileOf(w, w.bank("bank")))
	require.DirExists(t, folder)
	w.Close()
	arena.Close()
	require.NoDirExists(t, folder)
}

// What a killed process leaves behind, the next arena removes, and nothing else.
func TestFilesOfAKilledProcessAreRemoved(t *testing.T) {
	const ask = "TILLSTORM_SIM_DIE"
	w := newWorld(t, over(sim.WAL, nil))
	ours := filepath.Dir(fileOf(w, w.bank("bank")))
	if os.Getenv(ask) != "" {
		fmt.Println(ours)
		must(0, must(os.FindProcess(os.Getpid())).Kill())
	}
	child := osexec.Command(must(os.Executable()), "-test.run=^TestFilesOfAKilledProcessAreRemoved$")
	child.Env = append(os.Environ(), ask+"=1")
	out, err := child.Output()
	require.Error(t, err, "it was killed")
	left, _, _ := strings.Cut(string(out), "\n")
	require.Contains(t, left, "tillstorm-")

	newWorld(t, over(sim.WAL, nil)).bank("bank")
	require.NoDirExists(t, left)
	require.DirExists(t, ours)
}
