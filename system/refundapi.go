package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

type refundWish struct {
	RefundNo string `json:"refundNo"`    // may be left out: then each request is a refund of its own, but for repeats under an idempotency key
	Cents    *int64 `json:"amountCents"` // may be left out: then all that is left
	Money
	orderNo string
}

// handleRefund answers POST /orders/{no}/refunds with the intent, 202 until it is final and 200 then. The number decides
// what a repeat is: the same number with the same content is the same refund, with other content a 409 refund_conflict.
// An order that isn't paid is a 409 order_not_refundable; more than is left of what was paid a 422 refund_exceeds_paid.
func (s *Shop) handleRefund(w http.ResponseWriter, r *http.Request) error {
	wish, err := s.readRefundWish(r)
	if err != nil {
		return err
	}
	order, err := s.readOrder(r.Context(), wish.orderNo, "")
	if err != nil {
		return err
	}
	if wish.Currency != "" && wish.Currency != order.Currency {
		return httpjson.Errorf(http.StatusUnprocessableEntity, "currency_mismatch", "order %s is in %s", order.OrderNo, order.Currency)
	}
	refund, err := s.intendRefund(r.Context(), wish)
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if refund.DoneMs != 0 {
		status = http.StatusOK
	}
	httpjson.Write(w, status, refund)
	return nil
}

func (s *Shop) readRefundWish(r *http.Request) (refundWish, error) {
	var wish refundWish
	if err := httpjson.ReadStrict(r, &wish); err != nil {
		return wish, err
	}
	orderNo, err := pathOrderNo(r)
	if err != nil {
		return wish, err
	}
	wish.orderNo = orderNo
	if wish.Cents != nil {
		wish.AmountCents = *wish.Cents
	}
	if wish.Cents != nil && wish.AmountCents < 1 || wish.AmountCents > maxAmountCents {
		return wish, httpjson.Errorf(http.StatusBadRequest, "amount_invalid", "amountCents must be 1 to %d, or left out", maxAmountCents)
	}
	if wish.RefundNo == "" {
		wish.RefundNo = "F-" + s.effectID(r.Context())
		return wish, nil
	}
	if isAutomatic(wish.RefundNo) {
		return wish, httpjson.Errorf(http.StatusBadRequest, "refund_no_invalid", "refundNo must not begin with %s", automaticRefund)
	}
	return wish, checkName("refundNo", "refund_no_invalid", wish.RefundNo, maxRefundNo)
}

// intendRefund commits the intent before the channel hears of it.
func (s *Shop) intendRefund(ctx context.Context, wish refundWish) (refund Refund, err error) {
	err = s.transact(ctx, "refund intent", func(w *work) error {
		refund, err = readRefund(ctx, w, wish.RefundNo)
		if err == nil {
			return wish.refuseOther(refund)
		}
		if !errors.Is(err, errNoRefund) {
			return err
		}
		if err := insertIntent(ctx, w, wish); err != nil {
			return err
		}
		refund, err = readRefund(ctx, w, wish.RefundNo)
		return err
	})
	return refund, err
}

// refuseOther refuses a wish whose number belongs to a refund with other content.
func (wish refundWish) refuseOther(known Refund) error {
	setDefault(&wish.AmountCents, known.AmountCents)
	other := differences(difference{"orderNo", known.OrderNo, wish.orderNo}, difference{"amountCents", known.AmountCents, wish.AmountCents})
	if other == "" {
		return nil
	}
	return httpjson.Errorf(http.StatusConflict, "refund_conflict", "refund %s exists with other content: %s", known.RefundNo, other)
}

// What is left is judged by the statement that takes it, within the transaction that has the write lock.
const (
	readRefundable = `-- name: ReadRefundable
SELECT o.status, o.amount_cents - (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.order_no = o.order_no
       AND r.channel = o.paid_channel AND r.channel_txn = o.paid_txn AND ` + mayGiveBack + `)
FROM orders o WHERE o.order_no = ?1`

	insertRefund = `-- name: InsertRefund
INSERT INTO refunds (refund_no, order_no, channel, channel_txn, out_trade_no, amount_cents, total_cents, currency,
                     cause, state, created_ms, next_query_ms)
SELECT ?1, p.order_no, p.channel, p.channel_txn, p.out_trade_no, ?3, p.amount_cents, p.currency,
       'request', 'REQUESTED', db_now_ms(), db_now_ms() + ?4
FROM orders o JOIN payment_records p ON p.channel = o.paid_channel AND p.channel_txn = o.paid_txn
WHERE o.order_no = ?2 AND o.status IN ('PAID', 'REFUNDING')
AND ?3 + (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.order_no = o.order_no
          AND r.channel = o.paid_channel AND r.channel_txn = o.paid_txn AND ` + mayGiveBack + `) <= o.amount_cents`
)

