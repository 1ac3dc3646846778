package sim

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// Arena keeps what is dear to make and lends it to one world after the other: raw
// SQLite connections with their compiled statements, the databases behind them,
// coroutines with their grown stacks, and the trace's memory. What it lends is
// reset, so that a used arena and a new one give the same trace. One goroutine uses
// it at a time. It must be closed.
type Arena struct {
	journal    Journal
	folder     *folder // of the files, nil until there is one
	slots      []*slot
	images     map[string]*slot
	statements map[string]*statement
	coroutines []*coroutine
	records    []Record
	opened     int // databases made, for their names
}

// NewArena returns an empty arena whose databases are in memory, see [MemDB].
func NewArena() *Arena { return MemDB.NewArena() }

// Close closes the connections, removes the files and ends the coroutines.
func (a *Arena) Close() {
	for _, s := range a.slots {
		s.closeAll()
	}
	for _, s := range a.images { // order-free: each is closed
		s.closeAll()
	}
	if a.folder != nil {
		a.folder.remove()
	}
	for _, c := range a.coroutines {
		c.stop()
	}
	a.slots, a.images, a.coroutines, a.folder = nil, nil, nil, nil
}

func (a *Arena) takeCoroutine() *coroutine {
	n := len(a.coroutines)
	if n == 0 {
		return newCoroutine()
	}
	c := a.coroutines[n-1]
	a.coroutines = a.coroutines[:n-1]
	return c
}

func (a *Arena) giveCoroutine(c *coroutine) { a.coroutines = append(a.coroutines, c) }

func (a *Arena) takeRecords() []Record {
	r := a.records
	a.records = nil
	clear(r)
	return r[:0]
}

func (a *Arena) giveRecords(r []Record) { a.records = r }

// maxStatements bounds the memory for SQL texts that are never the same twice.
const maxStatements = 4096

func (a *Arena) statement(query string) *statement {
	if s, ok := a.statements[query]; ok {
		return s
	}
	if len(a.statements) >= maxStatements {
		clear(a.statements)
	}
	s := parseStatement(query)
	a.statements[query] = s
	return s
}

// Schema is how a database looks when the world begins. Build runs once for each
// arena and name; later worlds get a copy of what it made.
type Schema struct {
	Name  string
	Build func(ctx context.Context, db *sql.DB) error
}

// image returns the database that the schema builds.
func (a *Arena) image(schema Schema) (*slot, error) {
	if s, ok := a.images[schema.Name]; ok {
		return s, nil
	}
	s, err := a.newSlot()
	if err != nil {
		return nil, err
	}
	if schema.Build != nil {
		db := sql.OpenDB(slotConnector{s})
		err := schema.Build(context.Background(), db)
		if err := errors.Join(err, db.Close()); err != nil {
			s.closeAll()
			return nil, fmt.Errorf("building schema %q: %w", schema.Name, err)
		}
		if err := s.traceable(); err != nil {
			s.closeAll()
			return nil, fmt.Errorf("building schema %q: %w", schema.Name, err)
		}
	}
	if s.version, err = s.schemaVersion(); err != nil {
		s.closeAll()
		return nil, fmt.Errorf("building schema %q: %w", schema.Name, err)
	}
	a.images[schema.Name] = s
	return s, nil
}

// traceable refuses tables whose changes SQLite does not report.
func (s *slot) traceable() error {
	_, rows, err := s.anchor.readAll("SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr ORDER BY name", nil)
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("the table %v is WITHOUT ROWID: its changes can't be traced", rows[0][0])
	}
	return err
}

// takeSlot returns a free database with the schema's content.
func (a *Arena) takeSlot(schema Schema) (*slot, error) {
	img, err := a.image(schema)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(a.slots); i++ {
		s := a.slots[i]
		if s.taken || s.schema != schema.Name {
			continue
		}
		if version, err := s.schemaVersion(); err != nil || version != img.version {
			s.closeAll() // a world changed the schema, and its connections remember that
			a.slots = slices.Delete(a.slots, i, i+1)
			i--
			continue
		}
		s.taken = true
		return s, s.restore(img)
	}
	s, err := a.newSlot()
	if err != nil {
		return nil, err
	}
	s.schema, s.taken = schema.Name, true
	a.slots = append(a.slots, s)
	return s, s.restore(img)
}

// slot is one SQLite database, with its raw connections. The anchor keeps the
// database alive and is the kernel's own eye on it.
type slot struct {
	dsn     string
	wal     bool
	schema  string
	taken   bool
	version int64 // of an image's schema
	anchor  *rawConn
	free    []*rawConn
	now     func() int64 // milliseconds, what db_now_ms() returns
}

func (a *Arena) newSlot() (*slot, error) {
	dsn, err := a.dsn()
	if err != nil {
		return nil, err
	}
	s := &slot{dsn: dsn, wal: a.journal == WAL, now: func() int64 { return 0 }}
	s.anchor, err = s.open()
	return s, err
}

// rawConn is a connection without the kernel in between.
type rawConn struct {
	*sqlite3.SQLiteConn
	changed    []rowRef // since the last commit or rollback
	savepoints []savepoint
	soiled     bool // it must not be used by another process
}

