package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// maxPrepayToken bounds what we store of a channel's answer, in bytes.
const maxPrepayToken = 256

// channelClient calls the payment channel. Its calls end within Config.CallTimeout, and are never made while a
// transaction is open.
type channelClient struct {
	cfg Config
	env Env
}

type prepayRequest struct {
	MerchantID string `json:"merchantId"`
	OutTradeNo string `json:"outTradeNo"`
	OrderNo    string `json:"orderNo"`
	Money
	NotifyURL string `json:"notifyUrl"`
}

type prepayAnswer struct {
	OutTradeNo  string `json:"outTradeNo"`
	PrepayToken string `json:"prepayToken"`
}

// prepay opens the trade at the channel and returns the token that lets the buyer pay. It may be repeated: the same
// number means the same trade. After an error the trade may be open or not.
func (c channelClient) prepay(ctx context.Context, order Order) (string, error) {
	var answer prepayAnswer
	err := c.post(ctx, "/prepay", prepayRequest{
		MerchantID: c.cfg.MerchantID,
		OutTradeNo: order.OutTradeNo,
		OrderNo:    order.OrderNo,
		Money:      order.Money,
		NotifyURL:  c.cfg.NotifyURL,
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

// post sends one request and reads its answer whole within the call's time.
func (c channelClient) post(ctx context.Context, path string, request, answer any) error {
	ctx, cancel := c.env.Clock.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.Channels[0].URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(TraceHeader, traceID(ctx))
	reply, err := c.env.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := httpjson.ReadBody(reply.Body)
	if err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered status %d: %.200s", path, reply.StatusCode, text)
	}
	return httpjson.Decode(text, answer)
}
