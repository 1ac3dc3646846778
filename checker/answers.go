package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// told is an answer of a shop's, with what it answers.
type told struct {
	*sim.Message             // the answer
	by           *sim.Record // when and where it left
	request      *sim.Message
	asked, said  values
	order        string
	from         int // the record from which on it may have been true
}

// values are the fields of a JSON object.
type values map[string]any

func valuesOf(text []byte) values {
	var v values
	_ = json.Unmarshal(text, &v) // what is no JSON says nothing
	return v
}

func (v values) text(field string) string { s, _ := v[field].(string); return s }

func (v values) int(field string) int64 { n, _ := v[field].(float64); return int64(n) }

// list returns the objects of an array.
func (v values) list(field string) []values {
	var all []values
	entries, _ := v[field].([]any)
	for _, one := range entries {
		entry, _ := one.(map[string]any)
		all = append(all, entry)
	}
	return all
}

// wrong is what is wrong with an answer; the zero wrong is nothing.
type wrong struct {
	roles, what string
	order       string // of a list: the one that it is about
	stake       Money  // if that is not an order's price
}

// rules say what is wrong with the answers to each kind of request. The list is never
// changed.
var rules = map[string]func(*Evidence, told) wrong{
	"GET /orders/{no}": (*Evidence).judgeRead, "POST /orders": (*Evidence).judgeCreate, "POST /orders/{no}/pay": (*Evidence).judgeAttempt,
	"POST /orders/{no}/cancel": (*Evidence).judgeCancel, "POST /orders/{no}/refunds": (*Evidence).judgeRefund,
	"GET /orders": (*Evidence).judgeList, "GET /orders/{no}/log": (*Evidence).judgeLog,
	"GET /orders/{no}/refunds": (*Evidence).judgeRefunds, "GET /alerts": (*Evidence).judgeAlerts,
}

// routeOf names what a request asks for, and the order in its path.
func routeOf(m *sim.Message) (route, order string) {
	path, _, _ := strings.Cut(m.Path, "?")
	if parts := strings.Split(path, "/"); len(parts) > 2 && parts[1] == "orders" {
		order, parts[2] = parts[2], "{no}"
		path = strings.Join(parts, "/")
	}
	return m.Method + " " + path, order
}

// observeAnswers holds each answer of a shop's against all that was true between the
// request's arrival and the answer: what it tells must have been so at one time, and what
// it refuses must have been refused then. A 5xx tells nothing.
func observeAnswers(e *Evidence, r *sim.Record) {
	if r.Event != sim.EventAnswer || databaseOf(r.Node) != shopDB || r.Message.Status/100 == 5 {
		return
	}
	request := e.requests[r.Message.Exchange]
	if request == nil {
		return
	}
	route, order := routeOf(request)
	judge := rules[route]
	if judge == nil {
		return
	}
	t := told{Message: r.Message, by: r, request: request, asked: valuesOf(request.Body), said: valuesOf(r.Message.Body), from: e.past.since(r, request)}
	t.order = cmp.Or(order, t.asked.text("orderNo"))
	if w := judge(e, t); w.what != "" {
		e.failTold(t, w)
	}
}

func (e *Evidence) failTold(t told, w wrong) {
	order := cmp.Or(w.order, t.order)
	price := cmp.Or(w.stake, e.price(order))
	e.fail(Failure{Order: order, Stake: price, Seq: t.by.Seq, Roles: t.Kind + " " + w.roles, Message: fmt.Sprintf(
		"order %s of %s: %s was answered %d at %s, %s", order, price, t.Kind, t.Status, e.at(t.by), w.what)})
}

// orderFields are what an answer tells of an order, and where that stands.
var orderFields = [][2]string{{"status", "status"}, {"amountCents", "amount_cents"}, {"currency", "currency"}, {"closeReason", "close_reason"},
	{"createdMs", "created_ms"}, {"deadlineMs", "deadline_ms"}, {"paidMs", "paid_ms"}, {"closedMs", "closed_ms"}, {"sku", "sku"}, {"quantity", "quantity"}}

