package sim_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

var dueSchema = sim.Schema{Name: "due", Build: func(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `CREATE TABLE jobs (id INTEGER PRIMARY KEY, due_ms INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0)`)
	return err
}}

// seer is faults that also see ahead.
type seer struct {
	faults
	armed func(sim.Step) bool
	asked int
}

func (s *seer) Armed(step sim.Step) bool        { s.asked++; return s.armed != nil && s.armed(step) }
func (s *seer) Over(string, time.Duration) bool { return s.armed == nil }

// due runs a loop every ten seconds that does jobs which are due, and returns the
// names of the runs and when each job was done.
func due(t *testing.T, f sim.Faults, look func(p *sim.Process), until time.Duration, jobs ...time.Duration) (runs, done []string) {
	w := newWorld(t, sim.Config{Faults: f})
	d, err := w.Database("due", dueSchema)
	require.NoError(t, err)
	for i, at := range jobs {
		require.NoError(t, d.Exec("INSERT INTO jobs(id, due_ms) VALUES (?, ?)", i+1, start.Add(at).UnixMilli()))
	}
	w.Node("a", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		p.Every("work", 10*time.Second, func(ctx context.Context) {
			if look != nil {
				look(p)
			}
			var id int
			if db.QueryRowContext(ctx, "-- name: NextJob\nSELECT id FROM jobs WHERE done = 0 AND due_ms <= db_now_ms()").Scan(&id) == nil {
				exec(ctx, db, "UPDATE jobs SET done = 1 WHERE id = ?", id)
			}
		})
	})
	w.Run(until)
	for i := range w.Trace().Records {
		switch r := &w.Trace().Records[i]; {
		case r.Event == sim.EventSQL && r.Op == "NextJob":
			runs = append(runs, r.Task)
		case r.Event == sim.EventRow && r.Node == "a":
			done = append(done, fmt.Sprint(r.Change.Int("id"), " at ", r.At.Truncate(10*time.Second)))
		}
	}
	return runs, done
}

// Runs that find nothing are left out; what becomes due is done at the very run
// that would have done it.
func TestIdleRunsAreLeftOut(t *testing.T) {
	const day = 24 * time.Hour
	jobs := []time.Duration{3*time.Hour + 17*time.Second, 3*time.Hour + 18*time.Second, 40 * time.Hour}
	allRuns, wanted := due(t, &faults{}, nil, 2*day, jobs...)
	require.Len(t, wanted, 3)
	require.Len(t, allRuns, 2*24*360, "without foresight nothing is left out")

	for _, f := range []sim.Faults{nil, &seer{}} {
		runs, done := due(t, f, nil, 2*day, jobs...)
		assert.Equal(t, wanted, done)
		assert.Less(t, len(runs), 10)
		for _, run := range runs {
			assert.Contains(t, allRuns, run)
		}
	}
}

// A run that faults will strike takes place, and is struck.
func TestIdleRunsThatWillBeStruckTakePlace(t *testing.T) {
	runs, _ := due(t, nil, nil, time.Hour)
	offset := runs[0][len("work@14:00:"):]
	name := "a/work@14:30:" + offset + "/NextJob:after"
	f := &seer{armed: func(s sim.Step) bool { return s.Name() == name }}
	f.step = func(s sim.Step) sim.Strike {
		return sim.Strike{Stall: map[bool]time.Duration{true: time.Second}[s.Name() == name]}
	}
	runs, _ = due(t, f, nil, time.Hour)
	assert.Contains(t, f.seen, name)
	assert.Contains(t, runs, "work@14:30:"+offset)
	assert.Less(t, len(runs), 10)
}

