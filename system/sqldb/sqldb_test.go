package sqldb_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

func open(t *testing.T) *sql.DB {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "test.db")+"?_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func TestMigrateStepByStep(t *testing.T) {
	db := open(t)
	first, second := "CREATE TABLE a (x); CREATE INDEX b ON a (x)", "ALTER TABLE a ADD COLUMN y"
	require.NoError(t, sqldb.Migrate(t.Context(), db, first))
	require.NoError(t, sqldb.Migrate(t.Context(), db, first, second))
	require.NoError(t, sqldb.Migrate(t.Context(), db, first, second))
	require.ErrorContains(t, sqldb.Migrate(t.Context(), db, first), "schema version 2")
}

func TestBrokenMigrationLeavesTheOldVersion(t *testing.T) {
	db := open(t)
	require.Error(t, sqldb.Migrate(t.Context(), db, "CREATE TABLE a (x); CREATE nonsense"))
	require.NoError(t, sqldb.Migrate(t.Context(), db, "CREATE TABLE a (x)"))
}

func TestIsBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = db.BeginTx(t.Context(), nil)
	require.True(t, sqldb.IsBusy(fmt.Errorf("begin: %w", err)), err)
	require.NoError(t, tx.Rollback())
	_, err = db.ExecContext(t.Context(), "nonsense")
	require.Error(t, err)
	require.False(t, sqldb.IsBusy(err))
}

func TestChanged(t *testing.T) {
	db := open(t)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE a (x); INSERT INTO a VALUES (1), (2)")
	require.NoError(t, err)
	changed, err := sqldb.Changed(t.Context(), db, "UPDATE a SET x = 3 WHERE x = ?", 1)
	require.NoError(t, err)
	require.True(t, changed)
	changed, err = sqldb.Changed(t.Context(), db, "UPDATE a SET x = 3 WHERE x = ?", 1)
	require.NoError(t, err)
	require.False(t, changed)
	_, err = sqldb.Changed(t.Context(), db, "UPDATE a SET x = 4")
	require.ErrorContains(t, err, "2 rows")
}