// clash is a field in which an answer is not what a row says; the zero clash is none.
type clash struct{ field, said, has string }

func (c clash) String() string { return fmt.Sprintf("%s %s, and it was %s", c.field, c.said, c.has) }

// missing is in the place of a field where there is no row.
const missing = "what is missing"

// clashOf finds such a field. What an answer leaves out it does not tell.
func clashOf(said values, row *sim.Change, fields [][2]string) clash {
	if row == nil {
		return clash{field: missing}
	}
	for _, f := range fields {
		switch v := said[f[0]].(type) {
		case string:
			if has := row.Text(f[1]); has != v {
				return clash{f[0], cmp.Or(v, "empty"), cmp.Or(has, "empty")}
			}
		case float64:
			if has := row.Int(f[1]); has != int64(v) {
				return clash{f[0], strconv.FormatInt(int64(v), 10), strconv.FormatInt(has, 10)}
			}
		}
	}
	return clash{}
}

// untrue tells what an answer about an order contradicts, if it was true at no time. That
// there was no such order is told by acked-is-durable, and by the order's history.
func (e *Evidence) untrue(t told, said values, order string) wrong {
	if last(e.past.orders[order]).row == nil {
		return wrong{}
	}
	return t.untrue(e.past.orders[order], func(then version) clash {
		c := clashOf(said, then.row, orderFields)
		if refunded := said.int("refundedCents"); c == (clash{}) && then.refunded != refunded {
			c = clash{"refundedCents", fmt.Sprint(refunded), fmt.Sprint(then.refunded)}
		}
		return c
	})
}

// untrue holds what is told of a thing against all that was true since the request, and
// tells how it clashes with the last of it.
func (t told) untrue(all []version, clashes func(version) clash) wrong {
	var c clash
	for _, then := range during(all, t.from) {
		if c = clashes(then); c == (clash{}) {
			return wrong{}
		}
	}
	if c.field == missing {
		return wrong{roles: "tells of nothing", what: "which tells of something that was there at no time since the request came"}
	}
	return wrong{roles: "tells another " + c.field, what: fmt.Sprintf("which tells %s: that was true at no time since the request came", c)}
}

// refused says whether the answer is a refusal with that code.
func (t told) refused(status int, code string) bool {
	return t.Status == status && refusal(t.Message) == code
}

// never says that something was true at no time since the request.
func (e *Evidence) never(t told, true func(version) bool) bool {
	return !slices.ContainsFunc(during(e.past.orders[t.order], t.from), true)
}

// unknown tells that an order was refused as unknown that was there all the time.
func (e *Evidence) unknown(t told) wrong {
	if t.refused(http.StatusNotFound, "order_unknown") && e.never(t, func(w version) bool { return w.row == nil }) {
		return wrong{roles: "refused as unknown", what: "and the order was there all the time"}
	}
	return wrong{}
}

func (e *Evidence) judgeRead(t told) wrong {
	if t.Status != http.StatusOK {
		return e.unknown(t)
	}
	return cmp.Or(e.untrue(t, t.said, t.order), e.wrongAttempt(t, ""))
}

func (e *Evidence) judgeCreate(t told) wrong {
	switch {
	case t.refused(http.StatusConflict, "order_conflict"):
		if row := last(e.past.orders[t.order]).row; row != nil && t.asked.text("channel") != "" && t.wants(row) {
			return wrong{roles: "refused as another", what: "and the order with its number has the same content"}
		}
	case t.Status/100 == 2:
		return cmp.Or(e.untrue(t, t.said, t.order), e.wrongAttempt(t, t.asked.text("channel")), e.wrongPayable(t), e.wrongMaker(t))
	}
	return wrong{}
}

