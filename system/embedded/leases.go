package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// Leases are system.Leases.
type Leases struct{ env Env }

// NewLeases makes leases over a migrated database.
func NewLeases(env Env) (*Leases, error) {
	if err := env.validate(); err != nil {
		return nil, fmt.Errorf("new leases: %w", err)
	}
	return &Leases{env: env}, nil
}

// One statement takes the name and reads its token, so that no other taker comes between.
const acquireLease = `-- name: AcquireLease
INSERT INTO leases (name, owner, token, until_ms) VALUES (?1, ?2, 1, db_now_ms() + ?3)
ON CONFLICT (name) DO UPDATE SET owner = ?2, token = token + 1, until_ms = db_now_ms() + ?3
WHERE until_ms <= db_now_ms()
RETURNING token`

// Acquire takes a name that nobody has, the owner itself included.
func (l *Leases) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (system.Lease, bool, error) {
	lease := system.Lease{Name: name, Owner: owner}
	err := l.env.DB.QueryRowContext(ctx, acquireLease, name, owner, ttl.Milliseconds()).Scan(&lease.Token)
	if errors.Is(err, sql.ErrNoRows) {
		return system.Lease{}, false, nil
	}
	if err != nil {
		return system.Lease{}, false, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	return lease, true, nil
}

const releaseLease = `-- name: ReleaseLease
UPDATE leases SET until_ms = 0
WHERE name = ?1 AND owner = ?2 AND token = ?3`

// Release frees the name, if the lease still is the one that has it.
func (l *Leases) Release(ctx context.Context, lease system.Lease) error {
	if _, err := sqldb.Changed(ctx, l.env.DB, releaseLease, lease.Name, lease.Owner, lease.Token); err != nil {
		return fmt.Errorf("release lease %s: %w", lease.Name, err)
	}
	return nil
}

const checkLease = `-- name: CheckLease
SELECT count(*) FROM leases
WHERE name = ?1 AND owner = ?2 AND token = ?3 AND until_ms > db_now_ms()`

// Held reports whether the lease has the name now.
func (l *Leases) Held(ctx context.Context, lease system.Lease) (bool, error) {
	var held int
	err := l.env.DB.QueryRowContext(ctx, checkLease, lease.Name, lease.Owner, lease.Token).Scan(&held)
	if err != nil {
		return false, fmt.Errorf("check lease %s: %w", lease.Name, err)
	}
	return held > 0, nil
}

const setExpiringKey = `-- name: SetExpiringKey
INSERT INTO expiring_keys (key, due_ms) VALUES (?1, db_now_ms() + ?2)
ON CONFLICT (key) DO UPDATE SET due_ms = db_now_ms() + ?2`

// Expire sets a key, or sets it anew.
func (l *Leases) Expire(ctx context.Context, key string, ttl time.Duration) error {
	if _, err := sqldb.Changed(ctx, l.env.DB, setExpiringKey, key, ttl.Milliseconds()); err != nil {
		return fmt.Errorf("set expiring key %s: %w", key, err)
	}
	return nil
}

// OnExpire looks for ended keys from now on. Keys that nobody listens for stay.
func (l *Leases) OnExpire(prefix string, handle func(ctx context.Context, key string)) {
	l.env.Loops.Every("expire-"+prefix, pollEvery, func(ctx context.Context) {
		if err := l.notifyEnded(ctx, prefix, handle); err != nil {
			l.env.Log.ErrorContext(ctx, "notifying ended keys broke off", "prefix", prefix, "error", err)
		}
	})
}

func (l *Leases) notifyEnded(ctx context.Context, prefix string, handle func(context.Context, string)) error {
	ended, err := l.listEnded(ctx, prefix)
	if err != nil {
		return err
	}
	for _, key := range ended {
		mine, err := sqldb.Changed(ctx, l.env.DB, takeEndedKey, key)
		if err != nil {
			return fmt.Errorf("take ended key %s: %w", key, err)
		}
		if mine {
			handle(ctx, key)
		}
	}
	return nil
}

const (
	listEndedKeys = `-- name: ListEndedKeys
SELECT key FROM expiring_keys
WHERE due_ms <= (SELECT db_now_ms()) AND substr(key, 1, length(?1)) = ?1
ORDER BY due_ms, key LIMIT ?2`

	// Whoever deletes the key notifies; a key that was set anew meanwhile is left alone.
	takeEndedKey = `-- name: TakeEndedKey
DELETE FROM expiring_keys WHERE key = ?1 AND due_ms <= db_now_ms()`
)

func (l *Leases) listEnded(ctx context.Context, prefix string) ([]string, error) {
	rows, err := l.env.DB.QueryContext(ctx, listEndedKeys, prefix, pollBatch)
	if err != nil {
		return nil, fmt.Errorf("list ended keys: %w", err)
	}
	defer rows.Close()
	var ended []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, fmt.Errorf("read ended key: %w", err)
		}
		ended = append(ended, key)
	}
	return ended, rows.Err()
}
