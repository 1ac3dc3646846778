package sim

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strconv"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// errDead is what a process that died gets where a panic would leave database/sql
// with a lock held, on which the caller's own deferred Rollback or Close would wait for
// ever: Query, Begin, Commit and Rollback. The caller's next touch of the world ends it.
var errDead = errors.New("sim: the process has crashed")

// errHostTime refuses a statement whose outcome would depend on when the world runs.
var errHostTime = errors.New("sim: the statement reads the clock of the machine that runs the world: use db_now_ms(), or hand the time in")

// errLost is what is known of an operation whose connection was lost.
var errLost = errors.New("the connection to the database was lost: whether the last statement took effect is not known")

// conn is a connection of a process: each operation is a step, takes virtual time,
// and waits for locks in virtual time.
type conn struct {
	p           *Process
	db          *Database
	pool        *connector
	raw         *rawConn // nil once given back
	busyTimeout time.Duration
	tx          *openTx // nil outside a transaction
	broken      bool    // the connection is lost
}

// openTx is a transaction that is open on a connection.
type openTx struct {
	task *task
	ctx  context.Context
	key  string // the last key a statement of it had
	used bool   // a statement of it has run, so it may hold a lock
	over bool   // its context ended, and it was rolled back
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	var result driver.Result = driver.RowsAffected(0)
	err := c.do(ctx, query, args, func() (int64, error) {
		text := c.p.w.arena.statement(query).text
		r, err := c.raw.ExecContext(context.Background(), text, args)
		if err != nil {
			return 0, err
		}
		c.p.w.tape.add(c.db, c.raw, text, args, false)
		result = r
		return r.RowsAffected()
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// QueryContext implements driver.QueryerContext. All rows are read at once, so
// that no task sleeps while it holds a read lock.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (_ driver.Rows, err error) {
	if c.p.dead {
		return nil, c.stillDead()
	}
	defer survive(&err)
	rows := &memoryRows{}
	err = c.do(ctx, query, args, func() (n int64, err error) {
		text := c.p.w.arena.statement(query).text
		rows.columns, rows.rows, err = c.raw.readAll(text, args)
		if err == nil {
			c.p.w.tape.add(c.db, c.raw, text, args, true)
			c.p.w.current.look(c.db, text, args, rows.rows)
		}
		return int64(len(rows.rows)), err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// survive turns the end of a dead task into an error, see errDead.
func survive(err *error) {
	v := recover()
	if _, ok := v.(crashed); ok {
		*err = errDead
		return
	}
	if v != nil {
		panic(v)
	}
}

// stillDead answers a call that came after the process died.
func (c *conn) stillDead() error {
	if t := c.p.w.current; t != nil && t.p == c.p {
		t.deaths++
		if t.deaths > 2*maxDeaths {
			t.abandon()
		}
	}
	return errDead
}

// do is one statement from the step before it to the step after it.
func (c *conn) do(ctx context.Context, query string, args []driver.NamedValue, run func() (int64, error)) error {
	t := c.p.enter(callSQL)
	w := c.p.w
	st := w.arena.statement(query)
	if c.tx != nil || st.verb != "SELECT" {
		t.acted()
	}
	o := t.operation(st.name, c.key(st, args))
	o.sql = sqlStep{c.db.Name, st.kind(), c.mayWait(st)}
	o.strike = o.step(Before)
	if err := c.ended(ctx); err != nil && st.verb != "ROLLBACK" {
		return err
	}
	if c.tx != nil && st.commits() {
		c.tx.ctx = context.Background() // from here on, only the commit decides
	}
	if st.hostTime {
		return errHostTime
	}
	if st.setsTimeout {
		c.busyTimeout = st.busyTimeout
		return nil
	}
	if c.broken {
		return errLost
	}
	if o.strike.SQL != "" {
		return c.fail(ctx, t, o, Before)
	}
	w.sql++
	t.sleepUntil(ctx, w.now+c.cost(st))
	mark := len(c.raw.changed)
	n, err := c.retry(ctx, t, st, o, run)
	if st.write || st.commits() {
		c.db.version++
	}
	c.raw.noteSavepoint(st, mark, err)
	c.after(t, st, err)
	t.record(Record{Event: EventSQL, Op: o.name(), Detail: outcome(st, n, err)})
	t.mustLive() // who watches the trace may have killed the process
	if c.tx == nil && len(c.raw.changed) > 0 {
		c.db.publish(c.raw, Record{At: w.now, Node: c.p.node.Name, Task: t.name})
	}
	if o.strike = o.end(); o.strike.SQL != "" && err == nil {
		return c.fail(ctx, t, o, After)
	}
	return err
}

// fail lets the operation end as its strike says.
func (c *conn) fail(ctx context.Context, t *task, o operation, phase Phase) error {
	t.record(Record{Event: EventFault, Op: o.name() + phase.String(), Detail: string(o.strike.SQL)})
	switch o.strike.SQL {
	case SQLBusy:
		t.sleepUntil(ctx, c.p.w.now+c.busyTimeout)
		return sqlite3.Error{Code: sqlite3.ErrBusy}
	case SQLFull:
		return sqlite3.Error{Code: sqlite3.ErrFull}
	case SQLLost:
		c.broken = true
		c.rollBack()
		return errLost
	}
	return sqlite3.Error{Code: sqlite3.ErrIoErr}
}

// mayWait says whether the statement would wait for another connection's lock.
// SQLite does not wait inside a transaction that already holds a lock, since that
// could be a deadlock, but for its COMMIT.
func (c *conn) mayWait(st *statement) bool {
	return st.verb != "ROLLBACK" && (c.tx == nil || !c.tx.used || st.commits())
}

// ended returns the error of a context that has ended. The transaction goes with
// its context, as database/sql would have it.
func (c *conn) ended(ctx context.Context) error {
	if err := ended(ctx); err != nil || c.tx == nil {
		return err
	}
	return ended(c.tx.ctx)
}

// key finds what the statement is about. COMMIT is about what its transaction was.
func (c *conn) key(st *statement, args []driver.NamedValue) string {
	if c.tx != nil && st.endsTx() {
		return c.tx.key
	}
	find := c.p.w.naming.Statement
	if find == nil {
		return ""
	}
	key := find(st.name, args)
	if c.tx != nil && key != "" {
		c.tx.key = key
	}
	return key
}

func (c *conn) cost(st *statement) time.Duration {
	if st.commits() || st.write && c.tx == nil {
		return c.p.w.timing.Commit
	}
	return c.p.w.timing.Statement
}

// retry runs the statement, and again whenever a lock was in the way and may have
// gone, until the busy timeout.
func (c *conn) retry(ctx context.Context, t *task, st *statement, o operation, run func() (int64, error)) (int64, error) {
	deadline := c.p.w.now + c.busyTimeout
	for st.script && c.othersHold() && c.p.w.now < deadline && c.ended(ctx) == nil {
		c.db.waiters.wait(t, ctx, deadline) // half of a script can't be taken back and run again
	}
	for waited := false; ; waited = true {
		if c.tx != nil && c.tx.over && st.verb == "ROLLBACK" {
			return 0, nil
		}
		if err := c.ended(ctx); err != nil && st.verb != "ROLLBACK" {
			return 0, err
		}
		n, err := run()
		if !isBusy(err) || !c.mayWait(st) || c.p.w.now >= deadline {
			return n, err
		}
		t.acted()
		if !waited {
			t.record(Record{Event: EventBusy, Op: o.name()})
		}
		c.db.waiters.wait(t, ctx, deadline)
	}
}

// othersHold says that the lock of another connection may be in a script's way.
func (c *conn) othersHold() bool {
	if c.db.slot.wal {
		return c.tx == nil && c.db.slot.hasWriter()
	}
	held := c.db.holders
	if c.tx != nil {
		held--
	}
	return held > 0
}

// after notes what the statement did to the connection.
func (c *conn) after(t *task, st *statement, err error) {
	if st.soils {
		c.raw.soiled = true
	}
	if c.tx != nil && st.verb != "BEGIN" && !isBusy(err) {
		c.tx.used = true
	}
	open := !c.raw.AutoCommit()
	switch {
	case open && c.tx == nil:
		c.tx = &openTx{task: t, ctx: context.Background()}
		t.openTx++
		c.db.holders++
	case !open && c.tx != nil && (!c.tx.over || st.verb == "ROLLBACK"):
		c.endTx()
		c.tx = nil
		c.db.waiters.wake()
	case !open && st.write:
		c.db.waiters.wake()
	}
}

// endTx takes note that the open transaction holds nothing any more.
func (c *conn) endTx() {
	if c.tx.over {
		return
	}
	c.tx.over = true
	c.tx.task.openTx--
	c.db.holders--
}

// outcome tells how a statement ended: how many rows it returned or changed.
func outcome(st *statement, n int64, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error()
	case st.verb == "BEGIN" || st.endsTx():
		return ""
	case n == 1:
		return "1 row"
	}
	return strconv.FormatInt(n, 10) + " rows"
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, _ driver.TxOptions) (_ driver.Tx, err error) {
	if c.p.dead {
		return nil, c.stillDead()
	}
	defer survive(&err)
	begin := "BEGIN"
	if c.pool.options.Immediate {
		begin = "BEGIN IMMEDIATE"
	}
	if _, err := c.ExecContext(ctx, begin, nil); err != nil {
		return nil, err
	}
	c.tx.ctx = ctx
	if deadline, ok := trueDeadline(ctx); ok {
		c.p.w.push(event{at: deadline, name: c.tx.task.full, of: c.p, call: c.p.contextsEnded})
	}
	return c, nil
}

// Commit implements driver.Tx. database/sql takes the transaction for ended
// whatever this returns, so one that could not be committed is rolled back.
func (c *conn) Commit() (err error) {
	if c.p.dead {
		return c.stillDead()
	}
	defer survive(&err)
	_, err = c.ExecContext(context.Background(), "COMMIT", nil)
	if err != nil && c.raw != nil {
		c.rollBack()
		c.tx = nil
	}
	return err
}

// Rollback implements driver.Tx. It does nothing for a process that died: its
// transactions were rolled back then.
func (c *conn) Rollback() (err error) {
	if c.p.dead {
		return c.stillDead()
	}
	defer survive(&err)
	_, err = c.ExecContext(context.Background(), "ROLLBACK", nil)
	return err
}

// rollBack undoes the open transaction without a step. database/sql has still to
// end it.
func (c *conn) rollBack() {
	if c.tx == nil || c.tx.over {
		return
	}
	c.raw.exec("ROLLBACK")
	c.p.w.tape.add(c.db, c.raw, "ROLLBACK", nil, false)
	c.endTx()
	c.db.waiters.wake()
}

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) { return &stmt{c, query}, nil }

// IsValid implements driver.Validator. It is asked when the pool gets the
// connection back; with someone waiting for a place, it gives its place up.
func (c *conn) IsValid() bool { return !c.broken && len(c.pool.waiters) == 0 }

// ResetSession implements driver.SessionResetter.
func (c *conn) ResetSession(context.Context) error { return nil }

// Close implements driver.Conn.
func (c *conn) Close() error {
	if c.raw == nil {
		return nil
	}
	for i, other := range c.p.conns {
		if other == c {
			c.p.conns = append(c.p.conns[:i], c.p.conns[i+1:]...)
			break
		}
	}
	c.abandon()
	c.pool.leave()
	return nil
}

// abandon gives the raw connection back, rolled back. Nothing else would: when a
// process dies in a commit, database/sql has already marked the transaction as done.
func (c *conn) abandon() {
	c.rollBack()
	c.db.slot.give(c.raw)
	c.raw, c.tx = nil, nil
}

// stmt is a prepared statement. The raw connection's cache has it compiled.
type stmt struct {
	c     *conn
	query string
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.c.ExecContext(ctx, s.query, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.c.QueryContext(ctx, s.query, args)
}

// Exec implements driver.Stmt; database/sql uses ExecContext.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query implements driver.Stmt; database/sql uses QueryContext.
func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }

// memoryRows are rows that were read whole.
type memoryRows struct {
	columns []string
	rows    [][]driver.Value
}

func (r *memoryRows) Columns() []string { return r.columns }
func (r *memoryRows) Close() error      { return nil }

func (r *memoryRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}