// wants says whether a request for an order has just the content of its row.
func (t told) wants(row *sim.Change) bool {
	quantity := t.asked.int("quantity")
	if t.asked.text("sku") != "" && quantity == 0 {
		quantity = 1
	}
	return amountOf(row) == parse(t.request).amount() && row.Text("sku") == t.asked.text("sku") &&
		row.Int("quantity") == quantity && row.Text("channel") == t.asked.text("channel")
}

// wrongMaker: 201 is for who has made the order, and for nobody else. Under a key, who
// repeats a request that failed may be either.
func (e *Evidence) wrongMaker(t told) wrong {
	made := e.past.makers[t.order] == taskOf(t.by)
	if e.past.makers[t.order] == "" || scopeOf(t.request).key != "" || t.Status == http.StatusAccepted || made == (t.Status == http.StatusCreated) {
		return wrong{}
	}
	return wrong{roles: "is said to be new", what: "and the order was made by " + e.past.makers[t.order]}
}

// wrongPayable: an order that waits for its money comes with a token to pay it with, and
// with 202 as long as there is none.
func (e *Evidence) wrongPayable(t told) wrong {
	if t.said["outTradeNo"] == nil || t.said.text("status") != "CREATED" {
		return wrong{}
	}
	if waits := t.said.text("prepayToken") == ""; waits != (t.Status == http.StatusAccepted) {
		return wrong{roles: "with the wrong code", what: fmt.Sprintf("and its prepay token is %q", t.said.text("prepayToken"))}
	}
	if got := e.past.tokens[t.said.text("outTradeNo")]; t.Status == http.StatusAccepted && got > 0 && got < e.past.arrivals[taskOf(t.by)] {
		return wrong{roles: "to wait for a token that is there", what: "and its attempt " + t.said.text("outTradeNo") + " had its prepay token when the request came"}
	}
	return wrong{}
}

// wrongAttempt: the attempt of an answer is one of the order, on the channel that was asked
// for, with its own token.
func (e *Evidence) wrongAttempt(t told, channel string) wrong {
	number := t.said.text("outTradeNo")
	if t.said["outTradeNo"] == nil {
		return wrong{}
	}
	row, token := e.attempts[number], t.said.text("prepayToken")
	switch {
	case row == nil || row.Text("order_no") != t.order:
		return wrong{roles: "with no attempt of it", what: fmt.Sprintf("with the attempt %s, which is none of its", number)}
	case row.Text("channel") != t.said.text("channel") || channel != "" && row.Text("channel") != channel:
		return wrong{roles: "with another channel's attempt", what: fmt.Sprintf("with the attempt %s on %s", number, row.Text("channel"))}
	case token != "" && token != row.Text("prepay_token"):
		return wrong{roles: "with another token", what: fmt.Sprintf("with the token %s, and that of %s is %s", token, number, row.Text("prepay_token"))}
	}
	return wrong{}
}

func (e *Evidence) judgeAttempt(t told) wrong {
	switch {
	case t.refused(http.StatusConflict, "order_not_payable"):
		now := e.nowMs(t.by)
		if e.never(t, func(w version) bool { return !w.has("CREATED") || w.row.Int("deadline_ms") <= now }) {
			return wrong{roles: "refused as not payable", what: "and the order waits for its money"}
		}
	case t.Status/100 == 2 && e.never(t, func(w version) bool { return w.row == nil || w.has("CREATED") }):
		return wrong{roles: "taken for an order that can't be paid", what: "and the order has been " + e.statusOf(t.order) + " all the time"}
	case t.Status/100 == 2:
		return cmp.Or(e.untrue(t, t.said, t.order), e.wrongAttempt(t, t.asked.text("channel")), e.wrongPayable(t))
	}
	return e.unknown(t)
}

