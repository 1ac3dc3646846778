package channel

import (
	"net/http"
	"net/url"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// traceHeader carries a trace id from the payer's request into the notifications that follow from it.
const traceHeader = "X-Trace-Id"

type prepayAnswer struct {
	OutTradeNo  string `json:"outTradeNo"`
	PrepayToken string `json:"prepayToken"`
}

// tradeRequest names a trade: what /pay, /query and /close take.
type tradeRequest struct {
	OutTradeNo string `json:"outTradeNo"`
}

// tradeAnswer is a trade as /pay, /query and /close tell it.
type tradeAnswer struct {
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	State       string `json:"state"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	ChannelTxn  string `json:"channelTxn,omitempty"`
	ChargedMs   int64  `json:"chargedMs,omitempty"`
}

func answerTrade(t trade) tradeAnswer {
	return tradeAnswer{
		OutTradeNo: t.OutTradeNo, OrderNo: t.OrderNo, State: t.state, AmountCents: t.AmountCents, Currency: t.Currency,
		ChannelTxn: t.channelTxn, ChargedMs: t.chargedMs,
	}
}

// handlePrepay opens a trade. The same number with the same terms is the same trade and the same token; with other
// terms it is refused as OUT_TRADE_NO_USED. A trade that is over answers as /close does.
func (c *Channel) handlePrepay(r *http.Request) (any, error) {
	var wanted terms
	if err := httpjson.Read(r, &wanted); err != nil {
		return nil, err
	}
	if err := wanted.check(); err != nil {
		return nil, err
	}
	t, err := c.openTrade(r.Context(), wanted)
	if err != nil {
		return nil, err
	}
	if t.terms != wanted {
		return nil, httpjson.Errorf(http.StatusConflict, "OUT_TRADE_NO_USED", "trade %s has other terms", t.OutTradeNo)
	}
	if err := refuseFinal(t); err != nil {
		return nil, err
	}
	return prepayAnswer{OutTradeNo: t.OutTradeNo, PrepayToken: t.prepayToken}, nil
}

func (t terms) check() error {
	notify, err := url.Parse(t.NotifyURL)
	switch {
	case t.OutTradeNo == "", t.MerchantID == "", t.OrderNo == "", len(t.Currency) != 3:
		return httpjson.Errorf(http.StatusBadRequest, "PARAM_ERROR", "outTradeNo, merchantId, orderNo and currency are needed")
	case t.AmountCents < 1:
		return httpjson.Errorf(http.StatusBadRequest, "PARAM_ERROR", "amountCents must be positive")
	case err != nil, notify.Host == "":
		return httpjson.Errorf(http.StatusBadRequest, "PARAM_ERROR", "notifyUrl must be an absolute URL")
	}
	return nil
}

// handlePay is the payer's action. A trade that is paid answers its one charge again; a closed one is ORDER_CLOSED.
func (c *Channel) handlePay(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	trace := r.Header.Get(traceHeader)
	if trace == "" {
		trace = c.env.NewID()
	}
	t, charged, err := c.chargeTrade(r.Context(), request.OutTradeNo, trace)
	if err != nil {
		return nil, err
	}
	if charged {
		c.startNotifier(t.channelTxn)
	}
	if t.state == stateClosed {
		return nil, refuseFinal(t)
	}
	return answerTrade(t), nil
}

// handleQuery answers with the trade as the ledger has it.
func (c *Channel) handleQuery(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	t, err := readTrade(r.Context(), c.env.DB, request.OutTradeNo)
	if err != nil {
		return nil, err
	}
	return answerTrade(t), nil
}

// handleClose ends an unpaid trade. A paid one is ORDERPAID and a closed one ORDER_CLOSED, both 409.
func (c *Channel) handleClose(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	closed, err := moveTrade(r.Context(), c.env.DB, request.OutTradeNo, stateClosed)
	if err != nil {
		return nil, err
	}
	t, err := readTrade(r.Context(), c.env.DB, request.OutTradeNo)
	if err != nil {
		return nil, err
	}
	if !closed {
		return nil, refuseFinal(t)
	}
	return answerTrade(t), nil
}

func refuseFinal(t trade) error {
	switch t.state {
	case stateSuccess:
		return httpjson.Errorf(http.StatusConflict, "ORDERPAID", "trade %s is paid", t.OutTradeNo)
	case stateClosed:
		return httpjson.Errorf(http.StatusConflict, "ORDER_CLOSED", "trade %s is closed", t.OutTradeNo)
	}
	return nil
}
