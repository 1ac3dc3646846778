package channel

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// The states of a refund besides SUCCESS and CLOSED. An ABNORMAL one has left the merchant, but not reached the payer:
// an operator decides it later.
const (
	stateProcessing = "PROCESSING"
	stateAbnormal   = "ABNORMAL"
)

// refundTerms are what a merchant asks for; they belong to the refund number for ever.
type refundTerms struct {
	MerchantID  string `json:"merchantId"`
	OutTradeNo  string `json:"outTradeNo"`
	RefundNo    string `json:"refundNo"`
	AmountCents int64  `json:"amountCents"`
	TotalCents  int64  `json:"totalCents"` // of the trade
	NotifyURL   string `json:"notifyUrl"`
}

func (r refundTerms) check() error {
	switch {
	case r.RefundNo == "", r.OutTradeNo == "", r.MerchantID == "":
		return paramError("refundNo, outTradeNo and merchantId are needed")
	case r.AmountCents < 1:
		return paramError("amountCents must be positive")
	case r.NotifyURL != "" && !isURL(r.NotifyURL):
		return paramError("notifyUrl must be an absolute URL, or be left out")
	}
	return nil
}

// refund is a row of refunds, and the time at which it was read.
type refund struct {
	refundTerms
	orderNo, currency, state string
	acceptedMs, settledMs    int64
	settleAtMs, nowMs        int64
}

// acceptRefund executes a refund number once, whoever asks how often; it reports whether this request did. It is
// refused as 409 REFUND_NO_USED, TRADE_NOT_PAID or REFUND_TOO_MUCH, and as 429 FREQUENCY_LIMITED.
func (c *Channel) acceptRefund(ctx context.Context, wanted refundTerms) (r refund, accepted bool, err error) {
	err = c.change(ctx, func(tx *sql.Tx) (after func(), err error) {
		var found bool
		if r, found, err = readRefund(ctx, tx, wanted.RefundNo); err != nil || found {
			return nil, err
		}
		t, err := c.readTrade(ctx, tx, wanted.OutTradeNo)
		if err != nil {
			return nil, err
		}
		if err := c.refuseRefund(ctx, tx, t, wanted); err != nil {
			return nil, err
		}
		if after, err = c.insertRefund(ctx, tx, t, wanted); err != nil {
			return nil, err
		}
		r, accepted, err = readRefund(ctx, tx, wanted.RefundNo)
		return after, err
	})
	if err != nil {
		return r, false, err
	}
	if r.refundTerms != wanted {
		return r, false, refuse("REFUND_NO_USED", "refund %s has other terms", wanted.RefundNo)
	}
	return r, accepted, nil
}

const summarizeRefunds = `-- name: SummarizeRefunds
SELECT count(*), coalesce(max(accepted_ms), 0) FROM refunds WHERE out_trade_no = ?1`

func (c *Channel) refuseRefund(ctx context.Context, tx *sql.Tx, t trade, wanted refundTerms) error {
	switch {
	case t.MerchantID != wanted.MerchantID:
		return tradeNotExist(wanted.OutTradeNo)
	case t.state != stateSuccess:
		return refuse("TRADE_NOT_PAID", "trade %s is not paid", t.OutTradeNo)
	case wanted.TotalCents != t.AmountCents:
		return paramError("totalCents is not the amount of trade %s", t.OutTradeNo)
	case wanted.AmountCents > t.AmountCents-t.refundedCents:
		return refuse("REFUND_TOO_MUCH", "trade %s has %d left to refund", t.OutTradeNo, t.AmountCents-t.refundedCents)
	}
	var count int
	var lastMs int64
	if err := tx.QueryRowContext(ctx, summarizeRefunds, t.OutTradeNo).Scan(&count, &lastMs); err != nil {
		return fmt.Errorf("summarize refunds of %s: %w", t.OutTradeNo, err)
	}
	p := c.cfg.Personality
	if p.MaxRefunds > 0 && count >= p.MaxRefunds {
		return refuse("REFUND_TOO_MANY", "trade %s has been refunded %d times", t.OutTradeNo, count)
	}
	if count > 0 && t.nowMs < lastMs+p.RefundGap.Milliseconds() {
		return frequencyLimited("trade %s was refunded less than %v ago; call again with the same number", t.OutTradeNo, p.RefundGap)
	}
	return nil
}

const insertRefundRow = `-- name: InsertRefund
INSERT INTO refunds (refund_no, channel_txn, out_trade_no, order_no, merchant_id, amount_cents, currency, fee_cents,
                     notify_url, state, outcome, accepted_ms, settle_at_ms)
SELECT ?1, ?2, out_trade_no, order_no, merchant_id, ?4, currency, ?5, ?6, 'PROCESSING', ?7, db_now_ms(), db_now_ms() + ?8
FROM trades WHERE out_trade_no = ?3`

