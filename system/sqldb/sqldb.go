// Package sqldb holds what every database of the system needs: the schema's migrations, and statements that say whether
// they changed something.
//
// Whoever opens a database registers the SQL function db_now_ms(), its clock in Unix milliseconds, and begins write
// transactions with BEGIN IMMEDIATE (mattn/go-sqlite3: _txlock=immediate), so that BeginTx takes the write lock at once
// and what a transaction has read is still true when it commits.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// Querier reads: a *sql.DB, or a *sql.Tx for reads that belong to a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Execer writes: a *sql.DB for one statement alone, or a *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Changed runs a statement that changes one row or none, and says which.
func Changed(ctx context.Context, db Execer, query string, args ...any) (bool, error) {
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return false, err
	}
	if rows > 1 {
		return false, fmt.Errorf("%d rows changed where at most one may", rows)
	}
	return rows == 1, nil
}

// IsBusy reports whether a database had no time for a statement: others held its lock for longer than the busy timeout.
// Nothing is wrong, and nothing was changed; it is to be tried again later.
func IsBusy(err error) bool {
	var failure sqlite3.Error
	return errors.As(err, &failure) && (failure.Code == sqlite3.ErrBusy || failure.Code == sqlite3.ErrLocked)
}

// Migrate brings a database to the newest schema: migrations[n] leads from version n to n+1. A current database costs
// one statement. Any number of processes may migrate at once, and a crash in the middle leaves the old version.
func Migrate(ctx context.Context, db *sql.DB, migrations ...string) error {
	version, err := readVersion(ctx, db)
	if err != nil || version == len(migrations) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin migration: %w", err)
	}
	defer tx.Rollback()
	version, err = readVersion(ctx, tx) // again, under the lock: another process may have been first
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("the database has schema version %d, this program knows %d", version, len(migrations))
	}
	for ; version < len(migrations); version++ {
		if err := applyMigration(ctx, tx, migrations[version], version+1); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func readVersion(ctx context.Context, db Querier) (int, error) {
	var version int
	err := db.QueryRowContext(ctx, "-- name: ReadSchemaVersion\nPRAGMA user_version").Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

func applyMigration(ctx context.Context, tx *sql.Tx, migration string, version int) error {
	if _, err := tx.ExecContext(ctx, migration); err != nil {
		return fmt.Errorf("migrate to schema version %d: %w", version, err)
	}
	// A pragma takes no arguments; the version is a number of our own.
	_, err := tx.ExecContext(ctx, fmt.Sprintf("-- name: SetSchemaVersion\nPRAGMA user_version = %d", version))
	if err != nil {
		return fmt.Errorf("set schema version %d: %w", version, err)
	}
	return nil
}
