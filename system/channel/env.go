package channel

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Clock is the emulator's own clock: it measures waits and dates signatures.
type Clock interface {
	Now() time.Time
	// Sleep returns nil after d, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
	// WithTimeout derives a context that ends after d by this clock.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// Loops starts background work.
type Loops interface {
	// Go runs run once, beside everything else.
	Go(name string, run func(ctx context.Context))
}

// Env is everything that the emulator touches outside its own memory.
type Env struct {
	Clock Clock
	Loops Loops
	DB    *sql.DB      // the ledger: opened as package sqldb asks, migrated by Migrate
	HTTP  *http.Client // without a timeout of its own
	NewID func() string
	Log   *slog.Logger
}

func (e Env) validate() error {
	if e.Clock == nil || e.Loops == nil || e.DB == nil || e.HTTP == nil || e.NewID == nil || e.Log == nil {
		return errors.New("env: Clock, Loops, DB, HTTP, NewID and Log must all be set")
	}
	return nil
}
