package main

import (
	"context"
	"database/sql"
	"errors"
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
