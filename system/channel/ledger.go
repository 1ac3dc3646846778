package channel

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// The states of a trade. SUCCESS and CLOSED are final.
const (
	stateNotPay  = "NOTPAY"
	stateSuccess = "SUCCESS"
	stateClosed  = "CLOSED"
)

// terms are what a merchant asks for; they belong to the out-trade number for ever.
type terms struct {
	MerchantID  string `json:"merchantId"`
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	NotifyURL   string `json:"notifyUrl"`
}

// trade is a row of trades, with its charge when there is one.
type trade struct {
	terms
	state, prepayToken string
	channelTxn         string // empty while the trade is unpaid
	chargedMs          int64
}

const insertTrade = `-- name: InsertTrade
INSERT INTO trades (out_trade_no, merchant_id, order_no, amount_cents, currency, notify_url, state, prepay_token, created_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'P-' || ?1, db_now_ms())
ON CONFLICT (out_trade_no) DO NOTHING`

// openTrade opens a trade unless the number is taken, and returns the trade that has the number.
func (c *Channel) openTrade(ctx context.Context, t terms) (trade, error) {
	_, err := sqldb.Changed(ctx, c.env.DB, insertTrade,
		t.OutTradeNo, t.MerchantID, t.OrderNo, t.AmountCents, t.Currency, t.NotifyURL, stateNotPay)
	if err != nil {
		return trade{}, fmt.Errorf("insert trade %s: %w", t.OutTradeNo, err)
	}
	return readTrade(ctx, c.env.DB, t.OutTradeNo)
}

const selectTrade = `-- name: ReadTrade
SELECT t.out_trade_no, t.merchant_id, t.order_no, t.amount_cents, t.currency, t.notify_url, t.state, t.prepay_token,
       coalesce(c.channel_txn, ''), coalesce(c.charged_ms, 0)
FROM trades t LEFT JOIN charges c ON c.out_trade_no = t.out_trade_no
WHERE t.out_trade_no = ?1`

func readTrade(ctx context.Context, db sqldb.Querier, outTradeNo string) (trade, error) {
	var t trade
	err := db.QueryRowContext(ctx, selectTrade, outTradeNo).Scan(&t.OutTradeNo, &t.MerchantID, &t.OrderNo,
		&t.AmountCents, &t.Currency, &t.NotifyURL, &t.state, &t.prepayToken, &t.channelTxn, &t.chargedMs)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t, httpjson.Errorf(http.StatusNotFound, "TRADE_NOT_EXIST", "there is no trade %s", outTradeNo)
	case err != nil:
		return t, fmt.Errorf("read trade %s: %w", outTradeNo, err)
	}
	return t, nil
}

// chargeTrade takes the payer's money once: charge and notification are committed together with the trade's move to
// SUCCESS. It reports whether this call did it; the trade returned is as it stands either way.
func (c *Channel) chargeTrade(ctx context.Context, outTradeNo, traceID string) (trade, bool, error) {
	tx, err := c.env.DB.BeginTx(ctx, nil)
	if err != nil {
		return trade{}, false, fmt.Errorf("begin charge: %w", err)
	}
	defer tx.Rollback()
	charged, err := moveTrade(ctx, tx, outTradeNo, stateSuccess)
	if err != nil {
		return trade{}, false, err
	}
	if charged {
		if err := insertChargeRow(ctx, tx, outTradeNo); err != nil {
			return trade{}, false, err
		}
	}
	t, err := readTrade(ctx, tx, outTradeNo)
	if err != nil || !charged {
		return t, false, err
	}
	if err := c.insertNotification(ctx, tx, t, traceID); err != nil {
		return t, false, err
	}
	if err := tx.Commit(); err != nil {
		return t, false, fmt.Errorf("commit charge of %s: %w", outTradeNo, err)
	}
	return t, true, nil
}

const updateTrade = `-- name: MoveTrade
UPDATE trades SET state = ?2
WHERE out_trade_no = ?1 AND state = ?3`

// moveTrade takes an unpaid trade to a final state, and reports whether it was unpaid.
func moveTrade(ctx context.Context, db sqldb.Execer, outTradeNo, state string) (bool, error) {
	moved, err := sqldb.Changed(ctx, db, updateTrade, outTradeNo, state, stateNotPay)
	if err != nil {
		return false, fmt.Errorf("move trade %s to %s: %w", outTradeNo, state, err)
	}
	return moved, nil
}

// A transaction number follows from the ledger, so that a run that is repeated has the same ones.
const insertCharge = `-- name: InsertCharge
INSERT INTO charges (channel_txn, out_trade_no, order_no, amount_cents, currency, charged_ms)
SELECT 'T-' || out_trade_no || '-' || (SELECT count(*) + 1 FROM charges WHERE out_trade_no = ?1),
       out_trade_no, order_no, amount_cents, currency, db_now_ms()
FROM trades WHERE out_trade_no = ?1`

func insertChargeRow(ctx context.Context, tx *sql.Tx, outTradeNo string) error {
	if _, err := sqldb.Changed(ctx, tx, insertCharge, outTradeNo); err != nil {
		return fmt.Errorf("insert charge of %s: %w", outTradeNo, err)
	}
	return nil
}
