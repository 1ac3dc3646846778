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

// Message is what a Broker delivers. A message that is delivered again keeps its ID.
type Message struct {
	ID, Topic, Key string
	Body           []byte
}

// Broker delivers messages at least once, after a delay, in no order. The shop never relies on it: a message that is
// lost only makes things later.
type Broker interface {
	// Publish returns nil once the message is taken; after an error it may be or not.
	Publish(ctx context.Context, topic, key string, body []byte, delay time.Duration) error
	// Subscribe hands every message of a topic to handle, which may be called for several at once. An error of handle
	// means: deliver it again later.
	Subscribe(topic string, handle func(ctx context.Context, m Message) error)
}

// Lease says that its owner was alone with a name, until it expired. Token grows with every acquisition of the name and
// is what a write is fenced by.
type Lease struct {
	Name, Owner string
	Token       int64
}

// Leases are locks that end by themselves, and keys whose end is notified. The shop stays correct with leases that are
// granted to everybody: they only keep instances out of each other's way.
type Leases interface {
	// Acquire takes a free name for ttl; false when somebody has it.
	Acquire(ctx context.Context, name, owner string, ttl time.Duration) (Lease, bool, error)
	// Release frees the name if the lease is still the one that holds it, and nothing otherwise.
	Release(ctx context.Context, l Lease) error
	// Held reports whether the lease is still the one that holds the name.
	Held(ctx context.Context, l Lease) (bool, error)
	// Expire sets a key that ends after ttl.
	Expire(ctx context.Context, key string, ttl time.Duration) error
	// OnExpire hands the keys with the prefix to handle when they end: at best once, perhaps never.
	OnExpire(prefix string, handle func(ctx context.Context, key string))
}

// Env is everything that a shop touches outside its own memory.
type Env struct {
	Clock Clock
	Loops Loops
	DB    *sql.DB      // opened as package sqldb asks, migrated by Migrate
	HTTP  *http.Client // without a timeout of its own: calls carry theirs in their context
	NewID func() string
	Log   *slog.Logger

	Broker Broker // may be nil: then no delayed message closes orders
	Leases Leases // may be nil: then instances meet only in the database
}

func (e Env) validate() error {
	if e.Clock == nil || e.Loops == nil || e.DB == nil || e.HTTP == nil || e.NewID == nil || e.Log == nil {
		return errors.New("env: Clock, Loops, DB, HTTP, NewID and Log must all be set")
	}
	return nil
}
