package channel

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
)

// notice is the body of a notification about a trade or a refund, which then has a refundNo and the refund's amount and
// state. With a channelTxn it says, perhaps again, that money was taken; otherwise the state says what became of
// the trade.
type notice struct {
	OrderNo     string `json:"orderNo"`
	OutTradeNo  string `json:"outTradeNo,omitempty"`
	RefundNo    string `json:"refundNo,omitempty"`
	Channel     string `json:"channel"`
	MerchantID  string `json:"merchantId"`
	ChannelTxn  string `json:"channelTxn,omitempty"`
	State       string `json:"state"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
}

func (c *Channel) tradeNotice(t trade, state string) notice {
	n := notice{
		OrderNo: t.OrderNo, OutTradeNo: t.OutTradeNo, Channel: c.cfg.Name, MerchantID: t.MerchantID, State: state,
		AmountCents: t.AmountCents, Currency: t.Currency,
	}
	if t.oddity.TradeUnnamed {
		n.OutTradeNo = ""
	}
	if state == stateSuccess || state == stateFinished {
		n.ChannelTxn = t.channelTxn
	}
	return n
}

// stateFinished is told months after a charge, when it can't be refunded any more. It is no news about money.
const stateFinished = "FINISHED"

// tidings are what a merchant is to be told. The id stays the same over all resends.
type tidings struct {
	id, url, traceID string
	body             notice
}

const insertNotification = `-- name: InsertNotification
INSERT INTO notifications (notice_id, out_trade_no, notify_url, body, trace_id, state, next_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, db_now_ms() + ?7)
ON CONFLICT (notice_id) DO NOTHING`

// tell writes a notification into the transaction of the fact that it tells, and returns what sends it after the commit.
func (c *Channel) tell(ctx context.Context, tx *sql.Tx, t trade, news tidings) (func(), error) {
	body, err := json.Marshal(news.body)
	if err != nil {
		return nil, err
	}
	state, silent := statePending, t.oddity.Silent || t.oddity.ChargeUntold && news.id == t.channelTxn
	if silent {
		state = stateGivenUp
	}
	wait := c.cfg.Personality.FirstNotify.Milliseconds()
	if news.id == t.channelTxn {
		wait += t.oddity.NotifyLagMs
	}
	_, err = tx.ExecContext(ctx, insertNotification, news.id, t.OutTradeNo, news.url, string(body), news.traceID, state, wait)
	if err != nil {
		return nil, fmt.Errorf("insert notification %s: %w", news.id, err)
	}
	return func() {
		c.startNotifier(news.id)
		if !silent && t.oddity.MostSends == 0 {
			c.startCopies(news.id, wait, t.oddity.Copies)
		}
	}, nil
}
