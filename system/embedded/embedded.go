package embedded

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"log/slog"
	"time"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

const (
	// pollEvery is how long a due message or an ended key may wait to be noticed.
	pollEvery = 200 * time.Millisecond
	// pollBatch bounds what one look takes.
	pollBatch = 100
)

// Env is everything that broker and leases touch outside their own memory.
type Env struct {
	Loops system.Loops
	DB    *sql.DB // opened as package sqldb asks, migrated by Migrate
	Log   *slog.Logger
}

func (e Env) validate() error {
	if e.Loops == nil || e.DB == nil || e.Log == nil {
		return errors.New("env: Loops, DB and Log must all be set")
	}
	return nil
}

//go:embed schema.sql
var schema1 string

// Migrate brings a database to the newest schema; it is cheap when there is nothing to do.
func Migrate(ctx context.Context, db *sql.DB) error { return sqldb.Migrate(ctx, db, schema1) }
