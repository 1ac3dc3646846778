package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/mattn/go-sqlite3"
)

const (
	// busyTimeout is how long a statement waits for another process's or connection's transaction.
	busyTimeout = 5 * time.Second
	// maxConns bounds the connections to one database; one of them writes at a time.
	maxConns = 8
)

// openDB opens a database as the system asks: write transactions take the lock at once, a commit is on disk when it
// returns, even if the power fails then, and db_now_ms() is the machine's clock.
func openDB(ctx context.Context, dir, name string, migrate func(context.Context, *sql.DB) error) (*sql.DB, error) {
	path := filepath.Join(dir, name+".db")
	settings := url.Values{
		"_txlock":          {"immediate"},
		"_journal_mode":    {"WAL"},
		"_synchronous":     {"FULL"},
		"_busy_timeout":    {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys":    {"on"},
		"_stmt_cache_size": {"100"},
	}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: settings.Encode()}).String()
	db := sql.OpenDB(connector{dsn: dsn, driver: &sqlite3.SQLiteDriver{ConnectHook: registerClock}, gate: newGate()})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	if err := migrate(ctx, db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	return db, nil
}

func registerClock(conn *sqlite3.SQLiteConn) error {
	return conn.RegisterFunc("db_now_ms", func() int64 { return time.Now().UnixMilli() }, false)
}

// connector opens connections with a driver of its own, so that none needs to be registered for the whole process.
type connector struct {
	driver *sqlite3.SQLiteDriver
	dsn    string
	gate   gate
}

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &gatedConn{SQLiteConn: conn.(*sqlite3.SQLiteConn), gate: c.gate}, nil
}

func (c connector) Driver() driver.Driver { return c.driver }