// insertIntent takes a new refund's amount out of what is left of the paid money, and moves the order when nothing is
// left.
func insertIntent(ctx context.Context, w *work, wish refundWish) error {
	var status Status
	var left int64
	if err := w.QueryRowContext(ctx, readRefundable, wish.orderNo).Scan(&status, &left); err != nil {
		return fmt.Errorf("read what is left of order %s: %w", wish.orderNo, err)
	}
	if status != Paid && status != Refunding {
		if status != Refunded {
			return httpjson.Errorf(http.StatusConflict, "order_not_refundable", "order %s is %s", wish.orderNo, status)
		}
		left = 0
	}
	setDefault(&wish.AmountCents, left)
	inserted := false
	if wish.AmountCents > 0 {
		var err error
		inserted, err = w.exec(ctx, insertRefund, wish.RefundNo, wish.orderNo, wish.AmountCents, firstRefundQuery.Milliseconds())
		if err != nil {
			return fmt.Errorf("insert refund %s: %w", wish.RefundNo, err)
		}
	}
	if !inserted {
		return httpjson.Errorf(http.StatusUnprocessableEntity, "refund_exceeds_paid", "%d cents are left to refund of order %s", left, wish.orderNo)
	}
	change := statusChange{orderNo: wish.orderNo, Transition: Transition{Paid, Refunding}, cause: "refund"}
	if _, err := changeStatus(ctx, w.Tx, markOrderRefunding, change); err != nil {
		return err
	}
	return w.enqueue(ctx, message{kind: sendRefund, key: wish.RefundNo})
}

// handleRefunds answers GET /orders/{no}/refunds with all refunds of an order, oldest first.
func (s *Shop) handleRefunds(w http.ResponseWriter, r *http.Request) error {
	orderNo, err := pathOrderNo(r)
	if err != nil {
		return err
	}
	if _, err := s.readOrder(r.Context(), orderNo, ""); err != nil {
		return err
	}
	refunds, err := readRefunds(r.Context(), s.env.DB,
		"-- name: ListRefunds"+selectRefunds+`WHERE order_no = ?1 ORDER BY created_ms, refund_no`, orderNo)
	if err != nil {
		return err
	}
	httpjson.Write(w, http.StatusOK, map[string][]Refund{"refunds": refunds})
	return nil
}

// refundNotice is what a channel posts to /callback/refund.
type refundNotice struct {
	RefundNo   string     `json:"refundNo"`
	Channel    string     `json:"channel"`
	MerchantID string     `json:"merchantId"`
	State      refundWord `json:"state"`
	Money
}

type refundAck struct {
	RefundNo string `json:"refundNo"`
	Result   string `json:"result"`
}

// handleRefundCallback answers POST /callback/refund. What it says is checked as a pay callback is, then written, and
// only then acknowledged: 404 refund_unknown, 422 amount_mismatch with an alert, 400 refund_state_invalid and
// those of an amount.
func (s *Shop) handleRefundCallback(w http.ResponseWriter, r *http.Request) error {
	var notice refundNotice
	if err := s.readSigned(r, &notice); err != nil {
		return err
	}
	if err := s.checkMerchant(notice.MerchantID); err != nil {
		return err
	}
	var err error
	if notice.Money, err = notice.checked(); err != nil {
		return err
	}
	refund, err := s.matchRefund(r.Context(), notice)
	if err != nil {
		return err
	}
	if err := s.writeRefund(r.Context(), refund, notice.State); err != nil {
		return err
	}
	s.acknowledge(w, notice.Channel, refundAck{RefundNo: refund.RefundNo, Result: "success"})
	return nil
}

func (s *Shop) matchRefund(ctx context.Context, notice refundNotice) (Refund, error) {
	if !notice.State.known() {
		return Refund{}, httpjson.Errorf(http.StatusBadRequest, "refund_state_invalid", "state must be one of %s, not %.32q", refundWords, notice.State)
	}
	refund, err := readRefund(ctx, s.env.DB, notice.RefundNo)
	switch {
	case errors.Is(err, errNoRefund), err == nil && refund.Channel != notice.Channel:
		return refund, httpjson.Errorf(http.StatusNotFound, "refund_unknown", "there is no refund %.64q on %.32q", notice.RefundNo, notice.Channel)
	case err != nil:
		return refund, err
	case notice.Money != refund.Money:
		return refund, s.refuseRefundNotice(ctx, notice, refund)
	}
	return refund, nil
}

// refuseRefundNotice refuses a notice that contradicts our refund, with the alert that the bill raises if it says so too.
func (s *Shop) refuseRefundNotice(ctx context.Context, notice refundNotice, refund Refund) error {
	gap := gapOf(refundMismatch, refund.Channel+"/"+refund.RefundNo, notice.Money, "the channel tells of %s for order %s, our refund is of %s",
		inWords(notice.Money), refund.OrderNo, inWords(refund.Money))
	if err := s.report(ctx, []alert{gap}); err != nil {
		return err
	}
	return httpjson.Errorf(http.StatusUnprocessableEntity, "amount_mismatch", "refund %s is of %s", refund.RefundNo, inWords(refund.Money))
}
