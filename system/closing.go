package system

import (
	"context"
	"database/sql"
	"fmt"
)

// dueOrder is an order whose deadline has passed, and at the same time a place in the scan.
type dueOrder struct {
	deadlineMs int64
	orderNo    string
}

// closeDueOrders is one closing scan. Every instance may run it at any time: an order is closed by whoever's update
// finds it still CREATED. An order that can't be closed now is left for the next scan and holds up no other.
func (s *Shop) closeDueOrders(ctx context.Context) {
	ctx = withTrace(ctx, s.env.NewID())
	var place dueOrder
	for {
		batch, err := s.listDueOrders(ctx, place)
		if err != nil {
			s.log(ctx).Error("closing scan broke off", "error", err)
			return
		}
		for _, due := range batch {
			if err := s.closeOrder(ctx, due.orderNo, "deadline"); err != nil {
				s.log(ctx).Error("close failed", "order", due.orderNo, "error", err)
			}
		}
		if len(batch) < s.cfg.ScanBatch {
			return
		}
		place = batch[len(batch)-1]
	}
}

// Paging by key, not by offset: closing takes orders out of what is scanned, and an offset would skip their neighbours.
const listDueOrders = `-- name: ListDueOrders
SELECT deadline_ms, order_no FROM orders
WHERE status = 'CREATED' AND deadline_ms <= (SELECT db_now_ms()) AND (deadline_ms, order_no) > (?1, ?2)
ORDER BY deadline_ms, order_no
LIMIT ?3`

func (s *Shop) listDueOrders(ctx context.Context, after dueOrder) ([]dueOrder, error) {
	rows, err := s.env.DB.QueryContext(ctx, listDueOrders, after.deadlineMs, after.orderNo, s.cfg.ScanBatch)
	if err != nil {
		return nil, fmt.Errorf("list due orders: %w", err)
	}
	defer rows.Close()
	var batch []dueOrder
	for rows.Next() {
		var due dueOrder
		if err := rows.Scan(&due.deadlineMs, &due.orderNo); err != nil {
			return nil, fmt.Errorf("read due order: %w", err)
		}
		batch = append(batch, due)
	}
	return batch, rows.Err()
}

// closeOrder closes an order that is still CREATED, with its open attempts, in a transaction of its own. If it has been
// paid or closed meanwhile there is nothing to do, and that is no error.
func (s *Shop) closeOrder(ctx context.Context, orderNo, reason string) error {
	tx, err := s.env.DB.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin close: %w", err)
	}
	defer tx.Rollback()
	change := statusChange{orderNo: orderNo, Transition: Transition{Created, Closed}, cause: reason}
	closed, err := changeStatus(ctx, tx, markOrderClosed, change, reason)
	if err != nil || !closed {
		return err
	}
	if err := closeAttempts(ctx, tx, orderNo); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit close: %w", err)
	}
	s.log(ctx).Info("order closed", "order", orderNo, "reason", reason)
	return nil
}

const closeOpenAttempts = `-- name: CloseOpenAttempts
UPDATE payment_orders SET state = ?2
WHERE order_no = ?1 AND state = ?3`

func closeAttempts(ctx context.Context, tx *sql.Tx, orderNo string) error {
	if _, err := tx.ExecContext(ctx, closeOpenAttempts, orderNo, AttemptClosed, AttemptOpen); err != nil {
		return fmt.Errorf("close attempts: %w", err)
	}
	return nil
}
