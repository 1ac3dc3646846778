package scenarios

import (
	"database/sql/driver"
	"encoding/json"
	"net/http"
	"strings"
	"unicode"

	"github.com/tillstorm/tillstorm/sim"
)

// naming tells the kernel what the system's requests and statements are about: the
// order, wherever its number stands.
func naming(w Workload) sim.Naming {
	known := func(order string) bool { return w.Orders[order] != nil }
	return sim.Naming{
		Request: func(r *http.Request, body []byte) (kind, key string) {
			return kindOf(r), requestKey(r, body, known)
		},
		Statement: func(_ string, args []driver.NamedValue) string {
			for _, a := range args {
				text, _ := a.Value.(string)
				if order := orderIn(text, known); order != "" {
					return order
				}
			}
			return ""
		},
	}
}

// kinds names requests by method and path; {no} stands for an order's number.
var kinds = map[string]string{
	"POST /orders": "create", "GET /orders": "list", "GET /orders/{no}": "read",
	"GET /orders/{no}/log": "read-log", "GET /orders/{no}/refunds": "read-refunds", "POST /orders/{no}/pay": "attempt",
	"POST /orders/{no}/cancel": "cancel", "POST /orders/{no}/refunds": "ask-refund",
	"POST /callback/pay": "callback", "POST /callback/refund": "refund-callback", "POST /refund/query": "query-refund",
}

func kindOf(r *http.Request) string {
	path := r.URL.Path
	if parts := strings.Split(path, "/"); len(parts) > 2 && parts[1] == "orders" {
		parts[2] = "{no}"
		path = strings.Join(parts, "/")
	}
	if kind, ok := kinds[r.Method+" "+path]; ok {
		return kind
	}
	return strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-") // prepay, query, close, refund, freeze, ...
}

// requestKey looks for the order in the path and in the numbers that the body names.
func requestKey(r *http.Request, body []byte, known func(string) bool) string {
	var about struct{ OrderNo, OutTradeNo, RefundNo string }
	_ = json.Unmarshal(body, &about) // what is no JSON names nothing
	for _, text := range []string{about.OrderNo, about.OutTradeNo, about.RefundNo, r.URL.Path} {
		if order := orderIn(text, known); order != "" {
			return order
		}
	}
	return ""
}

// numberPrefixes begin the numbers that the system and its channels make of others:
// transactions, prepay tokens, refunds.
var numberPrefixes = []string{"T-", "P-", "R-", "F-"}

// orderIn finds an order's number in a number made of it, such as A-1, T-A-1-1 or
// R-wechat-T-A-1-1.
func orderIn(text string, known func(string) bool) string {
	if len(text) > 80 {
		return ""
	}
	for _, prefix := range numberPrefixes {
		text = strings.TrimPrefix(text, prefix)
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if known(word) {
			return word
		}
	}
	return ""
}

// orderIn finds one of the workload's orders in a number.
func (w *Workload) orderIn(text string) string {
	return orderIn(text, func(order string) bool { return w.Orders[order] != nil })
}

// orderNamed returns the order that a name is about: the last key in it that is of one, or
// what follows the channel of a trade.
func (w *Workload) orderNamed(name string) string {
	if !strings.Contains(name, "(") {
		_, trade, _ := strings.Cut(name, "/")
		return w.orderIn(trade)
	}
	for rest := name; ; {
		i := strings.LastIndexByte(rest, '(')
		if i < 0 {
			return ""
		}
		key, _, _ := strings.Cut(rest[i+1:], ")")
		if order := w.orderIn(key); order != "" {
			return order
		}
		rest = rest[:i]
	}
}
