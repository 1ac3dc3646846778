package system

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errBusy says that somebody else is closing the order right now.
var errBusy = errors.New("somebody else is at it")

// The reasons to close an order.
const (
	byDeadline = "deadline"
	byBuyer    = "cancelled"
	byStock    = "out_of_stock"
)

// endedAttempt is an attempt with what its channel said.
type endedAttempt struct {
	attempt
	end attemptEnd
}

// closeOrder closes an order that is still CREATED: it asks every channel that could have taken money for it, makes
// them take none from now on, and only then closes. It is the one way to close, whoever wants it. An order that turns
// out to be paid, or is paid or closed already, is no error; it is one that a channel can't tell yet. task is the job's
// lease, nil outside a job.
func (s *Shop) closeOrder(ctx context.Context, orderNo, reason string, task *Lease) error {
	unlock, err := s.lockOrder(ctx, orderNo)
	if err != nil {
		return err
	}
	defer unlock()
	ended, err := s.endAttempts(ctx, orderNo)
	if err != nil {
		return err
	}
	var lag time.Duration
	closed := false
	err = s.transact(ctx, "close", func(w *work) (err error) {
		if err := checkFence(ctx, w, task); err != nil {
			return err
		}
		if err := s.closeAttempts(ctx, w, orderNo, ended); err != nil {
			return err
		}
		change := statusChange{orderNo: orderNo, Transition: Transition{Created, Closed}, cause: reason}
		closed, err = changeStatus(ctx, w.Tx, markOrderClosed, change, reason)
		if err != nil || !closed {
			return err
		}
		if lag, err = readCloseLag(ctx, w, orderNo); err != nil {
			return err
		}
		return enqueueStock(ctx, w, stockRelease, orderNo)
	})
	if err != nil || !closed {
		return err
	}
	if reason == byDeadline {
		s.metrics.orderClosed(lag)
	}
	s.log(ctx).Info("order closed", "order", orderNo, "reason", reason, "lag", lag)
	return nil
}

const readLag = `-- name: ReadCloseLag
SELECT closed_ms - deadline_ms FROM orders WHERE order_no = ?1`

// readCloseLag says how long after its deadline an order was closed; negative when it was before.
func readCloseLag(ctx context.Context, w *work, orderNo string) (time.Duration, error) {
	var lagMs int64
	if err := w.QueryRowContext(ctx, readLag, orderNo).Scan(&lagMs); err != nil {
		return 0, fmt.Errorf("read close lag of order %s: %w", orderNo, err)
	}
	return time.Duration(lagMs) * time.Millisecond, nil
}

// endAttempts ends every attempt of an order at its channel. It stops at one that turns out to be paid, for then the
// order isn't closed and its other attempts are ended because of that. By the policy local-only nobody is asked.
func (s *Shop) endAttempts(ctx context.Context, orderNo string) ([]endedAttempt, error) {
	if s.cfg.ClosePolicy == CloseLocalOnly {
		return nil, nil
	}
	attempts, err := s.listUnsettled(ctx, s.env.DB, orderNo)
	if err != nil {
		return nil, err
	}
	var ended []endedAttempt
	for _, a := range attempts {
		end, err := s.endAttempt(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("end attempt %s: %w", a.outTradeNo, err)
		}
		if end == endPaid {
			break
		}
		ended = append(ended, endedAttempt{a, end})
	}
	return ended, nil
}

const closeOpenAttempts = `-- name: CloseOpenAttempts
UPDATE payment_orders SET state = 'CLOSED'
WHERE order_no = ?1 AND state = 'OPEN'`

// closeAttempts writes down how the attempts have ended. Those that nobody was asked about are closed for us, and the
// pending query goes on watching them.
func (s *Shop) closeAttempts(ctx context.Context, w *work, orderNo string, ended []endedAttempt) error {
	for _, a := range ended {
		if err := writeEnd(ctx, w, a.attempt, a.end); err != nil {
			return err
		}
	}
	if s.cfg.ClosePolicy != CloseLocalOnly {
		return nil
	}
	if _, err := w.ExecContext(ctx, closeOpenAttempts, orderNo); err != nil {
		return fmt.Errorf("close attempts of order %s: %w", orderNo, err)
	}
	return nil
}
