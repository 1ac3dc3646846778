package sim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 18: what is written can be read again.
func TestJSONLinesRoundTrip(t *testing.T) {
	w, d := transferWorld(t, chance(1), nil, "A", "B", "C", "D")
	require.NoError(t, d.Exec("UPDATE accounts SET cents = ? WHERE id = 1", int64(1)<<60+1))
	require.NoError(t, d.Exec("INSERT INTO accounts VALUES (-7, '<日本>', 2.5)"))
	require.NoError(t, d.Exec("DELETE FROM accounts WHERE id = -7"))
	var out bytes.Buffer
	require.NoError(t, w.Trace().WriteJSON(&out))
	require.Contains(t, out.String(), "<日本>")
	decoder := json.NewDecoder(&out)
	events := map[sim.Event]int{}
	for _, want := range w.Trace().Records {
		var got sim.Record
		require.NoError(t, decoder.Decode(&got))
		if want.Message != nil {
			m := *want.Message
			m.Header, m.At = nil, 0
			if len(m.Body) == 0 {
				m.Body = nil
			}
			want.Message = &m
		}
		require.Equal(t, want, got)
		events[got.Event]++
	}
	require.False(t, decoder.More())
	for _, event := range []sim.Event{sim.EventBoot, sim.EventCrash, sim.EventSQL, sim.EventRow, sim.EventSend, sim.EventDeliver, sim.EventDrop, sim.EventCopy, sim.EventAnswer, sim.EventFail, sim.EventStall, sim.EventNote} {
		require.Positive(t, events[event], event)
	}
}

func TestTextLines(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		p.Note("op", "two\nlines")
		p.Clock().Sleep(background, 10*time.Hour)
		exec(background, p.OpenDB(d, sim.DBOptions{}), giveB)
		p.Note("last", "")
	})
	w.Run(24 * time.Hour)
	var out strings.Builder
	require.NoError(t, w.Trace().WriteText(&out))
	require.Equal(t, strings.TrimPrefix(`
14:00:00.000000  n                                    boot       life 1
14:00:00.000000  n         boot#1                     note     op  two
    lines
2026-03-02T00:00:00.001000  n         boot#1                     sql      GiveB  1 row
2026-03-02T00:00:00.001000  n         boot#1                     row        bank.accounts#2 id=2 name=B cents=110
2026-03-02T00:00:00.001000  n         boot#1                     note     last
`, "\n"), out.String())
	require.Equal(t, "2027-03-01T14:00:00.000000", w.Trace().Clock(365*24*time.Hour))
}

// OpenTx says that the task held a transaction.
func TestRecordsTellOpenTransactions(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		p.Note("0", "")
		tx := begin(background, db)
		p.Note("1", "")
		must(0, tx.Rollback())
		p.Note("2", "")
	})
	w.Run(time.Second)
	for _, r := range w.Trace().Records {
		if r.Event == sim.EventNote {
			require.Equal(t, r.Op == "1", r.OpenTx)
		}
	}
}

// hashOf returns the hash of the trace that play leaves. It goes
// through the world's only doors: notes, messages and rows are what a task makes.
func hashOf(t *testing.T, play func(p *sim.Process, d *sim.Database)) uint64 {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) { play(p, d) })
	w.Run(time.Second)
	require.Empty(t, w.story(sim.EventPanic))
	return w.Trace().Hash()
}

// The hash tells apart what a reader can tell apart.
func TestHashChangesWithEachField(t *testing.T) {
	seen := map[uint64]string{}
	add := func(what string, play func(p *sim.Process, d *sim.Database)) {
		h := hashOf(t, play)
		require.Equal(t, h, hashOf(t, play), what)
		require.Empty(t, seen[h], "the same hash as %s", what)
		seen[h] = what
	}
	add("nothing", func(*sim.Process, *sim.Database) {})
	for _, pair := range [][2]string{{"", ""}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {"b", "a"}} {
		add(fmt.Sprintf("note %q", pair), func(p *sim.Process, _ *sim.Database) { p.Note(pair[0], pair[1]) })
	}
	add("later", func(p *sim.Process, _ *sim.Database) { p.Clock().Sleep(background, 1); p.Note("", "") })
	add("twice", func(p *sim.Process, _ *sim.Database) { p.Note("", ""); p.Note("", "") })
	for _, value := range []string{"NULL", "0", "1", "0.0", "'0'", "x'30'", "''", "x''", "'NULL'"} {
		add("value "+value, func(p *sim.Process, d *sim.Database) {
			must(0, d.Exec("CREATE TABLE v (v)"))
			must(0, d.Exec("INSERT INTO v VALUES ("+value+")"))
		})
	}
	add("column", func(p *sim.Process, d *sim.Database) {
		must(0, d.Exec("CREATE TABLE v (w)"))
		must(0, d.Exec("INSERT INTO v VALUES (NULL)"))
	})
	add("table", func(p *sim.Process, d *sim.Database) {
		must(0, d.Exec("CREATE TABLE w (v)"))
		must(0, d.Exec("INSERT INTO w VALUES (NULL)"))
	})
	add("rowid", func(p *sim.Process, d *sim.Database) {
		must(0, d.Exec("CREATE TABLE v (v)"))
		must(0, d.Exec("INSERT INTO v(rowid, v) VALUES (2, NULL)"))
	})
	for _, m := range [][2]string{{"http://x/", ""}, {"http://x/", "a"}, {"http://x/a", ""}, {"http://xa/", ""}, {"http://x/?a", ""}} {
		add(fmt.Sprintf("message %q", m), func(p *sim.Process, _ *sim.Database) { post(background, p, m[0], m[1]) })
	}
}

// Each field of a record, and of what hangs on it, is part of the hash; a new field too.
func TestHashCoversEachField(t *testing.T) {
	unseen := []string{"Record.Seq", "Message.At", "Message.Header"} // the record's place, the record's At, not written
	base := func() (sim.Record, *sim.Message, *sim.Change) {
		m, c := &sim.Message{}, &sim.Change{Columns: []string{"a"}, Values: []any{"b"}}
		return sim.Record{Message: m, Change: c}, m, c
	}
	plain, _, _ := base()
	hashes := map[uint64]string{sim.HashOf(plain): "plain"}
	for which := range 3 {
		r, m, c := base()
		typ := []any{r, *m, *c}[which]
		for i := range reflect.TypeOf(typ).NumField() {
			r, m, c := base()
			field := reflect.ValueOf([]any{&r, m, c}[which]).Elem().Field(i)
			name := reflect.TypeOf(typ).Name() + "." + reflect.TypeOf(typ).Field(i).Name
			if slices.Contains(unseen, name) || name == "Record.Message" || name == "Record.Change" {
				continue
			}
			switch v := field.Addr().Interface().(type) {
			case *[]string:
				*v = []string{"x"}
			case *[]any:
				*v = []any{"x"}
			case *[]byte:
				*v = []byte("x")
			default:
				switch field.Kind() {
				case reflect.String:
					field.SetString("x")
				case reflect.Bool:
					field.SetBool(true)
				default:
					field.SetInt(7)
				}
			}
			h := sim.HashOf(r)
			require.Empty(t, hashes[h], "%s does not change the hash", name)
			hashes[h] = name
		}
	}
	require.Len(t, hashes, 1+7+10+5)
}
