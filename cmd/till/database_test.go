package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func openTest(t *testing.T) *sql.DB {
	db, err := openDB(t.Context(), t.TempDir(), "a name with 100% blanks?", func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS a (x INTEGER)")
		return err
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestDatabaseSettings(t *testing.T) {
	db := openTest(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "foreign_keys": "1"} {
		var got string
		require.NoError(t, db.QueryRow("PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	var ms int64
	require.NoError(t, db.QueryRow("SELECT db_now_ms()").Scan(&ms))
	require.InDelta(t, time.Now().UnixMilli(), ms, 1000)
}

func TestWritersWaitTheirTurn(t *testing.T) {
	db := openTest(t)
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO a VALUES (1)")
	require.NoError(t, err)
	var rows int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM a").Scan(&rows)) // readers don't wait
	require.Zero(t, rows)

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(short, "INSERT INTO a VALUES (2)")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = db.BeginTx(short, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	written := make(chan error)
	go func() {
		_, err := db.Exec("INSERT INTO a VALUES (3)")
		written <- err
	}()
	require.NoError(t, tx.Commit())
	require.NoError(t, <-written)
}

func TestAnAbandonedTransactionLetsOthersWrite(t *testing.T) {
	db := openTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	cancel()
	_, err = db.Exec("INSERT INTO a VALUES (1)")
	require.NoError(t, err)
	require.True(t, errors.Is(tx.Commit(), sql.ErrTxDone) || errors.Is(tx.Commit(), context.Canceled))

	_, err = db.Exec("INSERT INTO nowhere VALUES (1)")
	require.Error(t, err)
	_, err = db.Exec("INSERT INTO a VALUES (2)")
	require.NoError(t, err)
}

// A database that can't be opened is told by its name, whichever it is.
func TestABrokenDatabaseIsNamed(t *testing.T) {
	for _, name := range []string{"orders", "stock", "messages", "channel-mock"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".db"), []byte("this is no database, and long enough to be seen as none"), 0o600))
		if name != "orders" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.db"), nil, 0o600))
		}
		_, errs, code := output(t, "reconcile", "--data", dir)
		require.Equal(t, 1, code, name)
		require.Contains(t, errs, name+".db: read schema version: file is not a database")
	}
}

// A mistyped directory is not an empty one.
func TestReconcileWantsADirectoryThatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "typo")
	_, errs, code := output(t, "reconcile", "--data", dir)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "has no orders.db")
	require.NoDirExists(t, dir)
}
