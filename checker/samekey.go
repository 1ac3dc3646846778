package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/sim"
)

// keys are the idempotency keys that callers have used, and what came of them.
type keys struct {
	used    map[scope]*usage
	serving map[string]keyed  // by task
	wrote   map[string]string // tasks: the table of a row of what they made or moved
}

// scope is where a key means one thing.
type scope struct{ caller, operation, key string }

// keyed is a request under its key.
type keyed struct {
	scope
	content string // all that it says
	order   string
}

// usage is what has become of a key.
type usage struct {
	content string         // that was run; "" as long as none was
	where   string         // it was
	answer  string         // the definite one, "" as long as there is none
	made    map[string]int // rows that came into being, by table
	attempt string         // the number of the last one that was opened
	asked   string         // the first content that arrived
	mixed   bool           // another has arrived too
}

func newKeys() keys { return keys{map[scope]*usage{}, map[string]keyed{}, map[string]string{}} }

// observeSameKey follows what is asked under each key: at most one content is run, what
// it makes is made once, and its answers, once they are definite, are one. The
// numbers of orders and refunds are keys as well.
func observeSameKey(e *Evidence, r *sim.Record) {
	switch {
	case r.Event == sim.EventDeliver && r.Message.Leg == sim.Request && databaseOf(r.Node) == shopDB:
		if s := scopeOf(r.Message); s.key != "" {
			e.keys.serve(r, s)
		}
	case r.Event == sim.EventRow && made[r.Change.Table] && r.Change.Database == shopDB:
		e.keys.wrote[taskOf(r)] = r.Change.Table
		if k, ok := e.keys.serving[taskOf(r)]; ok && e.old == nil {
			e.observeMade(r, k)
		}
	case r.Event == sim.EventAnswer:
		if k, ok := e.keys.serving[taskOf(r)]; ok {
			e.observeKeyedAnswer(r, k)
		}
		e.observeNumbered(r)
	}
}

// made are the tables of what a request may make.
var made = map[string]bool{"orders": true, "payment_orders": true, "refunds": true}

// scopeOf is where a request's key means one thing; its key is "" if the request has none.
func scopeOf(m *sim.Message) scope {
	return scope{cmp.Or(m.Header.Get("X-Caller"), "anonymous"), m.Kind, m.Header.Get("Idempotency-Key")}
}

func (k *keys) serve(r *sim.Record, s scope) {
	m := r.Message
	content := m.Path + "\n" + string(m.Body)
	if k.used[s] == nil {
		k.used[s] = &usage{made: map[string]int{}, asked: content}
	}
	u := k.used[s]
	u.mixed = u.mixed || u.asked != content
	k.serving[r.Node+"/"+r.Op] = keyed{s, content, cmp.Or(parse(m).OrderNo, m.Key)}
}

// run notes that a content is run under a key; false if another was.
func (u *usage) run(content, where string) bool {
	if u.content == "" {
		u.content, u.where = content, where
	}
	return u.content == content
}

func (e *Evidence) observeMade(r *sim.Record, k keyed) {
	u, table := e.keys.used[k.scope], r.Change.Table
	if table == "payment_orders" && u.answer == "" && e.isClosed(u.attempt) {
		u.made[table]-- // nobody was told of it, and it can't be paid any more
	}
	u.attempt = r.Change.Text("out_trade_no")
	u.made[table]++
	switch {
	case !u.run(k.content, e.at(r)):
		e.failKey(r, k, "made a row of "+table+" for other content", fmt.Sprintf("made a row of %s, but what was run at %s had other content", table, u.where))
	case u.made[table] > 1:
		e.failKey(r, k, "made "+table+" again", fmt.Sprintf("made %d rows of %s", u.made[table], table))
	}
}

// isClosed says whether there is an attempt of that number that was closed unpaid.
func (e *Evidence) isClosed(attempt string) bool {
	row := e.attempts[attempt]
	return row != nil && row.Text("state") == "CLOSED"
}

func (e *Evidence) observeKeyedAnswer(r *sim.Record, k keyed) {
	m, u := r.Message, e.keys.used[k.scope]
	if refusal(m) == "idempotency_key_reused" && !u.mixed {
		e.failKey(r, k, "refused for other content", "was refused as a key of other content, and there was none")
	}
	if !hasRun(m) {
		return
	}
	answer := fmt.Sprintf("%d %s", m.Status, m.Body)
	switch {
	case !u.run(k.content, e.at(r)):
		e.failKey(r, k, "answered for other content", fmt.Sprintf("was answered %d, but what was run at %s had other content", m.Status, u.where))
	case m.Status == http.StatusAccepted:
	case u.answer != "" && u.answer != answer:
		e.failKey(r, k, "answered otherwise", fmt.Sprintf("was answered %q, before that %q", answer, u.answer))
	default:
		u.answer = answer
	}
}

