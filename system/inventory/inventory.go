package inventory

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"log/slog"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// Env is everything that the service touches outside its own memory.
type Env struct {
	DB    *sql.DB // opened as package sqldb asks, migrated by Migrate
	NewID func() string
	Log   *slog.Logger
}

// Service is one instance of the stock service. Any number of them may share one database.
type Service struct {
	env     Env
	handler http.Handler
}

// New makes a service over a migrated database. It starts nothing and touches nothing.
func New(env Env) (*Service, error) {
	if env.DB == nil || env.NewID == nil || env.Log == nil {
		return nil, errors.New("new inventory: env: DB, NewID and Log must all be set")
	}
	s := &Service{env: env}
	s.handler = s.routes()
	return s, nil
}

//go:embed schema.sql
var schema1 string

// Migrate brings a stock database to the newest schema; it is cheap when there is nothing to do.
func Migrate(ctx context.Context, db *sql.DB) error { return sqldb.Migrate(ctx, db, schema1) }

// Handler serves the service's HTTP API.
func (s *Service) Handler() http.Handler { return s.handler }

// inTx runs do in a transaction of its own, and commits it if do has no error.
func (s *Service) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	return sqldb.InTx(ctx, s.env.DB, "movement", do)
}

// refuse is a conflict with what the journal says.
func refuse(code, format string, args ...any) error {
	return httpjson.Errorf(http.StatusConflict, code, format, args...)
}
