package main

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/sqldb"
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

// Another process's lock isn't waited for beyond a context's end, and the next one has all its patience again.
func TestALockOutsideIsWaitedForNoLongerThanTheContext(t *testing.T) {
	dir := t.TempDir()
	migrate := func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS a (x INTEGER)")
		return err
	}
	db, err := openDB(t.Context(), dir, "a", migrate)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	other, err := openDB(t.Context(), dir, "a", migrate) // has another gate, as another process has
	require.NoError(t, err)
	defer other.Close()
	holder, err := other.BeginTx(t.Context(), nil)
	require.NoError(t, err)

	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = db.ExecContext(short, "INSERT INTO a VALUES (1)")
	require.True(t, sqldb.IsBusy(err) || errors.Is(err, context.DeadlineExceeded), "%v", err)
	require.NoError(t, holder.Rollback())
	_, err = db.Exec("INSERT INTO a VALUES (1)")
	require.NoError(t, err)
	var patience int
	require.NoError(t, db.QueryRow("PRAGMA busy_timeout").Scan(&patience))
	require.Equal(t, 5000, patience)
}

// While another process holds the lock, a writer is told to come again; nothing fails, and reading goes on.
func TestALockedDatabaseIsBusy(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shop := serveOn(t, data)
	db, err := openDB(t.Context(), data, "orders", system.Migrate)
	require.NoError(t, err)
	defer db.Close()
	holder, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/healthz", "", `"database_unwritable"`},
		{"POST", "/orders", `{"orderNo":"A1","amountCents":9900}`, `"busy"`},
	} {
		reply, err := client.Do(newRequest(t, c.method, shop.url+c.path, c.body))
		require.NoError(t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, 503, reply.StatusCode, "%s", body)
		require.Equal(t, "1", reply.Header.Get("Retry-After"))
		require.Contains(t, string(body), c.want)
	}
	status, _, err := get(shop.url + "/orders")
	require.NoError(t, err)
	require.Equal(t, 200, status)
	require.NoError(t, holder.Rollback())
	status, body, err := post(shop.url+"/orders", `{"orderNo":"A1","amountCents":9900}`)
	require.NoError(t, err)
	require.Equal(t, 201, status, body)
	require.Zero(t, shop.end(syscall.SIGTERM))
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	return r
}

// A database that can't be opened is told by its name, whichever it is.
func TestABrokenDatabaseIsNamed(t *testing.T) {
	for _, name := range []string{"orders", "stock", "messages", "channel-mock", "settings"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".db"), []byte("this is no database, and long enough to be seen as none"), 0o600))
		if name != "orders" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "orders.db"), nil, 0o600))
		}
		_, errs, code := output(t, "reconcile", "--data", dir)
		require.Equal(t, 1, code, name)
		require.Contains(t, errs, name+".db: ")
		require.Contains(t, errs, "file is not a database")
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
