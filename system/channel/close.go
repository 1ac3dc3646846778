package channel

import (
	"context"
	"database/sql"
)

// closeTrade ends an unpaid trade, or refuses as the personality's CloseAnswers say. It goes by the ledger, even where
// a query lags behind it.
func (c *Channel) closeTrade(ctx context.Context, outTradeNo string) (t trade, err error) {
	err = c.change(ctx, func(tx *sql.Tx) (after func(), err error) {
		if t, err = c.readTrade(ctx, tx, outTradeNo); err != nil {
			return nil, err
		}
		if err := c.refuseClose(t); err != nil || !c.cfg.Personality.exists(t) {
			return nil, err
		}
		after, err = c.endTrade(ctx, tx, t)
		t.state = stateClosed
		return after, err
	})
	return t, err
}

// refuseClose says why a trade can't be closed, or nil.
func (c *Channel) refuseClose(t trade) error {
	p := c.cfg.Personality
	code := ""
	switch {
	case !p.exists(t):
		code = p.Close.Unknown
	case t.state == stateSuccess:
		code = p.Close.Paid
	case t.state == stateClosed || p.autoClosed(t):
		code = p.Close.Closed
	case p.paying(t):
		code = p.Close.Paying
	}
	if code == "" {
		return nil
	}
	return refuse(code, "trade %s can't be closed", t.OutTradeNo)
}

func (c *Channel) endTrade(ctx context.Context, tx *sql.Tx, t trade) (func(), error) {
	if _, err := moveTrade(ctx, tx, t.OutTradeNo, stateClosed); err != nil {
		return nil, err
	}
	if !c.cfg.Personality.NotifiesClose {
		return nil, nil
	}
	body := c.tradeNotice(t, stateClosed)
	return c.tell(ctx, tx, t, tidings{id: "closed-" + t.OutTradeNo, url: t.NotifyURL, traceID: c.env.NewID(), body: body})
}
