package channel

import (
	"database/sql"
	"fmt"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// handleOddity answers POST /operator/trade: how the channel behaves for one trade from now on, in place of what was
// set before. The trade need not be there yet.
func (c *Channel) handleOddity(r *http.Request) (any, error) {
	request := struct {
		OutTradeNo string `json:"outTradeNo"`
		Oddity
	}{Oddity: c.cfg.Oddity}
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	if request.OutTradeNo == "" {
		return nil, paramError("outTradeNo is needed")
	}
	if err := request.Oddity.check(); err != nil {
		return nil, err
	}
	return request, setOddity(r.Context(), c.env.DB, request.OutTradeNo, request.Oddity)
}

// handleDecideRefund answers POST /operator/refund: an operator decides a refund that is PROCESSING or ABNORMAL. A
// final one stays as it is.
func (c *Channel) handleDecideRefund(r *http.Request) (any, error) {
	var request struct {
		RefundNo string `json:"refundNo"`
		State    string `json:"state"`
	}
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	switch request.State {
	case stateSuccess, stateClosed, stateAbnormal:
	default:
		return nil, paramError("state must be SUCCESS, CLOSED or ABNORMAL")
	}
	if err := c.decideRefund(r.Context(), request.RefundNo, request.State); err != nil {
		return nil, err
	}
	return c.tellRefund(r, request.RefundNo)
}

// handleFinish answers POST /operator/finish: a charge is told once more, as FINISHED.
func (c *Channel) handleFinish(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	var t trade
	err := c.change(r.Context(), func(tx *sql.Tx) (after func(), err error) {
		if t, err = c.readTrade(r.Context(), tx, request.OutTradeNo); err != nil {
			return nil, err
		}
		if t.state != stateSuccess {
			return nil, refuse("TRADE_NOT_PAID", "trade %s is not paid", t.OutTradeNo)
		}
		body := c.tradeNotice(t, stateFinished)
		return c.tell(r.Context(), tx, t, tidings{id: "finished-" + t.OutTradeNo, url: t.NotifyURL, traceID: c.env.NewID(), body: body})
	})
	if err != nil {
		return nil, err
	}
	return answerTrade(t, stateFinished), nil
}

const listNotices = `-- name: ListNoticesOfTrade
SELECT notice_id FROM notifications WHERE out_trade_no = ?1 ORDER BY notice_id`

// handleResend answers POST /operator/resend: everything that the merchant was told of a trade is sent once more, at
// once, whether it was acknowledged or not.
func (c *Channel) handleResend(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	ids, err := c.listIDs(r.Context(), listNotices, request.OutTradeNo)
	if err != nil {
		return nil, fmt.Errorf("list notices of %s: %w", request.OutTradeNo, err)
	}
	for _, id := range ids {
		c.startResend(id)
	}
	return map[string]any{"notices": ids}, nil
}

const upsertBillDelay = `-- name: SetBillDelay
INSERT INTO bill_delays (bill_date, delay_ms) VALUES (?1, ?2)
ON CONFLICT (bill_date) DO UPDATE SET delay_ms = ?2`

// handleBillDelay answers POST /operator/bill: a day's bill is ready so much later.
func (c *Channel) handleBillDelay(r *http.Request) (any, error) {
	var request struct {
		Date    string `json:"date"`
		DelayMs int64  `json:"delayMs"`
	}
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	if _, err := time.Parse(time.DateOnly, request.Date); err != nil || request.DelayMs < 0 {
		return nil, paramError("date must be like 2026-01-31, and delayMs not negative")
	}
	if _, err := c.env.DB.ExecContext(r.Context(), upsertBillDelay, request.Date, request.DelayMs); err != nil {
		return nil, fmt.Errorf("delay bill %s: %w", request.Date, err)
	}
	return request, nil
}

// billEdit is a mistake in a bill to come. Reference is the row's refund number, or its channel transaction. For hide
// nothing else is needed, for change what is to be another (trade, order, amount, currency), for add all of the row.
type billEdit struct {
	Action      string `json:"action"` // hide, change, add
	Reference   string `json:"reference"`
	Kind        string `json:"kind"` // charge, refund
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	AtMs        int64  `json:"atMs"`
}

const upsertBillEdit = `-- name: SetBillEdit
INSERT INTO bill_edits (reference, action, kind, out_trade_no, order_no, amount_cents, currency, at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (reference) DO UPDATE SET action = ?2, kind = ?3, out_trade_no = ?4, order_no = ?5, amount_cents = ?6,
                                      currency = ?7, at_ms = ?8`

// handleBillEdit answers POST /operator/bill-row. A bill that is made already stays as it is.
func (c *Channel) handleBillEdit(r *http.Request) (any, error) {
	var e billEdit
	if err := httpjson.ReadStrict(r, &e); err != nil {
		return nil, err
	}
	if err := e.check(); err != nil {
		return nil, err
	}
	_, err := c.env.DB.ExecContext(r.Context(), upsertBillEdit, e.Reference, e.Action, e.Kind, e.OutTradeNo, e.OrderNo,
		e.AmountCents, e.Currency, e.AtMs)
	if err != nil {
		return nil, fmt.Errorf("edit bill row %s: %w", e.Reference, err)
	}
	return e, nil
}

func (e billEdit) check() error {
	switch {
	case e.Reference == "":
		return paramError("reference is needed")
	case e.Action == "hide":
		return nil
	case e.Action == "change" && e.AmountCents >= 0:
		return nil
	case e.AmountCents < 1:
		return paramError("amountCents must be positive")
	case e.Action != "add":
		return paramError("action must be hide, change or add")
	case e.Kind != "charge" && e.Kind != "refund", e.AtMs < 1, len(e.Currency) != 3:
		return paramError("kind, currency and atMs are needed to add a row")
	}
	return nil
}
