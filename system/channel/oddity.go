package channel

import (
	"context"

	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// Oddity is what varies from trade to trade: how unkind the channel is to this one. The zero value is boring. The
// emulator draws nothing at random; whoever wants a storm sets oddities, in Config for all trades or by POST
// /operator/trade for one, before or after it is opened.
type Oddity struct {
	QueryLagMs   int64   `json:"queryLagMs"`   // for this long after its charge, a query still says NOTPAY
	NotFoundMs   int64   `json:"notFoundMs"`   // for this long after its prepay, a query says TRADE_NOT_EXIST
	SettleLagMs  int64   `json:"settleLagMs"`  // from the payer's confirmation to the charge; USERPAYING meanwhile
	NotifyLagMs  int64   `json:"notifyLagMs"`  // added before the first notification of its charge
	Silent       bool    `json:"silent"`       // no notification is ever sent
	ChargeUntold bool    `json:"chargeUntold"` // none of its charge is
	MostSends    int     `json:"mostSends"`    // each notification is sent so many times at most; zero: as the personality says
	Copies       int     `json:"copies"`       // further copies of each first notification, at the same time
	TradeUnnamed bool    `json:"tradeUnnamed"` // they name the order only
	Declines     int     `json:"declines"`     // so many tries to pay fail first
	RefundLagMs  int64   `json:"refundLagMs"`  // from a refund's acceptance to its outcome; zero: as the personality says
	RefundState  string  `json:"refundState"`  // the outcome: SUCCESS (or empty), ABNORMAL or CLOSED
	ChannelTxn   string  `json:"channelTxn"`   // the number of its charge, which may be one that another channel has used
	Faults       []Fault `json:"faults"`       // each is spent by requests to its path, in this order
}

// maxCopies bounds Oddity.Copies.
const maxCopies = 100

func (o Oddity) check() error {
	outcomes := map[string]bool{"": true, stateSuccess: true, stateAbnormal: true, stateClosed: true}
	switch {
	case min(o.QueryLagMs, o.NotFoundMs, o.SettleLagMs, o.NotifyLagMs, o.RefundLagMs) < 0:
		return paramError("lags can't be negative")
	case o.MostSends < 0:
		return paramError("mostSends can't be negative")
	case o.Copies < 0 || o.Copies > maxCopies:
		return paramError("copies must be 0 to %d", maxCopies)
	case !outcomes[o.RefundState]:
		return paramError("refundState must be SUCCESS, ABNORMAL or CLOSED")
	}
	for _, f := range o.Faults {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

func paramError(format string, args ...any) error {
	return httpjson.Errorf(http.StatusBadRequest, "PARAM_ERROR", format, args...)
}

// oddityOf decodes what the oddities table has for a trade; an empty body means that it has nothing.
func (c *Channel) oddityOf(body string) (Oddity, error) {
	if body == "" {
		return c.cfg.Oddity, nil
	}
	var o Oddity
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return o, fmt.Errorf("read oddity: %w", err)
	}
	return o, nil
}

const selectOddity = `-- name: ReadOddity
SELECT coalesce(max(body), '') FROM oddities WHERE out_trade_no = ?1`

func (c *Channel) readOddity(ctx context.Context, db sqldb.Querier, outTradeNo string) (Oddity, error) {
	var body string
	if err := db.QueryRowContext(ctx, selectOddity, outTradeNo).Scan(&body); err != nil {
		return Oddity{}, fmt.Errorf("read oddity of %s: %w", outTradeNo, err)
	}
	return c.oddityOf(body)
}

const upsertOddity = `-- name: SetOddity
INSERT INTO oddities (out_trade_no, body) VALUES (?1, ?2)
ON CONFLICT (out_trade_no) DO UPDATE SET body = ?2`

func setOddity(ctx context.Context, db sqldb.Execer, outTradeNo string, o Oddity) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, upsertOddity, outTradeNo, string(body)); err != nil {
		return fmt.Errorf("set oddity of %s: %w", outTradeNo, err)
	}
	return nil
}
