package system

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

//go:embed schema.sql
var schema1 string

// schemaUpkeep is the migration that housekeeping and the reading of the stock journal need.
//
//go:embed schema_upkeep.sql
var schemaUpkeep string

// Migrate brings the order database to the newest schema. It is cheap when there is nothing to do, and any number of
// instances may call it at once.
func Migrate(ctx context.Context, db *sql.DB) error {
	return sqldb.Migrate(ctx, db, schema1, schemaChecks, schemaUpkeep)
}

// readOrderSQL takes an order number and a channel; ” means the latest attempt on any channel. The last column says
// whether the deadline has passed.
const readOrderSQL = `-- name: ReadOrder
SELECT o.order_no, o.status, o.amount_cents, o.currency, o.close_reason, o.created_ms, o.deadline_ms,
       coalesce(o.paid_ms, 0), coalesce(o.closed_ms, 0), o.sku, o.quantity,
       (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.order_no = o.order_no
        AND r.channel = o.paid_channel AND r.channel_txn = o.paid_txn AND r.state = 'SUCCEEDED'),
       p.channel, p.out_trade_no, p.prepay_token, p.state, o.channel, o.deadline_ms <= db_now_ms()
FROM orders o JOIN payment_orders p ON p.order_no = o.order_no
WHERE o.order_no = ?1 AND (?2 = '' OR p.channel = ?2)
ORDER BY p.attempt DESC
LIMIT 1`

// readOrder reads an order with its latest attempt on the channel (”: on any), from the database each time: an answer
// from memory could contradict what another instance has answered already. An unknown number is a 404 order_unknown.
func (s *Shop) readOrder(ctx context.Context, orderNo, channel string) (Order, error) {
	var o Order
	err := s.env.DB.QueryRowContext(ctx, readOrderSQL, orderNo, channel).Scan(
		&o.OrderNo, &o.Status, &o.AmountCents, &o.Currency, &o.CloseReason, &o.CreatedMs, &o.DeadlineMs,
		&o.PaidMs, &o.ClosedMs, &o.SKU, &o.Quantity, &o.RefundedCents,
		&o.Channel, &o.OutTradeNo, &o.PrepayToken, &o.attemptState, &o.firstChannel, &o.expired)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return o, httpjson.Errorf(http.StatusNotFound, "order_unknown", "there is no order %s", orderNo)
	case err != nil:
		return o, fmt.Errorf("read order %s: %w", orderNo, err)
	}
	return o, nil
}

// statusChange is one wanted change of an order's status, and why.
type statusChange struct {
	orderNo string
	Transition
	cause string
}

// The conditional updates that move an order. Their first arguments are order number, new and expected status. An order
// with an open attempt isn't closed: the attempt may have been made after the closer looked. The sums are of what the
// paying charge has given back, or may still give back.
const (
	markOrderPaid = `-- name: MarkOrderPaid
UPDATE orders SET status = ?2, paid_ms = db_now_ms(), paid_channel = ?4, paid_txn = ?5
WHERE order_no = ?1 AND status = ?3`

	markOrderClosed = `-- name: MarkOrderClosed
UPDATE orders SET status = ?2, closed_ms = db_now_ms(), close_reason = ?4
WHERE order_no = ?1 AND status = ?3
AND NOT EXISTS (SELECT 1 FROM payment_orders p WHERE p.order_no = ?1 AND p.state = 'OPEN')`

	markOrderRefunding = `-- name: MarkOrderRefunding
UPDATE orders SET status = ?2
WHERE order_no = ?1 AND status = ?3
AND amount_cents <= (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.order_no = ?1
                     AND r.channel = paid_channel AND r.channel_txn = paid_txn AND ` + mayGiveBack + `)`

	markOrderRefunded = `-- name: MarkOrderRefunded
UPDATE orders SET status = ?2
WHERE order_no = ?1 AND status = ?3
AND amount_cents <= (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.order_no = ?1
                     AND r.channel = paid_channel AND r.channel_txn = paid_txn AND r.state = 'SUCCEEDED')`
)

// changeStatus moves an order by one of the conditional updates above and logs the move in the same transaction. It
// reports false, and has changed nothing, when the order wasn't in the expected status. It is the only way to move one.
func changeStatus(ctx context.Context, tx *sql.Tx, query string, c statusChange, more ...any) (bool, error) {
	if !c.Allowed() && c.Transition != Reinstatement() {
		return false, fmt.Errorf("order %s: no order goes from %s to %s", c.orderNo, c.From, c.To)
	}
	moved, err := sqldb.Changed(ctx, tx, query, append([]any{c.orderNo, c.To, c.From}, more...)...)
	if err != nil {
		return false, fmt.Errorf("move order %s to %s: %w", c.orderNo, c.To, err)
	}
	if !moved {
		return false, nil
	}
	return true, logStatus(ctx, tx, c)
}

const insertStatusLog = `-- name: InsertStatusLog
INSERT INTO order_status_log (order_no, from_status, to_status, cause, trace_id, at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, db_now_ms())`

func logStatus(ctx context.Context, tx *sql.Tx, c statusChange) error {
	_, err := tx.ExecContext(ctx, insertStatusLog, c.orderNo, c.From, c.To, c.cause, traceID(ctx))
	if err != nil {
		return fmt.Errorf("log status of order %s: %w", c.orderNo, err)
	}
	return nil
}

// readRows reads a query's rows whole; none are an empty list, as JSON has it too.
func readRows[T any](ctx context.Context, db sqldb.Querier, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := []T{}
	for rows.Next() {
		value, err := scan(rows)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}
