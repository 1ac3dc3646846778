package sim

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// Database is a SQLite database of the world. It survives every crash.
type Database struct {
	Name    string
	w       *World
	schema  Schema
	slot    *slot
	waiters waitlist // for a lock
	holders int      // connections with an open transaction
	version int      // grows with each write, see idleRun
}

// DBOptions is how a process opens a database.
type DBOptions struct {
	// BusyTimeout is how long a statement waits for a lock, in virtual time; 5 s if zero.
	BusyTimeout time.Duration
	// MaxConns bounds the open connections of this *sql.DB; zero does not. Use it
	// in place of SetMaxOpenConns, which would stop the world.
	MaxConns int
	// Immediate makes transactions begin with BEGIN IMMEDIATE.
	Immediate bool
}

// Database adds a database with the schema's content.
func (w *World) Database(name string, schema Schema) (*Database, error) {
	s, err := w.arena.takeSlot(schema)
	if err != nil {
		return nil, err
	}
	s.now = func() int64 { return w.trace.Start.Add(w.now).UnixMilli() }
	d := &Database{Name: name, w: w, schema: schema, slot: s}
	w.databases = append(w.databases, d)
	return d, nil
}

// Databases returns the world's databases in the order they were added.
func (w *World) Databases() []*Database { return w.databases }

func (d *Database) close() {
	d.slot.now = func() int64 { return 0 }
	d.slot.taken = false
}

// Query reads what is committed, from outside all processes: no step, no time. It
// must not write. While a transaction that has written is open, a [MemDB] database
// answers SQLITE_BUSY.
func (d *Database) Query(query string, args ...any) (columns []string, rows [][]any, err error) {
	columns, values, err := d.slot.anchor.readAll(query, namedValues(args))
	if err != nil {
		return nil, nil, fmt.Errorf("database %s: %w", d.Name, err)
	}
	rows = make([][]any, len(values))
	for i, row := range values {
		for _, v := range row {
			rows[i] = append(rows[i], v)
		}
	}
	return columns, rows, nil
}

// Operator is the node and the task that the trace names for [Database.Exec].
const Operator = "operator"

// Exec changes the database from outside all processes, as an operator's hand
// would. The changed rows stand in the trace.
func (d *Database) Exec(query string, args ...any) error {
	raw, err := d.slot.take()
	if err != nil {
		return fmt.Errorf("database %s: %w", d.Name, err)
	}
	defer d.slot.give(raw)
	st := d.w.arena.statement(query)
	raw.soiled = raw.soiled || st.soils
	if _, err := raw.ExecContext(context.Background(), st.text, namedValues(args)); err != nil {
		return fmt.Errorf("database %s: %w", d.Name, err)
	}
	d.version++
	d.publish(raw, Record{At: d.w.now, Node: Operator, Task: Operator})
	return nil
}

func namedValues(args []any) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			v = fmt.Sprint(a)
		}
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return values
}

// publish writes the rows that a commit changed to the trace.
func (d *Database) publish(raw *rawConn, by Record) {
	for _, ref := range raw.takeChanged() {
		change := &Change{Database: d.Name, Table: ref.table, RowID: ref.id}
		columns, rows, err := raw.readAll(`SELECT * FROM main."`+ref.table+`" WHERE rowid = ?`, []driver.NamedValue{{Ordinal: 1, Value: ref.id}})
		if err != nil && strings.Contains(err.Error(), "no such table") {
			continue // the transaction dropped it
		}
		if err != nil {
			panic(fmt.Sprintf("sim: reading a changed row of %s.%s: %v", d.Name, ref.table, err))
		}
		if len(rows) == 1 {
			change.Columns = columns
			for _, v := range rows[0] {
				change.Values = append(change.Values, v)
			}
		}
		by.Event, by.Change = EventRow, change
		d.w.trace.add(by)
	}
}

// OpenDB returns a *sql.DB on the database, each of whose operations is a step. It
// is closed when the process ends.
func (p *Process) OpenDB(d *Database, o DBOptions) *sql.DB {
	p.enter("OpenDB")
	if o.BusyTimeout == 0 {
		o.BusyTimeout = 5 * time.Second
	}
	db := sql.OpenDB(&connector{p: p, db: d, options: o})
	db.SetMaxIdleConns(1 << 20)
	p.databases = append(p.databases, db)
	return db
}

// connector makes the connections of one *sql.DB and keeps their number in bounds.
type connector struct {
	p       *Process
	db      *Database
	options DBOptions
	open    int
	waiters waitlist // for a connection
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	t := c.p.enter(callSQL)
	for c.options.MaxConns > 0 && c.open >= c.options.MaxConns {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		c.waiters.wait(t, ctx, noDeadline)
	}
	c.open++ // before the next wait, so that nobody takes this place
	raw, err := c.connect(ctx, t)
	if err != nil {
		c.leave()
		return nil, err
	}
	conn := &conn{p: c.p, db: c.db, pool: c, raw: raw, busyTimeout: c.options.BusyTimeout}
	c.p.conns = append(c.p.conns, conn)
	return conn, nil
}

// opConnect is what the trace calls the opening of a connection that met a lock.
const opConnect = "connect"

// connect takes a raw connection. Opening one runs PRAGMAs, which meet locks like
// any other read; one that was open already must behave as if it had not been.
func (c *connector) connect(ctx context.Context, t *task) (*rawConn, error) {
	t.acted()
	deadline := t.p.w.now + c.options.BusyTimeout
	for waited := false; ; waited = true {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		err := c.db.slot.anchor.exec("PRAGMA schema_version")
		if err == nil {
			return c.db.slot.take()
		}
		if !isBusy(err) || t.p.w.now >= deadline {
			t.record(Record{Event: EventSQL, Op: opConnect, Detail: "error: " + err.Error()})
			return nil, err
		}
		if !waited {
			t.record(Record{Event: EventBusy, Op: opConnect})
		}
		c.db.waiters.wait(t, ctx, deadline)
	}
}

// leave gives a connection's place to those who wait for one.
func (c *connector) leave() {
	c.open--
	c.waiters.wake()
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

// isBusy says that waiting for another connection's lock may help. It never helps
// a reader whose snapshot is older than what it wants to write over.
func isBusy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == sqlite3.ErrBusy && e.ExtendedCode != sqlite3.ErrBusySnapshot
}
