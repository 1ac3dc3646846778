package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	closeScan  = "close-scan" // the loop, and its lease
	closeTopic = "close-due"  // of the messages that say: this order is due
	closeKey   = "close/"     // prefix of the keys whose end says the same
)

// dueOrder is an order whose deadline has passed, and at the same time a place in the scan.
type dueOrder struct {
	deadlineMs int64
	orderNo    string
}

// closeDueOrders is one closing scan. A lease spares several instances the same work, but every one may scan at any
// time: an order is closed by whoever's update finds it still CREATED. An order that can't be closed now is left for
// the next scan and holds up no other.
func (s *Shop) closeDueOrders(ctx context.Context) {
	ctx = withStalls(withTrace(ctx, s.env.NewID()))
	batch, err := s.listDueOrders(ctx, dueOrder{})
	if err == nil && len(batch) > 0 {
		task, free := s.acquire(ctx, closeScan)
		if !free {
			return
		}
		defer s.release(ctx, task)
		err = s.closeBatches(ctx, task, batch)
	}
	if err != nil {
		s.log(ctx).Error("closing scan broke off", "error", err)
	}
}

// closeBatches closes what the scan has found, batch by batch, for as long as the lease lasts.
func (s *Shop) closeBatches(ctx context.Context, task *Lease, batch []dueOrder) (err error) {
	for len(batch) > 0 {
		for _, due := range batch {
			if s.lost(ctx, task) {
				return nil
			}
			if err := s.closeOrder(ctx, due.orderNo, byDeadline, task); err != nil {
				s.log(ctx).Warn("not closed yet", "order", due.orderNo, "error", err)
			}
		}
		if len(batch) < s.cfg.ScanBatch {
			return nil
		}
		if batch, err = s.listDueOrders(ctx, batch[len(batch)-1]); err != nil {
			return err
		}
	}
	return nil
}

// Paging by key, not by offset: closing takes orders out of what is scanned, and an offset would skip their neighbours.
const listDueOrders = `-- name: ListDueOrders
SELECT deadline_ms, order_no FROM orders
WHERE status = 'CREATED' AND deadline_ms <= (SELECT db_now_ms()) AND (deadline_ms, order_no) > (?1, ?2)
ORDER BY deadline_ms, order_no
LIMIT ?3`

func (s *Shop) listDueOrders(ctx context.Context, after dueOrder) ([]dueOrder, error) {
	batch, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (due dueOrder, err error) {
		err = rows.Scan(&due.deadlineMs, &due.orderNo)
		return due, err
	}, listDueOrders, after.deadlineMs, after.orderNo, s.cfg.ScanBatch)
	if err != nil {
		return nil, fmt.Errorf("list due orders: %w", err)
	}
	return batch, nil
}

func (s *Shop) closesByMessage() bool { return s.env.Broker != nil && s.cfg.closesBy(CloseByMessage) }
func (s *Shop) closesByExpiry() bool  { return s.env.Leases != nil && s.cfg.closesBy(CloseByExpiry) }

// startTimer sends a message to ourselves that arrives when the order is due.
func (s *Shop) startTimer(ctx context.Context, orderNo string) error {
	wait, waiting, err := s.untilDue(ctx, orderNo)
	if err != nil || !waiting || s.env.Broker == nil {
		return err
	}
	ctx, cancel := s.env.Clock.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	return s.env.Broker.Publish(ctx, closeTopic, orderNo, nil, max(0, wait))
}

// onCloseMessage closes an order that is due. A message that comes early is sent again for the rest of the time.
func (s *Shop) onCloseMessage(ctx context.Context, m Message) error {
	ctx = withTrace(ctx, s.env.NewID())
	wait, waiting, err := s.untilDue(ctx, m.Key)
	switch {
	case err != nil || !waiting:
		return err
	case wait > 0:
		return s.startTimer(ctx, m.Key)
	}
	return s.closeOrder(ctx, m.Key, byDeadline, nil)
}

// armExpiry sets a key that ends when the order is due. Whether that works, and is ever heard of, nothing relies on.
func (s *Shop) armExpiry(orderNo string) {
	if !s.closesByExpiry() {
		return
	}
	s.env.Loops.Go("arm-expiry("+orderNo+")", func(ctx context.Context) {
		ctx, cancel := s.env.Clock.WithTimeout(ctx, s.cfg.CallTimeout)
		defer cancel()
		if err := s.env.Leases.Expire(ctx, closeKey+orderNo, s.cfg.PayWindow); err != nil {
			s.log(ctx).Warn("key not set", "order", orderNo, "error", err)
		}
	})
}

// onKeyExpired closes the order of a key that has ended, if it is due.
func (s *Shop) onKeyExpired(ctx context.Context, key string) {
	ctx = withTrace(ctx, s.env.NewID())
	orderNo := strings.TrimPrefix(key, closeKey)
	wait, waiting, err := s.untilDue(ctx, orderNo)
	if err == nil && waiting && wait <= 0 {
		err = s.closeOrder(ctx, orderNo, byDeadline, nil)
	}
	if err != nil {
		s.log(ctx).Warn("not closed yet", "order", orderNo, "error", err)
	}
}

const readDeadline = `-- name: ReadDeadline
SELECT deadline_ms - db_now_ms() FROM orders
WHERE order_no = ?1 AND status = 'CREATED'`

// untilDue says how long an order still waits for its deadline, by the database's clock; false when it waits no more
// to be paid, or isn't there.
func (s *Shop) untilDue(ctx context.Context, orderNo string) (time.Duration, bool, error) {
	var waitMs int64
	err := s.env.DB.QueryRowContext(ctx, readDeadline, orderNo).Scan(&waitMs)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read deadline of order %s: %w", orderNo, err)
	}
	return time.Duration(waitMs) * time.Millisecond, true, nil
}