// insertRefund accepts a refund, and also does it where the channel does it in the reply. It returns what goes on after
// the commit.
func (c *Channel) insertRefund(ctx context.Context, tx *sql.Tx, t trade, wanted refundTerms) (func(), error) {
	outcome, takesMs := t.oddity.RefundState, t.oddity.RefundLagMs
	if outcome == "" {
		outcome = stateSuccess
	}
	if takesMs == 0 {
		takesMs = c.cfg.Personality.RefundTakes.Milliseconds()
	}
	_, err := sqldb.Changed(ctx, tx, insertRefundRow, wanted.RefundNo, t.channelTxn, t.OutTradeNo, wanted.AmountCents,
		c.cfg.Personality.feeBack(wanted.AmountCents), wanted.NotifyURL, outcome, takesMs)
	if err != nil {
		return nil, fmt.Errorf("insert refund %s: %w", wanted.RefundNo, err)
	}
	if takesMs == 0 {
		return c.settleRefund(ctx, tx, wanted.RefundNo, "")
	}
	return func() { c.startRefunding(wanted.RefundNo) }, nil
}

const selectRefund = `-- name: ReadRefund
SELECT r.refund_no, r.out_trade_no, r.merchant_id, r.amount_cents, t.amount_cents, r.notify_url, r.order_no, r.currency,
       r.state, r.accepted_ms, coalesce(r.settled_ms, 0), r.settle_at_ms, db_now_ms()
FROM refunds r JOIN trades t ON t.out_trade_no = r.out_trade_no
WHERE r.refund_no = ?1`

func readRefund(ctx context.Context, db sqldb.Querier, refundNo string) (r refund, found bool, err error) {
	err = db.QueryRowContext(ctx, selectRefund, refundNo).Scan(&r.RefundNo, &r.OutTradeNo, &r.MerchantID, &r.AmountCents,
		&r.TotalCents, &r.NotifyURL, &r.orderNo, &r.currency, &r.state, &r.acceptedMs, &r.settledMs, &r.settleAtMs, &r.nowMs)
	if errors.Is(err, sql.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("read refund %s: %w", refundNo, err)
	}
	return r, true, nil
}

const updateRefund = `-- name: SettleRefund
UPDATE refunds SET state = CASE ?2 WHEN '' THEN outcome ELSE ?2 END, settled_ms = db_now_ms()
WHERE refund_no = ?1 AND state IN ('PROCESSING', 'ABNORMAL')`

// settleRefund takes a refund that isn't final to a state (empty: its outcome), and notifies the merchant in the same
// transaction. It does nothing to a final one.
func (c *Channel) settleRefund(ctx context.Context, tx *sql.Tx, refundNo, state string) (func(), error) {
	moved, err := sqldb.Changed(ctx, tx, updateRefund, refundNo, state)
	if err != nil || !moved {
		return nil, err
	}
	r, _, err := readRefund(ctx, tx, refundNo)
	if err != nil {
		return nil, err
	}
	t, err := c.readTrade(ctx, tx, r.OutTradeNo)
	if err != nil {
		return nil, err
	}
	body, url := c.refundNotice(r), r.NotifyURL
	if c.cfg.Personality.RefundToPayURL {
		body, url = c.refundedTradeNotice(t, r), t.NotifyURL
	}
	if url == "" {
		return nil, nil
	}
	id := "refund-" + r.RefundNo + "-" + r.state
	return c.tell(ctx, tx, t, tidings{id: id, url: url, traceID: c.env.NewID(), body: body})
}

func (c *Channel) refundNotice(r refund) notice {
	return notice{
		OrderNo: r.orderNo, OutTradeNo: r.OutTradeNo, RefundNo: r.RefundNo, Channel: c.cfg.Name, MerchantID: r.MerchantID,
		State: r.state, AmountCents: r.AmountCents, Currency: r.currency,
	}
}

// refundedTradeNotice tells of a refund by telling of its trade once more.
func (c *Channel) refundedTradeNotice(t trade, r refund) notice {
	state := stateSuccess
	if t.refundedCents == t.AmountCents {
		state = stateClosed
	}
	n := c.tradeNotice(t, state)
	n.RefundNo = r.RefundNo
	return n
}

// startRefunding starts the task that does an accepted refund when its time has come.
func (c *Channel) startRefunding(refundNo string) {
	c.env.Loops.Go("settle-refund("+refundNo+")", func(ctx context.Context) {
		for c.refundOnce(ctx, refundNo) {
		}
	})
}

// refundOnce waits for a refund's time and does it. It reports whether to try again.
func (c *Channel) refundOnce(ctx context.Context, refundNo string) bool {
	r, _, err := readRefund(ctx, c.env.DB, refundNo)
	if err != nil {
		return c.pause(ctx, "read refund "+refundNo, err)
	}
	wait := time.Duration(r.settleAtMs-r.nowMs) * time.Millisecond
	if r.state != stateProcessing || c.env.Clock.Sleep(ctx, max(0, wait)) != nil {
		return false
	}
	if err := c.decideRefund(ctx, refundNo, ""); err != nil {
		return c.pause(ctx, "settle refund "+refundNo, err)
	}
	return false
}

func (c *Channel) decideRefund(ctx context.Context, refundNo, state string) error {
	return c.change(ctx, func(tx *sql.Tx) (func(), error) { return c.settleRefund(ctx, tx, refundNo, state) })
}