// judgeCancel: 200 is for an order that is closed. What 202 promises is acked-is-durable's.
func (e *Evidence) judgeCancel(t told) wrong {
	switch said := t.said.text("status"); {
	case t.refused(http.StatusConflict, "order_not_cancellable"):
		if e.never(t, func(w version) bool { return w.has("PAID", "REFUNDING", "REFUNDED") }) {
			return wrong{roles: "refused as not cancellable", what: "and nobody has paid the order"}
		}
	case t.Status == http.StatusOK && said != "CLOSED":
		return wrong{roles: "as done", what: "and the order is " + said}
	case t.Status/100 == 2:
		return e.untrue(t, t.said, t.order)
	}
	return e.unknown(t)
}

// refundFields are what an answer tells of a refund, and where that stands.
var refundFields = [][2]string{{"refundNo", "refund_no"}, {"orderNo", "order_no"}, {"amountCents", "amount_cents"}, {"currency", "currency"},
	{"state", "state"}, {"cause", "cause"}, {"channel", "channel"}, {"channelTxn", "channel_txn"}, {"totalCents", "total_cents"}, {"doneMs", "done_ms"}}

func (e *Evidence) judgeRefund(t told) wrong {
	asked, price := t.asked.int("amountCents"), e.price(t.order).Cents
	switch {
	case t.refused(http.StatusUnprocessableEntity, "refund_exceeds_paid"):
		if e.never(t, func(w version) bool {
			return w.row == nil || w.has("REFUNDED") || w.promised+asked > price || asked == 0 && w.promised >= price
		}) {
			return wrong{roles: "refused as too much", what: fmt.Sprintf("and of %d cents at most %d were given back or promised", price, last(e.past.orders[t.order]).promised)}
		}
	case t.refused(http.StatusConflict, "order_not_refundable"):
		if e.never(t, func(w version) bool { return !w.has("PAID", "REFUNDING") }) {
			return wrong{roles: "refused as not refundable", what: "and the order is paid"}
		}
	case t.refused(http.StatusConflict, "refund_conflict"):
		return e.wrongConflict(t, asked)
	case t.Status/100 == 2:
		return e.wrongIntent(t, asked)
	}
	return e.unknown(t)
}

// wrongConflict: what is refused because of its number differs from the refund that has it.
func (e *Evidence) wrongConflict(t told, asked int64) wrong {
	row := last(e.past.refunds[t.asked.text("refundNo")]).row
	switch {
	case row == nil:
		return wrong{roles: "refused as another", what: "and no refund has its number"}
	case row.Text("order_no") == t.order && (asked == 0 || asked == row.Int("amount_cents")):
		return wrong{roles: "refused as another", what: "and the refund with its number has the same content"}
	}
	return wrong{}
}

// wrongIntent: a refund that is acknowledged is the one that was asked for, and 200 is for
// one that is final.
func (e *Evidence) wrongIntent(t told, asked int64) wrong {
	if t.said["refundNo"] == nil {
		return wrong{}
	}
	number := t.asked.text("refundNo")
	switch final := t.said.int("doneMs") != 0; {
	case number != "" && number != t.said.text("refundNo") || asked != 0 && asked != t.said.int("amountCents") || t.said.text("orderNo") != t.order:
		return wrong{roles: "with another refund", what: fmt.Sprintf("with refund %s of %d cents for order %s", t.said.text("refundNo"), t.said.int("amountCents"), t.said.text("orderNo"))}
	case final != (t.Status == http.StatusOK):
		return wrong{roles: "with the wrong code", what: "and the refund is " + t.said.text("state")}
	}
	return e.untrueRefund(t, t.said)
}

// untrueRefund tells what an answer about a refund contradicts, if it was true at no time.
// That there was none is told by acked-is-durable.
func (e *Evidence) untrueRefund(t told, said values) wrong {
	if last(e.past.refunds[said.text("refundNo")]).row == nil && t.request.Method == http.MethodPost {
		return wrong{}
	}
	return t.untrue(e.past.refunds[said.text("refundNo")], func(then version) clash { return clashOf(said, then.row, refundFields) })
}
