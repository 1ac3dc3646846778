package system

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Clock is a node's own clock. It may be wrong, so nothing is due because of it.
type Clock interface {
	Now() time.Time
	// Sleep returns nil after d, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
	// WithTimeout derives a context that ends after d by this clock.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Loops starts background work.
type Loops interface {
	// Every runs run at each multiple of interval, never two runs of one name at once on one instance.
	Every(name string, interval time.Duration, run func(ctx context.Context))
	// Go runs run once, beside everything else.
	Go(name string, run func(ctx context.Context))
}

// Env is everything that a shop touches outside its own memory.
type Env struct {
	Clock Clock
	Loops Loops
	DB    *sql.DB      // opened as package sqldb asks, migrated by Migrate
	HTTP  *http.Client // without a timeout of its own: calls carry theirs in their context
	NewID func() string
	Log   *slog.Logger
}

func (e Env) validate() error {
	if e.Clock == nil || e.Loops == nil || e.DB == nil || e.HTTP == nil || e.NewID == nil || e.Log == nil {
		return errors.New("env: Clock, Loops, DB, HTTP, NewID and Log must all be set")
	}
	return nil
}
