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
	db := sql.OpenDB(connector{dsn: dataSource(dir, name, url.Values{"_journal_mode": {"WAL"}}), driver: &sqlite3.SQLiteDriver{ConnectHook: registerClock}, gate: newGate()})
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	if err := migrate(ctx, db); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("database %s: %w", databasePath(dir, name), err)
	}
	return db, nil
}

func databasePath(dir, name string) string { return filepath.Join(dir, name+".db") }

// dataSource says how the driver opens a database: as settings say, and as all of ours.
func dataSource(dir, name string, settings url.Values) string {
	settings.Set("_txlock", "immediate")
	settings.Set("_synchronous", "FULL")
	settings.Set("_busy_timeout", fmt.Sprint(busyTimeout.Milliseconds()))
	settings.Set("_foreign_keys", "on")
	settings.Set("_stmt_cache_size", "100")
	path := (&url.URL{Path: databasePath(dir, name)}).EscapedPath()
	return (&url.URL{Scheme: "file", Opaque: path, RawQuery: settings.Encode()}).String()
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
