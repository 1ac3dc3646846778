package sim_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

var start = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)

const ms = time.Millisecond

// faults does what its functions say and remembers the steps it was asked about.
type faults struct {
	step    func(sim.Step) sim.Strike
	message func(*sim.Message) sim.Passage
	seen    []string
}

func (f *faults) Step(s sim.Step) sim.Strike {
	f.seen = append(f.seen, s.Name())
	if f.step == nil {
		return sim.Strike{}
	}
	return f.step(s)
}

func (f *faults) Message(m *sim.Message) sim.Passage {
	if f.message == nil {
		return sim.Passage{}
	}
	return f.message(m)
}

// crashAt kills the process at each of the named steps and boots it a second later.
func crashAt(names ...string) *faults {
	return &faults{step: func(s sim.Step) sim.Strike {
		return sim.Strike{Crash: slices.Contains(names, s.Name()), Restart: time.Second}
	}}
}

// onMessage lets passage decide about the message of that name.
func onMessage(name string, passage sim.Passage) *faults {
	return &faults{message: func(m *sim.Message) sim.Passage {
		if m.Name() == name {
			return passage
		}
		return sim.Passage{}
	}}
}

// world is a world with short words for what the tests do with it.
type world struct {
	*sim.World
	t testing.TB
}

// newWorld returns a world that kills the test binary if a task never comes back.
func newWorld(t testing.TB, c sim.Config) *world {
	c.Start = start
	w := &world{sim.New(c), t}
	guard := time.AfterFunc(10*time.Second, func() {
		resumes, running := w.Progress()
		panic(fmt.Sprintf("%s hangs after %d resumes in %q", t.Name(), resumes, running))
	})
	t.Cleanup(func() {
		guard.Stop()
		if t.Failed() {
			t.Log("panics:", w.story(sim.EventPanic))
		}
		w.Close()
	})
	return w
}

func with(f *faults) sim.Config {
	if f == nil {
		return sim.Config{}
	}
	return sim.Config{Faults: f}
}

// over is with, for a world whose databases have that journal.
func over(j sim.Journal, f *faults) sim.Config {
	c := with(f)
	c.Journal = j
	return c
}

// eachJournal runs a test of what all journals have in common.
func eachJournal(t *testing.T, test func(t *testing.T, j sim.Journal)) {
	for _, j := range []sim.Journal{sim.MemDB, sim.WAL} {
		t.Run(j.String(), func(t *testing.T) { test(t, j) })
	}
}

var bankSchema = sim.Schema{Name: "bank", Build: func(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `
		CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, cents INTEGER NOT NULL CHECK (cents >= 0));
		CREATE TABLE transfers (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, cents INTEGER NOT NULL);
		INSERT INTO accounts VALUES (1, 'A', 100), (2, 'B', 100);`)
	return err
}}

func (w *world) bank(name string) *sim.Database {
	d, err := w.Database(name, bankSchema)
	require.NoError(w.t, err)
	return d
}

// task adds a node whose first life runs f.
func (w *world) task(name string, f func(p *sim.Process)) *sim.Node {
	lives := 0
	return w.Node(name, func(p *sim.Process) {
		if lives++; lives == 1 {
			f(p)
		}
	})
}

// value reads one committed value.
func (w *world) value(d *sim.Database, query string) any {
	_, rows, err := d.Query(query)
	require.NoError(w.t, err)
	require.Len(w.t, rows, 1)
	return rows[0][0]
}

func (w *world) balances(d *sim.Database) any {
	return w.value(d, "SELECT group_concat(name || cents ORDER BY name) FROM accounts")
}

// note writes a result to the trace, where the tests look for it.
func note(p *sim.Process, op string, result any) { p.Note(op, fmt.Sprint(result)) }

// story tells the records of the given kinds as "AT NODE/TASK OP: DETAIL".
func (w *world) story(events ...sim.Event) []string {
	var lines []string
	for _, r := range w.Trace().Records {
		if slices.Contains(events, r.Event) {
			line := strings.TrimSpace(fmt.Sprintf("%v %s/%s %s", r.At, r.Node, r.Task, r.Op))
			if r.Detail != "" {
				line += ": " + r.Detail
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func (w *world) notes() []string { return w.story(sim.EventNote) }

// changes tells the row changes.
func (w *world) changes() []string {
	var lines []string
	for _, r := range w.Trace().Records {
		if r.Event == sim.EventRow {
			lines = append(lines, r.Change.String())
		}
	}
	return lines
}

// at returns when the first record of that kind and operation was made.
func (w *world) at(event sim.Event, op string) time.Duration {
	for _, r := range w.Trace().Records {
		if r.Event == event && r.Op == op {
			return r.At
		}
	}
	require.Fail(w.t, "no such record", "%s %s in %v", event, op, w.story(event))
	return 0
}

// must is for calls inside tasks that can't fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func exec(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string, args ...any) {
	must(db.ExecContext(ctx, query, args...))
}

func begin(ctx context.Context, db *sql.DB) *sql.Tx { return must(db.BeginTx(ctx, nil)) }

const (
	takeA = "-- name: TakeA\nUPDATE accounts SET cents = cents - 10 WHERE name = 'A'"
	giveB = "-- name: GiveB\nUPDATE accounts SET cents = cents + 10 WHERE name = 'B'"
	readA = "-- name: ReadA\nSELECT cents FROM accounts WHERE name = 'A'"
)

// background is the context of code that sets no deadline.
var background = context.Background()

// post sends a request and returns the answer's status and body, or the error.
func post(ctx context.Context, p *sim.Process, url, body string) (string, error) {
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body)))
	resp, err := p.HTTPClient().Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(bytes.TrimSpace(b))), err
}

// answer notes how a request to http://server/work ended.
func answer(ctx context.Context, p *sim.Process) {
	got, err := post(ctx, p, "http://server/work", "hello")
	if err != nil {
		got = err.Error()
	}
	note(p, "answer", got)
}

// work names requests "work", keyed by the header Key.
var work = sim.Naming{
	Request:   func(r *http.Request, _ []byte) (kind, key string) { return "work", r.Header.Get("Key") },
	Statement: func(string, []driver.NamedValue) string { return "" },
}
