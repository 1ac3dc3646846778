package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/signature"
	"github.com/tillstorm/tillstorm/system/sqldb"
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

// callbackAnswer acknowledges a charge. Status is the order's right after the charge was recorded, in a repeat too, so
// that all deliveries of one charge get the same bytes.
type callbackAnswer struct {
	OrderNo string `json:"orderNo"`
	Status  Status `json:"status"`
	Result  string `json:"result"`
}

// handlePayCallback answers POST /callback/pay. Everything that could be wrong with the message is checked before
// anything is written; then the charge is recorded, and only what is committed is acknowledged with a 200. Any other
// answer makes the channel send it again.
func (s *Shop) handlePayCallback(w http.ResponseWriter, r *http.Request) error {
	c, err := s.readCharge(r)
	if err != nil {
		return err
	}
	if c, err = s.matchAttempt(r.Context(), c); err != nil {
		return err
	}
	record, err := s.recordCharge(r.Context(), c)
	if err != nil {
		return err
	}
	httpjson.Write(w, http.StatusOK, callbackAnswer{OrderNo: record.orderNo, Status: record.orderStatus, Result: "success"})
	return nil
}

// readCharge reads an authentic, fresh and well-formed charge of our merchant. The signature comes first: nobody
// unsigned learns how messages are parsed. 401 signature_*, 403 merchant_unknown, 400 for what is malformed.
func (s *Shop) readCharge(r *http.Request) (charge, error) {
	var c charge
	body, err := httpjson.ReadBody(r.Body)
	if err != nil {
		return c, err
	}
	err = signature.Verify(s.cfg.SigningKey, body, r.Header.Get(signature.Header), s.env.Clock.Now(), s.cfg.SignatureMaxAge)
	if err != nil {
		return c, httpjson.Errorf(http.StatusUnauthorized, err.Error(), "the callback's signature was refused")
	}
	if err := httpjson.Decode(body, &c); err != nil {
		return c, err
	}
	if c.MerchantID != "" && c.MerchantID != s.cfg.MerchantID {
		return c, httpjson.Errorf(http.StatusForbidden, "merchant_unknown", "the callback is for another merchant")
	}
	return c, c.check()
}

func (c *charge) check() error {
	err := errors.Join(
		checkName("orderNo", "order_no_invalid", c.OrderNo, maxOrderNo),
		checkName("channel", "channel_invalid", c.Channel, maxChannelName),
		checkName("channelTxn", "channel_txn_invalid", c.ChannelTxn, maxChannelTxn),
	)
	if err == nil && c.OutTradeNo != "" {
		err = checkName("outTradeNo", "out_trade_no_invalid", c.OutTradeNo, maxOutTradeNo)
	}
	if err != nil {
		return err
	}
	c.Money, err = c.checked()
	return err
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
// is the one that pays it. The unique key on (channel, channel transaction) decides whether it is new; new or not, the
// answer is read back from the one row. The same transaction with other content is a 409 transaction_conflict.
func (s *Shop) recordCharge(ctx context.Context, c charge) (paymentRecord, error) {
	tx, err := s.env.DB.BeginTx(ctx, nil)
	if err != nil {
		return paymentRecord{}, fmt.Errorf("begin charge: %w", err)
	}
	defer tx.Rollback()
	isNew, err := insertRecord(ctx, tx, c)
	if err != nil {
		return paymentRecord{}, err
	}
	if isNew {
		if err := applyCharge(ctx, tx, c); err != nil {
			return paymentRecord{}, err
		}
	}
	record, err := readRecord(ctx, tx, c)
	if err != nil {
		return paymentRecord{}, err
	}
	if err := tx.Commit(); err != nil {
		return paymentRecord{}, fmt.Errorf("commit charge %s: %w", c.ChannelTxn, err)
	}
	s.log(ctx).Info("charge recorded", "order", c.OrderNo, "channelTxn", c.ChannelTxn,
		"new", isNew, "disposition", record.disposition, "status", record.orderStatus)
	return record, nil
}

const markAttemptPaid = `-- name: MarkAttemptPaid
UPDATE payment_orders SET state = ?2
WHERE out_trade_no = ?1 AND state <> ?2`

// applyCharge pays the order if it still waits for it. If it doesn't, the record alone remains, as late or surplus: the
// order doesn't move, and the money is not ours to keep.
func applyCharge(ctx context.Context, tx *sql.Tx, c charge) error {
	change := statusChange{orderNo: c.OrderNo, Transition: Transition{Created, Paid}, cause: "callback"}
	if _, err := changeStatus(ctx, tx, markOrderPaid, change); err != nil {
		return err
	}
	if _, err := sqldb.Changed(ctx, tx, markAttemptPaid, c.OutTradeNo, AttemptPaid); err != nil {
		return fmt.Errorf("mark attempt %s paid: %w", c.OutTradeNo, err)
	}
	return nil
}
