package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// charge is what a channel says: it has taken this money for this attempt.
type charge struct {
	OrderNo    string `json:"orderNo"`
	OutTradeNo string `json:"outTradeNo"` // may be left out: then the order's latest attempt on the channel
	Channel    string `json:"channel"`
	ChannelTxn string `json:"channelTxn"`
	MerchantID string `json:"merchantId"` // may be left out: the signature says it too
	Money
}

// refundNo is the number under which the whole charge goes back. It follows from the charge, so that there can be only
// one such refund, whoever finds the charge and how often.
func (c charge) refundNo() string { return automaticRefund + c.Channel + "-" + c.ChannelTxn }

// settleCharge is the one way in which a charge becomes a fact, however we hear of it: by callback, by query, or
// because the channel wouldn't close a paid trade. source says which.
func (s *Shop) settleCharge(ctx context.Context, c charge, source string) (paymentRecord, error) {
	c, err := s.matchAttempt(ctx, c)
	if err != nil {
		return paymentRecord{}, err
	}
	return s.recordCharge(ctx, c, source)
}

const findAttempt = `-- name: FindAttempt
SELECT p.out_trade_no, o.amount_cents, o.currency
FROM payment_orders p JOIN orders o ON o.order_no = p.order_no
WHERE p.order_no = ?1 AND p.channel = ?2 AND (?3 = '' OR p.out_trade_no = ?3)
ORDER BY p.attempt DESC
LIMIT 1`

// matchAttempt finds the attempt that the charge is for and fills in its number. What it compares never changes, so no
// transaction is needed. An attempt nobody knows is a 404 attempt_unknown (the channel sends again: we may have lost
// a race with our own create), another amount or currency a 422 amount_mismatch.
func (s *Shop) matchAttempt(ctx context.Context, c charge) (charge, error) {
	var due Money
	err := s.env.DB.QueryRowContext(ctx, findAttempt, c.OrderNo, c.Channel, c.OutTradeNo).
		Scan(&c.OutTradeNo, &due.AmountCents, &due.Currency)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return c, httpjson.Errorf(http.StatusNotFound, "attempt_unknown", "order %s has no such attempt on %s", c.OrderNo, c.Channel)
	case err != nil:
		return c, fmt.Errorf("find attempt of order %s: %w", c.OrderNo, err)
	case c.Money != due:
		return c, httpjson.Errorf(http.StatusUnprocessableEntity, "amount_mismatch", "order %s is for another amount or currency", c.OrderNo)
	}
	return c, nil
}

// recordCharge is the local transaction that turns a charge into facts: the record, and the order's move if the charge
// is the one that pays it, or else the money's way back. The unique key on (channel, channel transaction) decides
// whether it is new; new or not, the answer is read back from the one row. The same transaction with other content is
// a 409 transaction_conflict.
func (s *Shop) recordCharge(ctx context.Context, c charge, source string) (paymentRecord, error) {
	var record paymentRecord
	var isNew bool
	err := s.transact(ctx, "charge", func(w *work) (err error) {
		if isNew, err = insertRecord(ctx, w.Tx, c); err != nil {
			return err
		}
		if record, err = readRecord(ctx, w.Tx, c); err != nil || !isNew {
			return err
		}
		return s.applyCharge(ctx, w, c, record.disposition, source)
	})
	if err != nil {
		return paymentRecord{}, err
	}
	s.log(ctx).Info("charge recorded", "order", c.OrderNo, "channelTxn", c.ChannelTxn, "source", source,
		"new", isNew, "disposition", record.disposition, "status", record.orderStatus)
	return record, nil
}

// applyCharge does what a new charge brings about. A charge that meets a closed or paid order moves nothing: the money
// is not ours to keep.
func (s *Shop) applyCharge(ctx context.Context, w *work, c charge, disposition, source string) error {
	if _, err := w.exec(ctx, markAttemptPaid, c.OutTradeNo); err != nil {
		return fmt.Errorf("mark attempt %s paid: %w", c.OutTradeNo, err)
	}
	switch {
	case disposition == applied:
		return s.payOrder(ctx, w, c, source)
	case disposition == late && s.cfg.LateSuccess == LateReinstate:
		return enqueueReinstate(ctx, w, c)
	}
	return refundCharge(ctx, w, c, disposition)
}

// payOrder moves the order for which the charge was found to be the one that pays it.
func (s *Shop) payOrder(ctx context.Context, w *work, c charge, source string) error {
	change := statusChange{orderNo: c.OrderNo, Transition: Transition{Created, Paid}, cause: source}
	moved, err := changeStatus(ctx, w.Tx, markOrderPaid, change, c.Channel, c.ChannelTxn)
	if err != nil {
		return err
	}
	if !moved {
		return fmt.Errorf("order %s: charge %s applies, but the order didn't move", c.OrderNo, c.ChannelTxn)
	}
	return s.followPaid(ctx, w, c.OrderNo)
}

const readStockNo = `-- name: ReadStockNo
SELECT CASE sku WHEN '' THEN '' ELSE stock_no END FROM orders WHERE order_no = ?1`

// followPaid writes the messages that follow from an order's being paid: its stock is sold, and no other attempt may
// take money.
func (s *Shop) followPaid(ctx context.Context, w *work, orderNo string) error {
	if err := enqueueStock(ctx, w, stockDeduct, orderNo); err != nil {
		return err
	}
	others, err := s.listUnsettled(ctx, w.Tx, orderNo)
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := w.enqueue(ctx, message{kind: closeTrade, key: other.outTradeNo}); err != nil {
			return err
		}
	}
	return nil
}

// enqueueStock tells the stock service what has become of an order, if it has anything to do with it.
func enqueueStock(ctx context.Context, w *work, kind messageKind, orderNo string) error {
	var stockNo string
	if err := w.QueryRowContext(ctx, readStockNo, orderNo).Scan(&stockNo); err != nil {
		return fmt.Errorf("read stock number of order %s: %w", orderNo, err)
	}
	if stockNo == "" {
		return nil
	}
	return w.enqueue(ctx, message{kind: kind, key: stockNo})
}
