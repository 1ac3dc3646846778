package system

import (
	"context"
	"fmt"
	"time"
)

const (
	housekeeping   = "housekeeping" // the loop, and its lease
	houseKeptEvery = time.Hour      // so that it needs no certain hour of the day to be up
	keptFor        = 7 * 24 * time.Hour
	purgedAtOnce   = 100 // rows, so that nobody waits for long
)

// What nobody comes back to is deleted. A client that hasn't its answer after a week has given up, and so has a channel
// that goes on notifying for three days. A message is delivered for good: what it follows from happens once, so nothing
// writes it again. What was parked is a person's, and stays.
const (
	purgeKeys = `-- name: PurgeIdempotencyKeys
DELETE FROM idempotency_keys WHERE rowid IN (
    SELECT rowid FROM idempotency_keys WHERE created_ms <= (SELECT db_now_ms()) - ?1 AND until_ms <= (SELECT db_now_ms())
    ORDER BY created_ms LIMIT ?2)`

	purgeMessages = `-- name: PurgeDeliveredMessages
DELETE FROM outbox WHERE message_id IN (
    SELECT message_id FROM outbox WHERE state = 'DELIVERED' AND done_ms <= (SELECT db_now_ms()) - ?1
    ORDER BY done_ms LIMIT ?2)`
)

// keepHouse deletes what has been kept for long enough, batch by batch, for as long as its lease lasts; the next run goes
// on. Several at once do the same as one.
func (s *Shop) keepHouse(ctx context.Context) {
	ctx = withTrace(ctx, s.env.NewID())
	task, free := s.acquire(ctx, housekeeping)
	if !free {
		return
	}
	defer s.release(ctx, task)
	for _, purge := range []string{purgeKeys, purgeMessages} {
		for more := true; more && !s.lost(ctx, task); {
			var err error
			if more, err = s.purge(ctx, purge); err != nil {
				s.log(ctx).Error("housekeeping broke off", "error", err)
				return
			}
		}
	}
}

// purge deletes one batch, and reports whether there may be more.
func (s *Shop) purge(ctx context.Context, query string) (more bool, err error) {
	result, err := s.env.DB.ExecContext(ctx, query, keptFor.Milliseconds(), purgedAtOnce)
	if err != nil {
		return false, fmt.Errorf("purge: %w", err)
	}
	rows, err := result.RowsAffected()
	return rows == purgedAtOnce, err
}
