package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// startBuyers starts one task for each operation.
func startBuyers(p *sim.Process, w Workload, start time.Time) {
	for i, op := range w.Operations {
		p.Go(string(op.Verb)+"("+op.Order+")", func(ctx context.Context) {
			if p.Clock().Sleep(ctx, op.At-p.Clock().Now().Sub(start)) == nil {
				buyer{p, w, i}.perform(ctx, op)
			}
		})
	}
}

const (
	patience = 5 * time.Second // of a buyer with one request
	tries    = 4
)

// buyer performs one operation, the number-th of the workload.
type buyer struct {
	p      *sim.Process
	w      Workload
	number int
}

func (b buyer) perform(ctx context.Context, op Operation) {
	url := "http://shop/orders/" + op.Order
	switch op.Verb {
	case Reads:
		b.request(ctx, http.MethodGet, url, nil, "")
	case Creates:
		order := b.w.Orders[op.Order]
		body := map[string]any{"orderNo": op.Order, "amountCents": order.Cents, "channel": order.Channel}
		if order.SKU != "" {
			body["sku"], body["quantity"] = order.SKU, order.Quantity
		}
		b.insist(ctx, "http://shop/orders", body)
	case Attempts:
		b.insist(ctx, url+"/pay", map[string]any{"channel": op.Channel})
	case Pays:
		b.insist(ctx, "http://"+op.Channel+"/pay", map[string]any{"outTradeNo": op.Order + "-" + strconv.Itoa(op.Attempt)})
	case Cancels:
		b.insist(ctx, url+"/cancel", map[string]any{})
	case Refunds:
		b.insist(ctx, url+"/refunds", map[string]any{"refundNo": fmt.Sprintf("%s-r%d", op.Order, b.number), "amountCents": op.Cents})
	}
}

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

// key returns the operation's idempotency key; every other buyer sends none.
func (b buyer) key() string {
	if b.number%2 == 0 {
		return ""
	}
	return "key-" + strconv.Itoa(b.number)
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
	return r.status != 0 && r.status < 500 && r.status != http.StatusAccepted && r.status != http.StatusConflict
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
