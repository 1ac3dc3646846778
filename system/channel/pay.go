package channel

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// payment is what the payer does: confirm, or be declined by the bank.
type payment struct {
	outTradeNo, traceID string
	decline             bool
}

// payTrade is one try of the payer to pay. The trade that it returns is as it stands then; a refused try is told by
// the error, and changes nothing. What follows later from it, follows from the ledger.
func (c *Channel) payTrade(ctx context.Context, p payment) (t trade, err error) {
	err = c.change(ctx, func(tx *sql.Tx) (after func(), err error) {
		if t, err = c.readTrade(ctx, tx, p.outTradeNo); err != nil {
			return nil, err
		}
		if t.state == stateSuccess || t.settleAtMs > 0 { // one trade takes money once
			return nil, nil
		}
		if err := c.refusePayer(t); err != nil {
			return nil, err
		}
		switch {
		case p.decline || t.declined < int64(t.oddity.Declines):
			after, err = c.declineTrade(ctx, tx, t, p.traceID)
		case t.oddity.SettleLagMs > 0:
			after, err = c.delayCharge(ctx, tx, t)
		default:
			after, err = c.chargeTrade(ctx, tx, t, p.traceID)
		}
		if err != nil {
			return nil, err
		}
		t, err = c.readTrade(ctx, tx, p.outTradeNo)
		return after, err
	})
	return t, err
}

// refusePayer refuses who comes too late: the trade is closed, its limit had passed when the payer started, or the
// token is too old.
func (c *Channel) refusePayer(t trade) error {
	p := c.cfg.Personality
	switch {
	case t.state == stateClosed || p.autoClosed(t):
		return refuse(codeOrderClosed, "trade %s is closed", t.OutTradeNo)
	case t.TimeExpireMs > 0 && t.nowMs >= t.TimeExpireMs && !p.started(t):
		return refuse("TRADE_EXPIRED", "the time to pay %s is over", t.OutTradeNo)
	case p.TokenLife > 0 && t.nowMs >= t.tokenMs+p.TokenLife.Milliseconds():
		return refuse("TOKEN_EXPIRED", "the prepay token of %s is too old", t.OutTradeNo)
	}
	return nil
}

const markStarted = `-- name: StartTrade
UPDATE trades SET started_ms = db_now_ms()
WHERE out_trade_no = ?1 AND state = 'NOTPAY'`

// startTrade is the payer's scan of the code or opening of the password box.
func (c *Channel) startTrade(ctx context.Context, outTradeNo string) (t trade, err error) {
	err = c.inTx(ctx, func(tx *sql.Tx) error {
		if t, err = c.readTrade(ctx, tx, outTradeNo); err != nil {
			return err
		}
		if t.state == stateSuccess {
			return nil
		}
		if err := c.refusePayer(t); err != nil {
			return err
		}
		if _, err := sqldb.Changed(ctx, tx, markStarted, outTradeNo); err != nil {
			return fmt.Errorf("start trade %s: %w", outTradeNo, err)
		}
		t, err = c.readTrade(ctx, tx, outTradeNo)
		return err
	})
	return t, err
}

const markDeclined = `-- name: DeclineTrade
UPDATE trades SET declined = declined + 1, started_ms = 0
WHERE out_trade_no = ?1 AND state = 'NOTPAY'`

func (c *Channel) declineTrade(ctx context.Context, tx *sql.Tx, t trade, traceID string) (func(), error) {
	if _, err := sqldb.Changed(ctx, tx, markDeclined, t.OutTradeNo); err != nil {
		return nil, fmt.Errorf("decline %s: %w", t.OutTradeNo, err)
	}
	if !c.cfg.Personality.NotifiesFailed {
		return nil, nil
	}
	id := "failed-" + t.OutTradeNo + "-" + strconv.FormatInt(t.declined+1, 10)
	return c.tell(ctx, tx, t, tidings{id: id, url: t.NotifyURL, traceID: traceID, body: c.tradeNotice(t, "FAILED")})
}

// chargeTrade takes the payer's money once: charge and notification are committed together with the trade's move to
// SUCCESS.
func (c *Channel) chargeTrade(ctx context.Context, tx *sql.Tx, t trade, traceID string) (func(), error) {
	moved, err := moveTrade(ctx, tx, t.OutTradeNo, stateSuccess)
	if err != nil || !moved {
		return nil, err
	}
	_, err = sqldb.Changed(ctx, tx, insertCharge, t.OutTradeNo, t.oddity.ChannelTxn, c.cfg.Personality.fee(t.AmountCents))
	if err != nil {
		return nil, fmt.Errorf("insert charge of %s: %w", t.OutTradeNo, err)
	}
	if t, err = c.readTrade(ctx, tx, t.OutTradeNo); err != nil {
		return nil, err
	}
	body := c.tradeNotice(t, stateSuccess)
	return c.tell(ctx, tx, t, tidings{id: t.channelTxn, url: t.NotifyURL, traceID: traceID, body: body})
}

// A transaction number follows from the ledger, so that a run that is repeated has the same ones.
const insertCharge = `-- name: InsertCharge
INSERT INTO charges (channel_txn, out_trade_no, order_no, amount_cents, currency, fee_cents, charged_ms)
SELECT CASE ?2 WHEN '' THEN 'T-' || out_trade_no || '-' || (SELECT count(*) + 1 FROM charges WHERE out_trade_no = ?1) ELSE ?2 END,
       out_trade_no, order_no, amount_cents, currency, ?3, db_now_ms()
FROM trades WHERE out_trade_no = ?1`

const markSettling = `-- name: DelayCharge
UPDATE trades SET settle_at_ms = db_now_ms() + ?2
WHERE out_trade_no = ?1 AND state = 'NOTPAY' AND settle_at_ms = 0`

// delayCharge keeps the payer's confirmation; the money is taken later.
func (c *Channel) delayCharge(ctx context.Context, tx *sql.Tx, t trade) (func(), error) {
	if _, err := sqldb.Changed(ctx, tx, markSettling, t.OutTradeNo, t.oddity.SettleLagMs); err != nil {
		return nil, fmt.Errorf("delay charge of %s: %w", t.OutTradeNo, err)
	}
	return func() { c.startSettling(t.OutTradeNo) }, nil
}

// startSettling starts the task that takes the money when its time has come.
func (c *Channel) startSettling(outTradeNo string) {
	c.env.Loops.Go("settle-charge("+outTradeNo+")", func(ctx context.Context) {
		for c.settleOnce(ctx, outTradeNo) {
		}
	})
}

// settleOnce waits for a delayed charge's time and charges. It reports whether to try again.
func (c *Channel) settleOnce(ctx context.Context, outTradeNo string) bool {
	t, err := c.readTrade(ctx, c.env.DB, outTradeNo)
	if err != nil {
		return c.pause(ctx, "read settling trade "+outTradeNo, err)
	}
	wait := time.Duration(t.settleAtMs-t.nowMs) * time.Millisecond
	if t.settleAtMs == 0 || c.env.Clock.Sleep(ctx, max(0, wait)) != nil {
		return false
	}
	err = c.change(ctx, func(tx *sql.Tx) (func(), error) { return c.chargeTrade(ctx, tx, t, c.env.NewID()) })
	if err != nil {
		return c.pause(ctx, "settle trade "+outTradeNo, err)
	}
	return false
}