// A run that does more than to read may not be left out.
func TestBusyRunsAreNotLeftOut(t *testing.T) {
	for name, busy := range map[string]func(p *sim.Process){
		"reads its node's clock": func(p *sim.Process) { p.Clock().Now() },
		"sleeps":                 func(p *sim.Process) { p.Clock().Sleep(background, ms) },
		"calls somebody":         func(p *sim.Process) { p.HTTPClient().Get("http://nobody/") },
		"starts a task":          func(p *sim.Process) { p.Go("aside", func(context.Context) {}) },
		"warns":                  func(p *sim.Process) { p.Logger().Warn("something") },
	} {
		t.Run(name, func(t *testing.T) {
			runs, _ := due(t, nil, busy, 10*time.Minute)
			assert.Len(t, runs, 60)
		})
	}
	runs, _ := due(t, nil, func(p *sim.Process) { p.NewID() }, 10*time.Minute)
	assert.Less(t, len(runs), 5, "an identifier of the task's own is no news to anybody")
}

// What another loop writes is seen by the next run too, whoever was asleep when it did.
func TestIdleRunsEndWithTheWriteOfAnotherLoop(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d, err := w.Database("due", dueSchema)
	require.NoError(t, err)
	var wrote, found []time.Duration
	w.Node("a", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		p.Every("work", 10*time.Second, func(ctx context.Context) {
			if n := 0; db.QueryRowContext(ctx, "-- name: Look\nSELECT id FROM jobs WHERE done = 0").Scan(&n) == nil {
				found = append(found, w.Now())
				exec(ctx, db, "UPDATE jobs SET done = 1")
			}
		})
		p.Every("write", 20*time.Minute, func(ctx context.Context) {
			exec(ctx, db, "INSERT INTO jobs(due_ms) VALUES (0)")
			wrote = append(wrote, w.Now())
		})
	})
	w.Run(2 * time.Hour)
	require.Len(t, wrote, 6)
	require.Len(t, found, 6)
	for i, at := range wrote {
		assert.Greater(t, found[i], at)
		assert.LessOrEqual(t, found[i]-at, 10*time.Second)
	}
	looks := 0
	for _, r := range w.Trace().Records {
		if r.Op == "Look" {
			looks++
		}
	}
	assert.Less(t, looks, 50, "the others are still left out")
}

// A run that would have to wait for another loop's transaction is not left out.
func TestIdleRunsEndWithAnotherLoopsTransaction(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d, err := w.Database("due", dueSchema)
	require.NoError(t, err)
	failed := 0
	w.Node("a", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{Immediate: true, BusyTimeout: time.Second})
		p.Every("work", 10*time.Second, func(ctx context.Context) {
			if n := 0; db.QueryRowContext(ctx, "SELECT count(*) FROM jobs").Scan(&n) != nil {
				failed++
			}
		})
		p.Every("hold", time.Hour, func(ctx context.Context) {
			tx := begin(ctx, db)
			defer tx.Rollback()
			p.Clock().Sleep(ctx, time.Minute)
		})
	})
	w.Run(time.Hour)
	assert.Equal(t, 6, failed)
}

// What somebody else writes is seen by the next run.
func TestIdleRunsEndWithTheNextWrite(t *testing.T) { eachJournal(t, idleRunsEndWithTheNextWrite) }

func idleRunsEndWithTheNextWrite(t *testing.T, j sim.Journal) {
	w := newWorld(t, over(j, nil))
	d, err := w.Database("due", dueSchema)
	require.NoError(t, err)
	var found []time.Duration
	w.Node("a", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		p.Every("work", 10*time.Second, func(ctx context.Context) {
			n := 0
			if db.QueryRowContext(ctx, "SELECT id FROM jobs WHERE done = 0").Scan(&n) == nil {
				found = append(found, w.Now().Truncate(10*time.Second))
				exec(ctx, db, "UPDATE jobs SET done = 1")
			}
		})
	})
	w.At(time.Hour, "operator", func() { require.NoError(t, d.Exec("INSERT INTO jobs(due_ms) VALUES (0)")) })
	w.Run(2 * time.Hour)
	require.Len(t, found, 1)
	assert.Equal(t, time.Hour, found[0])
}
