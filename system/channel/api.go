package channel

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// traceHeader carries a trace id from the payer's request into the notifications that follow from it.
const traceHeader = "X-Trace-Id"

type prepayAnswer struct {
	OutTradeNo  string `json:"outTradeNo"`
	PrepayToken string `json:"prepayToken"`
}

// tradeRequest names a trade: what /start, /query and /close take.
type tradeRequest struct {
	OutTradeNo string `json:"outTradeNo"`
}

// payRequest is one try to pay.
type payRequest struct {
	OutTradeNo string `json:"outTradeNo"`
	Decline    bool   `json:"decline"` // the payer's bank says no
}

// tradeAnswer is a trade as it is told. A charge is told with its number and time, whatever the state is called.
type tradeAnswer struct {
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	State       string `json:"state"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	ChannelTxn  string `json:"channelTxn,omitempty"`
	ChargedMs   int64  `json:"chargedMs,omitempty"`
}

func answerTrade(t trade, state string) tradeAnswer {
	answer := tradeAnswer{
		OutTradeNo: t.OutTradeNo, OrderNo: t.OrderNo, State: state, AmountCents: t.AmountCents, Currency: t.Currency,
	}
	if state != stateNotPay {
		answer.ChannelTxn, answer.ChargedMs = t.channelTxn, t.chargedMs
	}
	return answer
}

// handlePrepay opens a trade. The same number with the same terms is the same trade, and refreshes its token; with
// other terms it is refused as OUT_TRADE_NO_USED. A trade that is over answers as /close does.
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
	switch p := c.cfg.Personality; {
	case t.terms != wanted:
		return nil, refuse("OUT_TRADE_NO_USED", "trade %s has other terms", t.OutTradeNo)
	case t.state == stateSuccess:
		return nil, refuse(p.Close.Paid, "trade %s is paid", t.OutTradeNo)
	case t.state == stateClosed || p.autoClosed(t):
		return nil, refuse(p.Close.Closed, "trade %s is closed", t.OutTradeNo)
	}
	if t.tokenMs < t.nowMs {
		if _, err := sqldb.Changed(r.Context(), c.env.DB, refreshToken, t.OutTradeNo); err != nil {
			return nil, fmt.Errorf("refresh token of %s: %w", t.OutTradeNo, err)
		}
	}
	return prepayAnswer{OutTradeNo: t.OutTradeNo, PrepayToken: t.prepayToken}, nil
}

func (t terms) check() error {
	switch {
	case t.OutTradeNo == "", t.MerchantID == "", t.OrderNo == "", len(t.Currency) != 3:
		return paramError("outTradeNo, merchantId, orderNo and currency are needed")
	case t.AmountCents < 1:
		return paramError("amountCents must be positive")
	case t.TimeExpireMs < 0:
		return paramError("timeExpireMs can't be negative")
	case !isURL(t.NotifyURL):
		return paramError("notifyUrl must be an absolute URL")
	}
	return nil
}

func isURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Host != ""
}

// handleStart is the payer's scan of the code, or opening of the password box. Until the payer finishes or gives up the
// trade is USERPAYING.
func (c *Channel) handleStart(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	t, err := c.startTrade(r.Context(), request.OutTradeNo)
	if err != nil {
		return nil, err
	}
	return answerTrade(t, c.cfg.Personality.told(t)), nil
}

// handlePay is the payer's confirmation, which starts too if that hasn't been done. A trade that is paid answers its one
// charge again; a closed one is ORDER_CLOSED.
func (c *Channel) handlePay(r *http.Request) (any, error) {
	var request payRequest
	if err := httpjson.ReadStrict(r, &request); err != nil {
		return nil, err
	}
	trace := r.Header.Get(traceHeader)
	if trace == "" {
		trace = c.env.NewID()
	}
	t, err := c.payTrade(r.Context(), payment{outTradeNo: request.OutTradeNo, traceID: trace, decline: request.Decline})
	if err != nil {
		return nil, err
	}
	if t.state == stateSuccess { // the payer is told at once, though a query may lag
		return answerTrade(t, stateSuccess), nil
	}
	return answerTrade(t, c.cfg.Personality.told(t)), nil
}

// handleQuery answers with the trade as the channel tells it, which may lag behind the ledger.
func (c *Channel) handleQuery(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	t, err := c.readTrade(r.Context(), c.env.DB, request.OutTradeNo)
	if err != nil {
		return nil, err
	}
	if !c.cfg.Personality.exists(t) || t.nowMs < t.createdMs+t.oddity.NotFoundMs {
		return nil, tradeNotExist(t.OutTradeNo)
	}
	return answerTrade(t, c.cfg.Personality.told(t)), nil
}

// handleClose ends an unpaid trade. What it refuses and how is the personality's CloseAnswers.
func (c *Channel) handleClose(r *http.Request) (any, error) {
	var request tradeRequest
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	t, err := c.closeTrade(r.Context(), request.OutTradeNo)
	var refusal *httpjson.Error
	if errors.As(err, &refusal) && refusal.Code == codeNotExist && c.cfg.Personality.Close.Unknown == "" {
		return tradeAnswer{OutTradeNo: request.OutTradeNo, State: stateClosed}, nil
	}
	if err != nil {
		return nil, err
	}
	return answerTrade(t, stateClosed), nil
}

// refundAnswer is a refund as it stands. Accepted is not done: PROCESSING becomes SUCCESS, ABNORMAL or CLOSED later.
type refundAnswer struct {
	RefundNo    string `json:"refundNo"`
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	State       string `json:"state"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	AcceptedMs  int64  `json:"acceptedMs"`
	SettledMs   int64  `json:"settledMs,omitempty"`
	FundsMoved  bool   `json:"fundsMoved"` // whether this very request made the refund
}

func answerRefund(r refund, fundsMoved bool) refundAnswer {
	return refundAnswer{
		RefundNo: r.RefundNo, OutTradeNo: r.OutTradeNo, OrderNo: r.orderNo, State: r.state, AmountCents: r.AmountCents,
		Currency: r.currency, AcceptedMs: r.acceptedMs, SettledMs: r.settledMs, FundsMoved: fundsMoved,
	}
}

// handleRefund accepts a refund. The same number with the same terms is the same refund, and answers as it stands.
func (c *Channel) handleRefund(r *http.Request) (any, error) {
	var wanted refundTerms
	if err := httpjson.Read(r, &wanted); err != nil {
		return nil, err
	}
	if err := wanted.check(); err != nil {
		return nil, err
	}
	accepted, isNew, err := c.acceptRefund(r.Context(), wanted)
	if err != nil {
		return nil, err
	}
	return answerRefund(accepted, isNew), nil
}

// handleRefundQuery answers with a refund as it stands.
func (c *Channel) handleRefundQuery(r *http.Request) (any, error) {
	var request struct {
		RefundNo string `json:"refundNo"`
	}
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	return c.tellRefund(r, request.RefundNo)
}

func (c *Channel) tellRefund(r *http.Request, refundNo string) (any, error) {
	known, found, err := readRefund(r.Context(), c.env.DB, refundNo)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, httpjson.Errorf(http.StatusNotFound, "REFUND_NOT_EXIST", "there is no refund %s", refundNo)
	}
	return answerRefund(known, false), nil
}