// hasRun says whether an answer tells that a request was run. One that was refused for
// its form, for its key, or failed, may be asked again.
func hasRun(m *sim.Message) bool {
	switch m.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return false
	}
	code := refusal(m)
	return m.Status < 500 && code != "idempotency_in_flight" && code != "idempotency_key_reused"
}

// refusal is the code with which a request was refused.
func refusal(m *sim.Message) string {
	var answer struct{ Error struct{ Code string } }
	_ = json.Unmarshal(m.Body, &answer) // what is no JSON refuses nothing
	return answer.Error.Code
}

// observeNumbered judges the answer to a request that names its own number.
func (e *Evidence) observeNumbered(r *sim.Record) {
	request, kind := e.requests[r.Message.Exchange], r.Message.Kind
	if request == nil || kind != "create" && kind != "ask-refund" {
		return
	}
	switch code := refusal(r.Message); {
	case r.Message.Status/100 == 2 && kind == "create":
		e.observeCreated(r, request)
	case r.Message.Status/100 == 2:
		e.observeRefundTaken(r, request)
	case code == "order_conflict" || code == "refund_conflict":
		_, order := routeOf(request)
		if table := e.keys.wrote[taskOf(r)]; table != "" {
			k := keyed{scope: scope{"", kind, "its number"}, order: cmp.Or(order, parse(request).OrderNo)}
			e.failKey(r, k, "refused with an effect", fmt.Sprintf("was refused as %s, but changed a row of %s", code, table))
		}
	}
}

// observeRefundTaken finds a request for a refund that is taken though the refund with its
// number is another.
func (e *Evidence) observeRefundTaken(r *sim.Record, request *sim.Message) {
	asked := parse(request)
	_, order := routeOf(request)
	row := e.accounts.intents[asked.RefundNo]
	if asked.RefundNo == "" || row == nil { // the shop has chosen the number, or that is acked-is-durable's
		return
	}
	if row.Text("order_no") != order || asked.AmountCents != 0 && asked.AmountCents != row.Int("amount_cents") {
		k := keyed{scope: scope{"", "ask-refund", "its number"}, order: order}
		e.failKey(r, k, "taken for another refund", fmt.Sprintf("was answered %d, but asked for %s, and refund %s is of %s for order %s",
			r.Message.Status, asked.amount(), asked.RefundNo, amountOf(row), row.Text("order_no")))
	}
}

// observeCreated finds a request for an order that is taken though the order with its
// number is another.
func (e *Evidence) observeCreated(r *sim.Record, request *sim.Message) {
	var asked createBody
	_ = json.Unmarshal(request.Body, &asked) // what is no JSON asks for nothing
	row := e.orders[asked.OrderNo]
	if row == nil { // that is acked-is-durable's
		return
	}
	if what := asked.unlike(row); what != "" {
		k := keyed{scope: scope{"", "create", "its number"}, order: asked.OrderNo}
		e.failKey(r, k, "taken for another order", fmt.Sprintf("was answered %d, but asked for %s", r.Message.Status, what))
	}
}

// createBody is what a create asks for.
type createBody struct {
	body
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// unlike tells what a create asks for that an order is not; what it leaves out is the
// shop's to choose.
func (c createBody) unlike(order *sim.Change) string {
	switch {
	case c.amount() != amountOf(order):
		return c.amount().String()
	case c.SKU != order.Text("sku"):
		return "SKU " + cmp.Or(c.SKU, "none")
	case c.Quantity != 0 && c.Quantity != order.Int("quantity"):
		return fmt.Sprintf("%d units", c.Quantity)
	case c.Channel != "" && c.Channel != order.Text("channel"):
		return "channel " + c.Channel
	}
	return ""
}

func (e *Evidence) failKey(r *sim.Record, k keyed, roles, what string) {
	price := e.price(k.order)
	e.fail(Failure{Order: k.order, Stake: price, Seq: r.Seq, Roles: k.operation + " " + roles, Message: fmt.Sprintf(
		"order %s of %s: at %s, %s under %s %s", k.order, price, e.at(r), k.operation, k.key, what)})
}
