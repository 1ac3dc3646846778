package system

import (
	"context"
	"errors"
	"fmt"
)

// maxPrepayToken bounds what we store of a channel's answer, in bytes.
const maxPrepayToken = 256

// channelClient calls the payment channels.
type channelClient struct{ caller }

// post calls one endpoint of the named channel.
func (c channelClient) post(ctx context.Context, channel, path string, request, answer any) error {
	to, known := c.cfg.channel(channel)
	if !known {
		return fmt.Errorf("channel %s is not configured", channel)
	}
	return c.caller.post(ctx, to.URL, path, request, answer)
}

type prepayRequest struct {
	MerchantID string `json:"merchantId"`
	OutTradeNo string `json:"outTradeNo"`
	OrderNo    string `json:"orderNo"`
	Money
	NotifyURL    string `json:"notifyUrl"`
	TimeExpireMs int64  `json:"timeExpireMs"` // the order's deadline: nobody begins to pay after it
}

type prepayAnswer struct {
	OutTradeNo  string `json:"outTradeNo"`
	PrepayToken string `json:"prepayToken"`
}

// prepay opens the trade at the channel and returns the token that lets the buyer pay. It may be repeated: the same
// number means the same trade. After an error the trade may be open or not. The channel keeps the order's deadline too,
// by its own clock: a trade that we can't close, because it only comes into being when the buyer scans its code, isn't
// payable for days. It shortens races; who began in time may still finish later.
func (c channelClient) prepay(ctx context.Context, order Order) (string, error) {
	var answer prepayAnswer
	err := c.post(ctx, order.Channel, "/prepay", prepayRequest{
		MerchantID:   c.cfg.MerchantID,
		OutTradeNo:   order.OutTradeNo,
		OrderNo:      order.OrderNo,
		Money:        order.Money,
		NotifyURL:    c.cfg.NotifyURL,
		TimeExpireMs: order.DeadlineMs,
	}, &answer)
	if err != nil {
		return "", err
	}
	if answer.OutTradeNo != order.OutTradeNo || answer.PrepayToken == "" || len(answer.PrepayToken) > maxPrepayToken {
		return "", fmt.Errorf("prepay of %s: the answer names trade %q with a token of %d bytes",
			order.OutTradeNo, answer.OutTradeNo, len(answer.PrepayToken))
	}
	return answer.PrepayToken, nil
}

type tradeRequest struct {
	MerchantID string `json:"merchantId"`
	OutTradeNo string `json:"outTradeNo"`
}

// tradeAnswer is what a channel says about a trade.
type tradeAnswer struct {
	OutTradeNo string `json:"outTradeNo"`
	State      string `json:"state"` // SUCCESS, REFUND, NOTPAY, CLOSED, USERPAYING, PAYERROR
	Money
	ChannelTxn string `json:"channelTxn"` // of the charge; empty while there is none
}

// saysNoTrade, saysPaid and saysOver know the words of different channels for one thing.
func saysNoTrade(err error) bool {
	return refusedAs(err, "TRADE_NOT_EXIST", "ORDER_NOT_EXIST", "ORDERNOTEXIST")
}
func saysPaid(err error) bool { return refusedAs(err, "ORDERPAID", "TRADE_HAS_SUCCESS") }
func saysOver(err error) bool {
	return refusedAs(err, "ORDER_CLOSED", "ORDERCLOSED", "TRADE_HAS_CLOSE", "TRADE_STATUS_ERROR")
}

// query asks how a trade stands. A trade that the channel doesn't know is an error that saysNoTrade.
func (c channelClient) query(ctx context.Context, a attempt) (tradeAnswer, error) {
	var answer tradeAnswer
	if err := c.post(ctx, a.channel, "/query", c.trade(a), &answer); err != nil {
		return answer, err
	}
	if answer.OutTradeNo != a.outTradeNo {
		return answer, fmt.Errorf("query of %s: the answer is about trade %q", a.outTradeNo, answer.OutTradeNo)
	}
	return answer, nil
}

// close asks the channel to take no more money for a trade. Nil means that it has agreed.
func (c channelClient) close(ctx context.Context, a attempt) error {
	var answer tradeAnswer
	return c.post(ctx, a.channel, "/close", c.trade(a), &answer)
}

func (c channelClient) trade(a attempt) tradeRequest {
	return tradeRequest{MerchantID: c.cfg.MerchantID, OutTradeNo: a.outTradeNo}
}

type refundRequest struct {
	MerchantID  string `json:"merchantId"`
	OutTradeNo  string `json:"outTradeNo"`
	ChannelTxn  string `json:"channelTxn"`
	RefundNo    string `json:"refundNo"`
	AmountCents int64  `json:"amountCents"`
	TotalCents  int64  `json:"totalCents"`
	Currency    string `json:"currency"`
	NotifyURL   string `json:"notifyUrl"`
}

type refundQuery struct {
	MerchantID string `json:"merchantId"`
	RefundNo   string `json:"refundNo"`
}

type refundAnswer struct {
	RefundNo string     `json:"refundNo"`
	State    refundWord `json:"state"`
	Money               // may be left out
}

// errOtherRefund says that a channel has executed something else under a refund's number.
var errOtherRefund = errors.New("the channel knows the refund number with another amount or currency")

// refund asks the channel to give money back and returns how the refund stands. It may be repeated: the same number
// means the same refund. After an error the channel may be about it or not.
func (c channelClient) refund(ctx context.Context, r Refund) (refundWord, error) {
	var answer refundAnswer
	err := c.post(ctx, r.Channel, "/refund", refundRequest{
		MerchantID:  c.cfg.MerchantID,
		OutTradeNo:  r.OutTradeNo,
		ChannelTxn:  r.ChannelTxn,
		RefundNo:    r.RefundNo,
		AmountCents: r.AmountCents,
		TotalCents:  r.TotalCents,
		Currency:    r.Currency,
		NotifyURL:   c.cfg.RefundNotifyURL,
	}, &answer)
	return answer.state(r, err)
}

// saysNoRefund knows the words of different channels for a refund number that they have never accepted.
func saysNoRefund(err error) bool {
	return refusedAs(err, "REFUND_NOT_EXIST", "REFUNDNOTEXIST", "RESOURCE_NOT_EXISTS")
}

// queryRefund asks how a refund stands. One that the channel doesn't know is an error that saysNoRefund.
func (c channelClient) queryRefund(ctx context.Context, r Refund) (refundWord, error) {
	var answer refundAnswer
	err := c.post(ctx, r.Channel, "/refund/query", refundQuery{MerchantID: c.cfg.MerchantID, RefundNo: r.RefundNo}, &answer)
	return answer.state(r, err)
}

func (a refundAnswer) state(r Refund, err error) (refundWord, error) {
	switch {
	case err != nil:
		return "", err
	case a.RefundNo != r.RefundNo:
		return "", fmt.Errorf("refund %s: the answer is about %q", r.RefundNo, a.RefundNo)
	case a.AmountCents != 0 && a.AmountCents != r.AmountCents, a.Currency != "" && a.Currency != r.Currency:
		return "", fmt.Errorf("refund %s: %w", r.RefundNo, errOtherRefund)
	case !a.State.known():
		return "", fmt.Errorf("refund %s: nobody knows the state %.32q", r.RefundNo, a.State)
	}
	return a.State, nil
}
