package channel

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// The states of a trade in the ledger, of which SUCCESS and CLOSED are final, and those that exist only in answers.
const (
	stateNotPay  = "NOTPAY"
	stateSuccess = "SUCCESS"
	stateClosed  = "CLOSED"

	stateUserPaying = "USERPAYING"
	statePayError   = "PAYERROR"
	stateRefund     = "REFUND"
)

// terms are what a merchant asks for; they belong to the out-trade number for ever.
type terms struct {
	MerchantID   string `json:"merchantId"`
	OutTradeNo   string `json:"outTradeNo"`
	OrderNo      string `json:"orderNo"`
	AmountCents  int64  `json:"amountCents"`
	Currency     string `json:"currency"`
	NotifyURL    string `json:"notifyUrl"`
	TimeExpireMs int64  `json:"timeExpireMs"` // by the channel's clock; who starts to pay later is refused; 0: no limit
}

// trade is a row of trades, with its charge when there is one, and the time at which it was read.
type trade struct {
	terms
	state, prepayToken   string
	tokenMs, createdMs   int64
	startedMs            int64 // 0: the payer hasn't scanned yet
	settleAtMs           int64 // 0: nothing is under way
	declined             int64
	channelTxn           string // empty while the trade is unpaid
	chargedMs            int64
	refundedCents, nowMs int64
	oddity               Oddity
}

const insertTrade = `-- name: InsertTrade
INSERT INTO trades (out_trade_no, merchant_id, order_no, amount_cents, currency, notify_url, time_expire_ms, state,
                    prepay_token, token_ms, created_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'P-' || ?1, db_now_ms(), db_now_ms() WHERE true
ON CONFLICT (out_trade_no) DO NOTHING`

const refreshToken = `-- name: RefreshToken
UPDATE trades SET token_ms = db_now_ms()
WHERE out_trade_no = ?1 AND state = 'NOTPAY'`

// openTrade opens a trade unless the number is taken, and returns the trade that has the number.
func (c *Channel) openTrade(ctx context.Context, t terms) (trade, error) {
	_, err := sqldb.Changed(ctx, c.env.DB, insertTrade,
		t.OutTradeNo, t.MerchantID, t.OrderNo, t.AmountCents, t.Currency, t.NotifyURL, t.TimeExpireMs, stateNotPay)
	if err != nil {
		return trade{}, fmt.Errorf("insert trade %s: %w", t.OutTradeNo, err)
	}
	return c.readTrade(ctx, c.env.DB, t.OutTradeNo)
}

const selectTrade = `-- name: ReadTrade
SELECT t.out_trade_no, t.merchant_id, t.order_no, t.amount_cents, t.currency, t.notify_url, t.time_expire_ms,
       t.state, t.prepay_token, t.token_ms, t.created_ms, t.started_ms, t.settle_at_ms, t.declined,
       coalesce(c.channel_txn, ''), coalesce(c.charged_ms, 0),
       (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.out_trade_no = t.out_trade_no AND r.state <> 'CLOSED'),
       db_now_ms(), coalesce(o.body, '')
FROM trades t LEFT JOIN charges c ON c.out_trade_no = t.out_trade_no
LEFT JOIN oddities o ON o.out_trade_no = t.out_trade_no
WHERE t.out_trade_no = ?1`

// readTrade reads a trade; an unknown number is a 404 TRADE_NOT_EXIST.
func (c *Channel) readTrade(ctx context.Context, db sqldb.Querier, outTradeNo string) (trade, error) {
	var t trade
	var oddity string
	err := db.QueryRowContext(ctx, selectTrade, outTradeNo).Scan(&t.OutTradeNo, &t.MerchantID, &t.OrderNo,
		&t.AmountCents, &t.Currency, &t.NotifyURL, &t.TimeExpireMs, &t.state, &t.prepayToken, &t.tokenMs, &t.createdMs,
		&t.startedMs, &t.settleAtMs, &t.declined, &t.channelTxn, &t.chargedMs, &t.refundedCents, &t.nowMs, &oddity)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t, tradeNotExist(outTradeNo)
	case err != nil:
		return t, fmt.Errorf("read trade %s: %w", outTradeNo, err)
	}
	t.oddity, err = c.oddityOf(oddity)
	return t, err
}

func tradeNotExist(outTradeNo string) error {
	return refuse(codeNotExist, "there is no trade %s", outTradeNo)
}

// refuse is an answer with one of the codes of personality.go.
func refuse(code, format string, args ...any) error {
	return httpjson.Errorf(statusOf(code), code, format, args...)
}

// paying reports whether the payer is at it: has confirmed, or has opened the password box a short while ago.
func (p Personality) paying(t trade) bool {
	return t.state == stateNotPay && (t.settleAtMs > 0 || p.started(t))
}

// started reports whether the payer has started, and still may finish. A failed try ends the start.
func (p Personality) started(t trade) bool {
	return t.startedMs > 0 && t.nowMs < t.startedMs+p.PayingFor.Milliseconds()
}

// autoClosed reports whether the channel has closed an unpaid trade by itself.
func (p Personality) autoClosed(t trade) bool {
	return p.AutoClose > 0 && t.state == stateNotPay && t.settleAtMs == 0 && t.nowMs >= t.createdMs+p.AutoClose.Milliseconds()
}

// exists reports whether query and close know the trade.
func (p Personality) exists(t trade) bool {
	return !p.TradeOnScan || t.startedMs > 0 || t.settleAtMs > 0 || t.declined > 0 || t.state != stateNotPay
}

// told is what a query says of the trade's state, which may lag behind the ledger.
func (p Personality) told(t trade) string {
	switch {
	case t.state == stateClosed || p.autoClosed(t):
		return stateClosed
	case t.state == stateSuccess && t.nowMs < t.chargedMs+t.oddity.QueryLagMs:
		return stateNotPay
	case t.state == stateSuccess && t.refundedCents == t.AmountCents:
		return p.FullRefund
	case t.state == stateSuccess && t.refundedCents > 0:
		return p.PartRefund
	case t.state == stateSuccess:
		return stateSuccess
	case p.paying(t):
		return stateUserPaying
	case t.declined > 0:
		return statePayError
	}
	return stateNotPay
}

const updateTrade = `-- name: MoveTrade
UPDATE trades SET state = ?2, settle_at_ms = 0
WHERE out_trade_no = ?1 AND state = 'NOTPAY'`

// moveTrade takes an unpaid trade to a final state, and reports whether it was unpaid.
func moveTrade(ctx context.Context, tx *sql.Tx, outTradeNo, state string) (bool, error) {
	moved, err := sqldb.Changed(ctx, tx, updateTrade, outTradeNo, state)
	if err != nil {
		return false, fmt.Errorf("move trade %s to %s: %w", outTradeNo, state, err)
	}
	return moved, nil
}

// inTx runs do in a transaction of its own, and commits it if do has no error.
func (c *Channel) inTx(ctx context.Context, do func(tx *sql.Tx) error) error {
	return sqldb.InTx(ctx, c.env.DB, "in the ledger", do)
}

// change is inTx for what something goes on from, once it is committed. That goes on also when nobody knows whether it
// was: it goes by the ledger, and comes to nothing where nothing was written.
func (c *Channel) change(ctx context.Context, do func(tx *sql.Tx) (after func(), err error)) error {
	var after func()
	err := c.inTx(ctx, func(tx *sql.Tx) error {
		then, err := do(tx)
		if err == nil {
			after = then
		}
		return err
	})
	if after != nil {
		after()
	}
	return err
}