func (s *slot) open() (*rawConn, error) {
	c, err := s.openBare()
	if err != nil {
		return nil, err
	}
	raw := &rawConn{SQLiteConn: c}
	if err := s.prepare(raw); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	raw.RegisterUpdateHook(func(_ int, database, table string, id int64) {
		if database == "main" {
			raw.changed = append(raw.changed, rowRef{table, id})
		}
	})
	raw.RegisterRollbackHook(raw.forget)
	return raw, nil
}

// openBare opens a connection with the kernel's settings and without its hooks.
func (s *slot) openBare() (*sqlite3.SQLiteConn, error) {
	c, err := (&sqlite3.SQLiteDriver{}).Open(s.dsn)
	if err != nil {
		return nil, err
	}
	bare := c.(*sqlite3.SQLiteConn)
	err = errors.Join(
		bare.RegisterFunc("db_now_ms", func() int64 { return s.now() }, false),
		(&rawConn{SQLiteConn: bare}).exec(checkpoints))
	if err != nil {
		return nil, errors.Join(err, bare.Close())
	}
	return bare, nil
}

// prepare makes a new connection one of the kernel's. Functions whose answer would
// differ between two runs fail.
func (s *slot) prepare(raw *rawConn) error {
	var err error
	for _, name := range []string{"random", "randomblob", "total_changes"} {
		refuse := func(...any) (any, error) { return nil, fmt.Errorf("sim: %s() in SQL differs from run to run", name) }
		err = errors.Join(err, raw.RegisterFunc(name, refuse, false))
	}
	return errors.Join(err, raw.exec("CREATE TEMP TABLE tillstorm_reset(id INTEGER PRIMARY KEY)"), raw.reset())
}

// reset makes last_insert_rowid() and changes() forget what the connection has done.
func (r *rawConn) reset() error {
	r.forget()
	return errors.Join(
		r.exec("REPLACE INTO temp.tillstorm_reset VALUES (0)"),
		r.exec("DELETE FROM temp.tillstorm_reset WHERE id < 0"))
}

// take returns a connection that no process has left a mark on.
func (s *slot) take() (*rawConn, error) {
	n := len(s.free)
	if n == 0 {
		return s.open()
	}
	raw := s.free[n-1]
	s.free = s.free[:n-1]
	return raw, nil
}

// give takes a connection back: what was open on it is rolled back.
func (s *slot) give(raw *rawConn) {
	if !raw.AutoCommit() {
		raw.exec("ROLLBACK")
	}
	if raw.soiled || !raw.AutoCommit() || raw.reset() != nil {
		raw.Close()
		return
	}
	s.free = append(s.free, raw)
}

// schemaVersion returns SQLite's count of the schema's changes.
func (s *slot) schemaVersion() (int64, error) {
	_, rows, err := s.anchor.readAll("PRAGMA schema_version", nil)
	if err != nil {
		return 0, err
	}
	return rows[0][0].(int64), nil
}

// restore makes the database equal to the image, page by page. A backup counts the
// schema as changed, for which each connection would compile each of its statements
// again; but it is the schema that they know, see takeSlot.
func (s *slot) restore(img *slot) error {
	b, err := s.anchor.Backup("main", img.anchor.SQLiteConn, "main")
	if err != nil {
		return fmt.Errorf("resetting a database: %w", err)
	}
	done, err := b.Step(-1)
	if err == nil && !done {
		err = errors.New("a connection still holds a lock")
	}
	err = errors.Join(err, b.Finish())
	if err == nil {
		err = s.anchor.exec(fmt.Sprintf("PRAGMA schema_version = %d", img.version))
	}
	if err == nil && s.wal {
		err = s.emptyLog()
	}
	if err != nil {
		return fmt.Errorf("resetting a database: %w", err)
	}
	return nil
}

func (s *slot) closeAll() {
	for _, raw := range s.free {
		raw.Close()
	}
	s.anchor.Close()
	s.free = nil
}

func (r *rawConn) exec(query string) error {
	_, err := r.ExecContext(context.Background(), query, nil)
	return err
}

// readAll runs a query and reads its rows whole, so that no lock outlives the call.
func (r *rawConn) readAll(query string, args []driver.NamedValue) (columns []string, rows [][]driver.Value, err error) {
	cursor, err := r.QueryContext(context.Background(), query, args)
	if err != nil {
		return nil, nil, err
	}
	defer cursor.Close()
	columns = cursor.Columns()
	for {
		row := make([]driver.Value, len(columns))
		switch err := cursor.Next(row); err {
		case nil:
			rows = append(rows, row)
		case io.EOF:
			return columns, rows, nil
		default:
			return nil, nil, err
		}
	}
}

// slotConnector opens a slot for the schema's builder, outside any world.
type slotConnector struct{ s *slot }

func (c slotConnector) Connect(context.Context) (driver.Conn, error) {
	raw, err := c.s.open()
	if err != nil {
		return nil, err
	}
	return raw.SQLiteConn, nil
}

func (c slotConnector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }
