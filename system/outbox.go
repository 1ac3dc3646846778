package system

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// messageKind says what is to be done about a fact.
type messageKind string

// The kinds of messages; deliver.go says what each does. Every consumer bears a repeat.
const (
	stockRelease messageKind = "stock-release" // key: the order's number at the stock service
	stockDeduct  messageKind = "stock-deduct"  // key: the same
	sendRefund   messageKind = "refund"        // key: refund number
	closeTrade   messageKind = "channel-close" // key: out-trade number
	startTimer   messageKind = "close-timer"   // key: order number
	cancelOrder  messageKind = "cancel"        // key: the same
	reinstate    messageKind = "reinstate"     // key: the number that the charge's refund would have; body: the charge
)

// message is what must be told to others because of a fact. Kind and key name it: it is written at most once.
type message struct {
	id    int64
	kind  messageKind
	key   string
	body  string
	trace string
	tries int // that were begun
}

const (
	firstRetry = 2 * time.Second
	maxRetry   = 10 * time.Minute
)

// backoff is how long after its n-th try something is tried again: first, doubled each time, up to maxRetry.
func backoff(first time.Duration, tries int) time.Duration {
	wait := first
	for ; tries > 1 && wait < maxRetry; tries-- {
		wait *= 2
	}
	return min(wait, maxRetry)
}

const insertMessage = `-- name: InsertOutboxMessage
INSERT INTO outbox (kind, message_key, body, trace_id, state, created_ms, next_ms)
VALUES (?1, ?2, ?3, ?4, 'PENDING', db_now_ms(), db_now_ms())
ON CONFLICT (kind, message_key) DO NOTHING`

// enqueue writes a message in the fact's own transaction, so that it is there exactly when the fact is. Without the
// outbox nothing is written, and the message lives as long as this process.
func (w *work) enqueue(ctx context.Context, m message) error {
	m.trace = traceID(ctx)
	if w.shop.cfg.keptBy(ByOutbox) {
		result, err := w.ExecContext(ctx, insertMessage, m.kind, m.key, m.body, m.trace)
		if err != nil {
			return fmt.Errorf("enqueue %s of %s: %w", m.kind, m.key, err)
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return err // it is there already
		}
		if m.id, err = result.LastInsertId(); err != nil {
			return err
		}
	}
	w.messages = append(w.messages, m)
	return nil
}

// maxDispatched is how many messages an instance has on their way beside the relay. When thousands of orders are closed
// while the stock service hangs, the others wait in the outbox, not in memory.
const maxDispatched = 64

// dispatch brings a committed message on its way at once, beside everything else. If that fails or this process dies,
// the relay finds the message.
func (s *Shop) dispatch(m message) {
	if m.id != 0 && s.dispatched.Load() >= maxDispatched {
		return
	}
	s.dispatched.Add(1)
	s.env.Loops.Go("outbox("+m.key+")", func(ctx context.Context) {
		defer s.dispatched.Add(-1)
		if m.id != 0 {
			s.relayMessage(ctx, m)
			return
		}
		ctx = withTrace(ctx, m.trace)
		if err := s.deliver(ctx, m); err != nil {
			s.log(ctx).Error("message lost", "kind", m.kind, "key", m.key, "error", err)
		}
	})
}

// relayOutbox is one run of the relay. After an outage there may be much to deliver: while all goes well it goes on, batch
// by batch, until nothing is due. Every instance may run it at any time: a message is delivered by whoever claims it, and
// again when the claimant doesn't come back.
func (s *Shop) relayOutbox(ctx context.Context) {
	ctx = withStalls(withTrace(ctx, s.env.NewID()))
	for more := true; more; {
		due, err := s.listDueMessages(ctx)
		if err != nil {
			s.log(ctx).Error("outbox relay broke off", "error", err)
			return
		}
		more = len(due) == s.cfg.ScanBatch
		for _, m := range due {
			more = s.relayMessage(ctx, m) && more
		}
	}
}

const listDueMessages = `-- name: ListDueMessages
SELECT message_id, kind, message_key, body, trace_id, tries FROM outbox
WHERE state = 'PENDING' AND next_ms <= (SELECT db_now_ms())
ORDER BY next_ms, message_id
LIMIT ?1`

// listDueMessages needs no paging: what is tried is due later, so the next look sees what this one left.
func (s *Shop) listDueMessages(ctx context.Context) ([]message, error) {
	due, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (m message, err error) {
		err = rows.Scan(&m.id, &m.kind, &m.key, &m.body, &m.trace, &m.tries)
		return m, err
	}, listDueMessages, s.cfg.ScanBatch)
	if err != nil {
		return nil, fmt.Errorf("list due messages: %w", err)
	}
	return due, nil
}

// The count of tries in the condition lets only one of several relays try.
const claimMessage = `-- name: ClaimMessage
UPDATE outbox SET tries = tries + 1, next_ms = db_now_ms() + ?3
WHERE message_id = ?1 AND state = 'PENDING' AND tries = ?2`

// relayMessage claims a message, delivers it, and only then writes down what came of it: who dies in between leaves it
// to be delivered again. It reports false when it has failed; a message that another has claimed is no failure.
func (s *Shop) relayMessage(ctx context.Context, m message) (ok bool) {
	ctx = withTrace(ctx, m.trace)
	// Until then a try that is alive has ended: it makes at most four calls.
	patience := max(4*s.cfg.CallTimeout, backoff(firstRetry, m.tries+1))
	claimed, err := sqldb.Changed(ctx, s.env.DB, claimMessage, m.id, m.tries, patience.Milliseconds())
	if err != nil {
		s.log(ctx).Error("claim failed", "kind", m.kind, "key", m.key, "error", err)
		return false
	}
	if !claimed {
		return true
	}
	m.tries++
	failure := s.deliver(ctx, m)
	if err := s.settleMessage(ctx, m, failure); err != nil {
		s.log(ctx).Error("message not settled", "kind", m.kind, "key", m.key, "error", err)
		return false
	}
	return failure == nil
}

const (
	markDelivered = `-- name: MarkMessageDelivered
UPDATE outbox SET state = 'DELIVERED', done_ms = db_now_ms()
WHERE message_id = ?1 AND state <> 'DELIVERED'`

	retryMessage = `-- name: RetryMessage
UPDATE outbox SET next_ms = db_now_ms() + ?3, last_error = ?4
WHERE message_id = ?1 AND state = 'PENDING' AND tries = ?2`

	parkMessage = `-- name: ParkMessage
UPDATE outbox SET state = 'PARKED', done_ms = db_now_ms(), last_error = ?3
WHERE message_id = ?1 AND state = 'PENDING' AND tries = ?2`
)

// settleMessage writes down what came of a try. A message that was refused for good, or has failed too often, is parked,
// with an alert. That our own database was busy says nothing about the message, however often it happens.
func (s *Shop) settleMessage(ctx context.Context, m message, failure error) error {
	if failure == nil {
		_, err := sqldb.Changed(ctx, s.env.DB, markDelivered, m.id)
		return err
	}
	s.log(ctx).Warn("message not delivered", "kind", m.kind, "key", m.key, "tries", m.tries, "error", failure)
	why := fmt.Sprintf("%.200s", failure.Error())
	if final := m.tries >= s.cfg.OutboxTries || refusedForGood(failure); !final || sqldb.IsBusy(failure) {
		_, err := sqldb.Changed(ctx, s.env.DB, retryMessage, m.id, m.tries, backoff(firstRetry, m.tries).Milliseconds(), why)
		return err
	}
	return s.transact(ctx, "park", func(w *work) error {
		parked, err := w.exec(ctx, parkMessage, m.id, m.tries, why)
		if err != nil || !parked {
			return err
		}
		return raiseAlert(ctx, w, alert{kind: "outbox-parked", subject: string(m.kind) + "/" + m.key, detail: why})
	})
}
