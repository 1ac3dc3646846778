package system_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// bank plays every other service of a fixture from memory: the payment channels under /NAME and the stock service
// under /stock. A test may answer a call itself.
type bank struct {
	mu      sync.Mutex
	trades  map[string]*bankTrade  // by channel and out-trade number, "mock A1-1"
	refunds map[string]*bankRefund // by refund number
	calls   []string               // "mock /prepay A1-1", in order
	answer  map[string]http.HandlerFunc
}

type bankTrade struct {
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	State       string `json:"state"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	ChannelTxn  string `json:"channelTxn,omitempty"`
}

type bankRefund struct {
	RefundNo    string `json:"refundNo"`
	State       string `json:"state"`
	amountCents int64
	executed    int
}

func newBank() *bank {
	return &bank{trades: map[string]*bankTrade{}, refunds: map[string]*bankRefund{}, answer: map[string]http.HandlerFunc{}}
}

// on lets answer take the calls of a path, "mock /query"; nil gives them back.
func (b *bank) on(call string, answer http.HandlerFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer[call] = answer
}

// refuse answers a call with an error code.
func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%q,"message":"no"}}`, code)
	}
}

// pay lets the buyer pay a trade, without telling anybody.
func (b *bank) pay(channel, outTradeNo, txn string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trades[channel+" "+outTradeNo]
	t.State, t.ChannelTxn = "SUCCESS", txn
}

// has says whether a trade is open, so that it can be paid.
func (b *bank) has(channel, outTradeNo string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trades[channel+" "+outTradeNo]
	return t != nil && t.State != "CLOSED"
}

// charge pays a trade if it can be paid, as a channel decides it.
func (b *bank) charge(channel, outTradeNo, txn string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.trades[channel+" "+outTradeNo]; t.State == "NOTPAY" {
		t.State, t.ChannelTxn = "SUCCESS", txn
	}
}

// paid says whether a trade has taken money.
func (b *bank) paid(channel, outTradeNo string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trades[channel+" "+outTradeNo].State == "SUCCESS"
}

// endRefunds lets all refunds succeed, without telling anybody.
func (b *bank) endRefunds() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.refunds {
		r.State = "SUCCESS"
	}
}

// count says how many calls began so.
func (b *bank) count(prefix string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, call := range b.calls {
		if strings.HasPrefix(call, prefix) {
			n++
		}
	}
	return n
}

type bankRequest struct {
	OutTradeNo, OrderNo, RefundNo, Currency, SKU string
	AmountCents                                  int64
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request bankRequest
	_ = json.NewDecoder(r.Body).Decode(&request)
	_, rest, _ := strings.Cut(r.URL.Path, "/")
	service, path, _ := strings.Cut(rest, "/")
	if answer := b.note(service+" /"+path, cmp.Or(request.RefundNo, request.OutTradeNo, request.OrderNo)); answer != nil {
		answer(w, r)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	status, answer := b.serve(service, path, request)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// note remembers a call and returns the test's own answer to it, if there is one.
func (b *bank) note(call, key string) http.HandlerFunc {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, call+" "+key)
	return b.answer[call]
}

func (b *bank) serve(service, path string, r bankRequest) (int, any) {
	key := service + " " + r.OutTradeNo
	t := b.trades[key]
	no := func(status int, code string) (int, any) {
		return status, map[string]any{"error": map[string]string{"code": code}}
	}
	switch {
	case service == "stock":
		return 200, struct{}{}
	case path == "prepay":
		if t == nil {
			b.trades[key] = &bankTrade{OutTradeNo: r.OutTradeNo, OrderNo: r.OrderNo, State: "NOTPAY", AmountCents: r.AmountCents, Currency: r.Currency}
		}
		return 200, map[string]string{"outTradeNo": r.OutTradeNo, "prepayToken": "P-" + r.OutTradeNo}
	case path == "refund/query":
		if found := b.refunds[r.RefundNo]; found != nil {
			return 200, found
		}
		return no(404, "REFUND_NOT_EXIST")
	case t == nil && path != "refund":
		return no(404, "TRADE_NOT_EXIST")
	case path == "query":
		return 200, t
	case path == "close" && t.State == "SUCCESS":
		return no(409, "ORDERPAID")
	case path == "close":
		t.State = "CLOSED"
		return 200, t
	case path == "refund":
		found := b.refunds[r.RefundNo]
		if found == nil {
			found = &bankRefund{RefundNo: r.RefundNo, State: "PROCESSING", amountCents: r.AmountCents, executed: 1}
			b.refunds[r.RefundNo] = found
		}
		return 200, found
	}
	return no(404, "NO_SUCH_CALL")
}

// refundEnds lets a refund end at the channel, without telling anybody.
func (b *bank) refundEnds(refundNo, state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refunds[refundNo].State = state
}
