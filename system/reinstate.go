package system

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// By the policy LateReinstate a charge that meets a closed order may open it again. The stock service must be asked
// first, so this is the work of a message; it may be done any number of times, also at once, and for several charges of
// one order.

func enqueueReinstate(ctx context.Context, w *work, c charge) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return w.enqueue(ctx, message{kind: reinstate, key: c.refundNo(), body: string(body)})
}

// stockNoAgain is the number under which the stock is frozen again for a late charge: the order's first one is released
// for ever, and each charge must be able to give back what it has frozen. No order number has a dot.
func (c charge) stockNoAgain() string {
	sum := sha256.Sum256([]byte(c.refundNo()))
	return c.OrderNo + "." + hex.EncodeToString(sum[:8])
}

const readStockWish = `-- name: ReadStockWish
SELECT sku, quantity, ` + wasCancelled + ` FROM orders WHERE order_no = ?1`

// reinstateOrder opens a closed order again for a charge that came late, if its stock can be frozen again; if not, if
// its buyer has cancelled it, or if another charge was first, the charge goes back.
func (s *Shop) reinstateOrder(ctx context.Context, c charge) error {
	var sku string
	var quantity int64
	var cancelled bool
	if err := s.env.DB.QueryRowContext(ctx, readStockWish, c.OrderNo).Scan(&sku, &quantity, &cancelled); err != nil {
		return fmt.Errorf("read stock of order %s: %w", c.OrderNo, err)
	}
	if sku != "" && !cancelled {
		err := s.stock.freeze(ctx, c.stockNoAgain(), sku, quantity)
		if errors.Is(err, errOutOfStock) {
			return s.transact(ctx, "late refund", func(w *work) error { return giveBackLate(ctx, w, c, sku) })
		}
		if err != nil {
			return err
		}
	}
	return s.transact(ctx, "reinstate", func(w *work) error { return s.reopenOrder(ctx, w, c, sku) })
}

const markOrderReinstated = `-- name: MarkOrderReinstated
UPDATE orders SET status = ?2, paid_ms = db_now_ms(), paid_channel = ?4, paid_txn = ?5, stock_no = ?6
WHERE order_no = ?1 AND status = ?3 AND NOT ` + wasCancelled + `
AND NOT EXISTS (SELECT 1 FROM refunds WHERE refund_no = ?7)`

// reopenOrder makes the policy's own transition, CLOSED to PAID, unless the buyer has cancelled the order or the charge
// is on its way back already.
func (s *Shop) reopenOrder(ctx context.Context, w *work, c charge, sku string) error {
	change := statusChange{orderNo: c.OrderNo, Transition: Reinstatement(), cause: "reinstate"}
	moved, err := changeStatus(ctx, w.Tx, markOrderReinstated, change, c.Channel, c.ChannelTxn, c.stockNoAgain(), c.refundNo())
	if err != nil {
		return err
	}
	if moved {
		return s.followPaid(ctx, w, c.OrderNo)
	}
	return giveBackLate(ctx, w, c, sku)
}

// giveBackLate gives a late charge back, and the stock that may have been frozen for it, unless it has paid the order.
func giveBackLate(ctx context.Context, w *work, c charge, sku string) error {
	mine, err := paysOrder(ctx, w.Tx, c)
	if err != nil || mine {
		return err
	}
	if err := refundCharge(ctx, w, c, late); err != nil || sku == "" {
		return err
	}
	return w.enqueue(ctx, message{kind: stockRelease, key: c.stockNoAgain()})
}

const readPayingCharge = `-- name: ReadPayingCharge
SELECT coalesce(paid_channel, ''), coalesce(paid_txn, '') FROM orders WHERE order_no = ?1`

// paysOrder reports whether the charge is the one that has paid its order.
func paysOrder(ctx context.Context, tx *sql.Tx, c charge) (bool, error) {
	var channel, txn string
	if err := tx.QueryRowContext(ctx, readPayingCharge, c.OrderNo).Scan(&channel, &txn); err != nil {
		return false, fmt.Errorf("read paying charge of order %s: %w", c.OrderNo, err)
	}
	return channel == c.Channel && txn == c.ChannelTxn, nil
}
