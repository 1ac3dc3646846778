package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// startBuyers starts one task for each operation of a buyer.
func startBuyers(p *sim.Process, w Workload, start time.Time) {
	count := map[string]int{}
	for _, op := range w.Operations {
		if op.Verb == Forges {
			continue
		}
		name := string(op.Verb) + "-" + op.Order + op.Key + op.Number // who has a key or a number of his own does not count
		count[name]++
		b := buyer{p, w, op, count[name]}
		p.Go(string(op.Verb)+"("+op.Order+")", func(ctx context.Context) {
			if p.Clock().Sleep(ctx, op.At-p.Clock().Now().Sub(start)) == nil {
				b.perform(ctx)
			}
		})
	}
}

const (
	patience = 5 * time.Second // of a buyer with one request
	tries    = 6
)

// buyer performs one operation, the number-th of its verb about its order.
type buyer struct {
	p      *sim.Process
	w      Workload
	op     Operation
	number int
}

func (b buyer) perform(ctx context.Context) {
	op := b.op
	shop := "http://" + cmp.Or(op.On, "shop")
	url := shop + "/orders/" + op.Order
	switch op.Verb {
	case Reads:
		b.look(ctx, shop, url)
	case Creates:
		b.insist(ctx, shop+"/orders", op.wants(b.w.Orders[op.Order]))
	case Attempts:
		b.insist(ctx, url+"/pay", map[string]any{"channel": op.Channel})
	case Pays:
		b.insist(ctx, "http://"+op.Channel+"/pay", op.trade())
	case Leaves:
		b.insist(ctx, "http://"+op.Channel+"/close", op.trade())
	case Cancels:
		b.insist(ctx, url+"/cancel", map[string]any{})
	case Refunds:
		wish := map[string]any{"amountCents": op.Cents}
		switch {
		case op.Number != "":
			wish["refundNo"] = op.Number
		case op.Key == "":
			wish["refundNo"] = refundNumber(op.Order, b.number)
		}
		b.insist(ctx, url+"/refunds", wish)
	}
}

// trade names an attempt's trade at its channel.
func (op Operation) trade() map[string]any {
	return map[string]any{"outTradeNo": op.Order + "-" + strconv.Itoa(op.Attempt)}
}

// look reads the order or another view, once.
func (b buyer) look(ctx context.Context, shop, url string) {
	switch b.op.View {
	case LogView, RefundsView:
		url += "/" + string(b.op.View)
	case ListView:
		b.leaf(ctx, shop)
		return
	case AlertsView, MetricsView:
		url = shop + "/" + string(b.op.View)
	case HealthView:
		url = shop + "/healthz"
	}
	b.request(ctx, http.MethodGet, url, nil, "")
}

// pageSize is how many orders somebody who leafs through all of them sees at once: the
// orders of a run would fill no page of the usual size.
const pageSize = 5

// leaf reads all orders, page by page.
func (b buyer) leaf(ctx context.Context, shop string) {
	for after, more := "", true; more; {
		answer := b.request(ctx, http.MethodGet, fmt.Sprintf("%s/orders?limit=%d&after=%s", shop, pageSize, after), nil, "")
		var page struct{ Next string }
		more = json.Unmarshal(answer.body, &page) == nil && page.Next > after
		after = page.Next
	}
}

// wants is what a create asks for.
func (op Operation) wants(order *Order) map[string]any {
	o := op.Other
	body := map[string]any{
		"orderNo": op.Order, "amountCents": cmp.Or(o.Cents, order.Cents), "channel": cmp.Or(o.Channel, order.Channel),
	}
	if sku := cmp.Or(o.SKU, order.SKU); sku != "" {
		body["sku"], body["quantity"] = sku, cmp.Or(o.Quantity, order.Quantity, 1)
	}
	if o.Currency != "" {
		body["currency"] = o.Currency
	}
	return body
}

// refundNumber is the number of the n-th refund that is asked for of an order.
func refundNumber(order string, n int) string { return fmt.Sprintf("%s-r%d", order, n) }

// insist repeats a request, unchanged and under one idempotency key, until it gets
// a definite answer.
func (b buyer) insist(ctx context.Context, url string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a body of the harness's own
	}
	for try := range tries {
		if answer := b.request(ctx, http.MethodPost, url, text, b.key()); answer.definite() {
			return
		}
		if b.p.Clock().Sleep(ctx, time.Second<<try) != nil {
			return
		}
	}
}

// key returns the operation's idempotency key; every other buyer sends none, if the
// operation has not its own, and so does who only leaves.
func (b buyer) key() string {
	if b.op.Verb == Leaves {
		return ""
	}
	name := fmt.Sprintf("%s-%s%s-%d", b.op.Verb, b.op.Order, b.op.Number, b.number)
	if b.op.Key == "" && sim.HashName(name)%2 == 0 {
		return ""
	}
	return cmp.Or(b.op.Key, name)
}

// reply is what a buyer was answered; the zero reply is no answer.
type reply struct {
	status int
	body   []byte
}

// definite says whether there is no sense in asking again.
func (r reply) definite() bool {
	var trade struct{ State string }
	if json.Unmarshal(r.body, &trade) == nil && trade.State == "PAYERROR" {
		return false // the bank said no; perhaps it does not the next time
	}
	switch r.status {
	case http.StatusAccepted, http.StatusConflict:
		return false
	case http.StatusNotFound: // the channel may hear of the trade, or the shop of the order, a moment later
		return false
	}
	return r.status != 0 && r.status < 500
}

func (b buyer) request(ctx context.Context, method, url string, body []byte, key string) reply {
	ctx, cancel := b.p.Clock().WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		panic(fmt.Sprintf("scenarios: %v", err)) // a URL of the harness's own
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	if b.op.Caller != "" {
		r.Header.Set("X-Caller", b.op.Caller)
	}
	resp, err := b.p.HTTPClient().Do(r)
	if err != nil {
		return reply{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply{}
	}
	return reply{resp.StatusCode, text}
}
