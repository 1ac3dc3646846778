package system

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/signature"
)

// payNotice is what a channel posts to /callback/pay: most often a charge, sometimes other news about a trade.
type payNotice struct {
	State string `json:"state"` // may be left out: then it is a charge
	charge
}

// takesMoney reports whether the notice says that the trade was charged. Channels also tell that a trade was closed,
// that an attempt of the buyer's failed, or, by its closing, that it was refunded in full.
func (n payNotice) takesMoney() bool {
	return n.State == "" || n.State == "SUCCESS" || n.State == "FINISHED"
}

// callbackAnswer acknowledges a notice. For a charge, Status is the order's right after the charge was recorded, in a
// repeat too, so that all deliveries of one charge get the same bytes.
type callbackAnswer struct {
	OrderNo string `json:"orderNo"`
	Status  Status `json:"status"`
	Result  string `json:"result"`
}

// handlePayCallback answers POST /callback/pay. Everything that could be wrong with the message is checked before
// anything is written; then the charge is recorded, and only what is committed is acknowledged with a 200. Any other
// answer makes the channel send it again.
func (s *Shop) handlePayCallback(w http.ResponseWriter, r *http.Request) error {
	notice, err := s.readPayNotice(r)
	if err != nil {
		return err
	}
	status, err := s.settleNotice(r.Context(), notice)
	if err != nil {
		return err
	}
	s.acknowledge(w, notice.Channel, callbackAnswer{OrderNo: notice.OrderNo, Status: status, Result: "success"})
	return nil
}

// settleNotice takes a notice in and returns the order's status. News that isn't about a charge changes nothing: what
// matters of it the channel tells when it is asked.
func (s *Shop) settleNotice(ctx context.Context, notice payNotice) (Status, error) {
	if notice.takesMoney() {
		record, err := s.settleCharge(ctx, notice.charge, "callback")
		return record.orderStatus, err
	}
	if _, err := s.matchAttempt(ctx, notice.charge); err != nil {
		return "", err
	}
	order, err := s.readOrder(ctx, notice.OrderNo, "")
	s.log(ctx).Info("notice ignored", "order", notice.OrderNo, "outTradeNo", notice.OutTradeNo, "state", notice.State)
	return order.Status, err
}

// acknowledge answers a callback in the way that its channel reads.
func (s *Shop) acknowledge(w http.ResponseWriter, channel string, answer any) {
	s.metrics.callbackAcked(channel)
	if to, _ := s.cfg.channel(channel); to.AckBody != "" {
		_, _ = io.WriteString(w, to.AckBody) // a channel that has gone away sends again
		return
	}
	httpjson.Write(w, http.StatusOK, answer)
}

// readSigned reads a body that is authentic and fresh. The signature comes first: nobody unsigned learns how messages
// are parsed. 401 signature_*, 400 and 413 for the body.
func (s *Shop) readSigned(r *http.Request, value any) error {
	body, err := httpjson.ReadBody(r.Body)
	if err != nil {
		return err
	}
	err = signature.Verify(s.cfg.SigningKey, body, r.Header.Get(signature.Header), s.env.Clock.Now(), s.cfg.SignatureMaxAge)
	var refused *signature.Error
	switch {
	case errors.As(err, &refused):
		return httpjson.Errorf(http.StatusUnauthorized, refused.Code, "%s", refused.Message)
	case err != nil:
		return err
	}
	return httpjson.Decode(body, value)
}

// checkMerchant refuses what is for another merchant, 403 merchant_unknown. A channel may leave the merchant out.
func (s *Shop) checkMerchant(merchantID string) error {
	if merchantID == "" || merchantID == s.cfg.MerchantID {
		return nil
	}
	return httpjson.Errorf(http.StatusForbidden, "merchant_unknown", "merchantId is %.32q, and this shop is another merchant", merchantID)
}

// readPayNotice reads an authentic and well-formed notice for our merchant.
func (s *Shop) readPayNotice(r *http.Request) (payNotice, error) {
	var notice payNotice
	if err := s.readSigned(r, &notice); err != nil {
		return notice, err
	}
	if err := s.checkMerchant(notice.MerchantID); err != nil {
		return notice, err
	}
	return notice, notice.check()
}

// CheckPayNotice reports what is wrong with the body of a pay callback, whoever signs it.
func CheckPayNotice(body []byte) error {
	var notice payNotice
	if err := httpjson.Decode(body, &notice); err != nil {
		return err
	}
	return notice.check()
}

func (n *payNotice) check() error {
	err := errors.Join(
		checkName("orderNo", "order_no_invalid", n.OrderNo, maxOrderNo),
		checkName("channel", "channel_invalid", n.Channel, maxChannelName),
	)
	if err == nil && n.takesMoney() {
		err = checkName("channelTxn", "channel_txn_invalid", n.ChannelTxn, maxChannelTxn)
	}
	if err == nil && n.OutTradeNo != "" {
		err = checkName("outTradeNo", "out_trade_no_invalid", n.OutTradeNo, maxOutTradeNo)
	}
	if err != nil {
		return err
	}
	n.Money, err = n.checked()
	return err
}
