package sim

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// Tape keeps the SQL statements that a world executes, so that they can be executed
// again bare: through the same driver, with the same settings, by nothing else.
// What a world costs beyond that is the harness. Set Config.Tape to record one.
type Tape struct {
	journal   Journal
	entries   []tapeEntry
	databases []*tapeDatabase
}

type tapeDatabase struct {
	schema Schema
	name   string
	conns  []*rawConn // as the world opened them
}

type tapeEntry struct {
	database, conn int
	query          string
	args           []driver.NamedValue
	rows           bool
}

// add notes a statement that succeeded. It does nothing without a tape.
func (t *Tape) add(d *Database, raw *rawConn, query string, args []driver.NamedValue, rows bool) {
	if t == nil {
		return
	}
	entry := tapeEntry{query: query, args: args, rows: rows}
	entry.database, entry.conn = t.find(d, raw)
	t.journal = d.w.arena.journal
	t.entries = append(t.entries, entry)
}

// find returns the numbers of a connection and of its database.
func (t *Tape) find(d *Database, raw *rawConn) (database, conn int) {
	for database < len(t.databases) && t.databases[database].name != d.Name {
		database++
	}
	if database == len(t.databases) {
		t.databases = append(t.databases, &tapeDatabase{schema: d.schema, name: d.Name})
	}
	known := t.databases[database]
	for i, other := range known.conns {
		if other == raw {
			return database, i
		}
	}
	known.conns = append(known.conns, raw)
	return database, len(known.conns) - 1
}

// Len returns the number of statements on the tape.
func (t *Tape) Len() int { return len(t.entries) }

// Player executes a tape bare.
type Player struct {
	tape  *Tape
	arena *Arena
	slots []*slot
	conns [][]*sqlite3.SQLiteConn
}

// NewPlayer opens the tape's connections. It must be closed.
func NewPlayer(t *Tape) (*Player, error) {
	p := &Player{tape: t, arena: t.journal.NewArena()}
	for _, d := range t.databases {
		s, err := p.arena.takeSlot(d.schema)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p.slots = append(p.slots, s)
		p.conns = append(p.conns, nil)
		for range d.conns {
			c, err := s.openBare()
			if err != nil {
				return nil, errors.Join(err, p.Close())
			}
			p.conns[len(p.conns)-1] = append(p.conns[len(p.conns)-1], c)
		}
	}
	return p, nil
}

// Reset brings the databases back to where the tape begins.
func (p *Player) Reset() error {
	for i, s := range p.slots {
		if err := s.restore(p.arena.images[p.tape.databases[i].schema.Name]); err != nil {
			return err
		}
	}
	return nil
}

// Play executes all statements and reads all rows.
func (p *Player) Play() error {
	for i := range p.tape.entries {
		if err := p.play(&p.tape.entries[i]); err != nil {
			return fmt.Errorf("statement %d of the tape, %q: %w", i+1, p.tape.entries[i].query, err)
		}
	}
	return nil
}

func (p *Player) play(e *tapeEntry) error {
	c := p.conns[e.database][e.conn]
	if e.rows {
		_, _, err := (&rawConn{SQLiteConn: c}).readAll(e.query, e.args)
		return err
	}
	_, err := c.ExecContext(context.Background(), e.query, e.args)
	return err
}

// Close closes the connections.
func (p *Player) Close() error {
	for _, conns := range p.conns {
		for _, c := range conns {
			c.Close()
		}
	}
	p.arena.Close()
	return nil
}
