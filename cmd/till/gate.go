package main

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/mattn/go-sqlite3"
)

// gate lets the connections of this process write one after the other, in the order in which they came. SQLite alone
// would let them poll for its lock, and who is unlucky for seconds. Other processes are met in SQLite all the same.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// gatedConn passes the gate before each write transaction and each statement outside of one that isn't a query.
type gatedConn struct {
	*sqlite3.SQLiteConn
	gate    gate
	inside  bool
	hurried bool // its busy timeout is shorter than busyTimeout
}

// enter waits as long as for a lock of SQLite's, and fails as if it were one.
func (c *gatedConn) enter(ctx context.Context) error {
	timer := time.NewTimer(busyTimeout)
	defer timer.Stop()
	select {
	case c.gate <- struct{}{}:
		c.inside = true
		c.hurry(ctx)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return sqlite3.Error{Code: sqlite3.ErrBusy}
	}
}

// hurry keeps SQLite from waiting for another process beyond the context's end, which it doesn't look at meanwhile.
func (c *gatedConn) hurry(ctx context.Context) {
	deadline, ok := ctx.Deadline()
	if left := time.Until(deadline); ok && left < busyTimeout {
		c.hurried = true
		c.setBusyTimeout(max(left, time.Millisecond))
	}
}

func (c *gatedConn) setBusyTimeout(d time.Duration) {
	// It can't fail; and if it did, somebody would wait for another time than meant.
	_, _ = c.SQLiteConn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()), nil)
}

func (c *gatedConn) leave() {
	if !c.inside {
		return
	}
	if c.hurried {
		c.hurried = false
		c.setBusyTimeout(busyTimeout)
	}
	c.inside = false
	<-c.gate
}

// ExecContext writes.
func (c *gatedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if !c.inside {
		if err := c.enter(ctx); err != nil {
			return nil, err
		}
		defer c.leave()
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

// BeginTx stays inside until the transaction ends.
func (c *gatedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	tx, err := c.SQLiteConn.BeginTx(ctx, options)
	if err != nil {
		c.leave()
		return nil, err
	}
	return gatedTx{tx, c}, nil
}

// Close leaves the gate too, if database/sql gives a connection up in the middle of a transaction.
func (c *gatedConn) Close() error {
	c.hurried = false
	defer c.leave()
	return c.SQLiteConn.Close()
}

type gatedTx struct {
	driver.Tx
	conn *gatedConn
}

func (t gatedTx) Commit() error {
	defer t.conn.leave()
	return t.Tx.Commit()
}

func (t gatedTx) Rollback() error {
	defer t.conn.leave()
	return t.Tx.Rollback()
}
