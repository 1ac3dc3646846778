package checker

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/tillstorm/tillstorm/sim"
)

// call is one operation on an order.
type call struct {
	span
	input
	order  string
	code   int // HTTP status of the answer
	status string
	keyed  bool // under an idempotency key: a repeat is answered with what was true the first time
}

func (c *call) about() (order, role string) { return c.order, c.kind + " " + c.told() }

func (c *call) String() string { return describe(c.input, output{c.known, c.code, c.status}) }

// rule tells what a call's answer owes to those of the others.
func (c *call) rule() string {
	switch c.kind {
	case "create":
		return "a create that is repeated is answered with the order as it is by then"
	case "callback":
		return "each delivery of one charge is answered as the first was: with what the order became by it, and never as unknown again"
	case "read":
		return "a read shows no older state than one that was already seen, and none that is not there yet"
	case "record":
		return "a charge is written down before any delivery of it is answered"
	}
	return "a change begins with the state that was last seen"
}

// sayings are what may be said of an order. The list is never changed.
var sayings = []output{
	{true, 200, "CREATED"}, {true, 200, "PAID"}, {true, 200, "CLOSED"}, {true, 200, "REFUNDING"}, {true, 200, "REFUNDED"}, {true, 404, ""},
}

// otherwise gives the call each of the answers that there are. What happened without a
// client has none.
func (c *call) otherwise(yield func(string) bool) {
	code, status := c.code, c.status
	defer func() { c.code, c.status = code, status }()
	for _, a := range sayings {
		c.code, c.status = a.code, a.status
		if c.kind == "commit" || c.kind == "record" || c.kind == "create" && a.code == 404 || !yield(cmp.Or(a.status, "404")) {
			return
		}
	}
}

// told is what a call was answered, without numbers.
func (c *call) told() string {
	if c.status == "" && c.code/100 == 2 {
		return "answered"
	}
	return cmp.Or(c.status, "refused")
}

// orderCalls collects the operations on each order from the trace.
func (e *Evidence) orderCalls() (orders []string, calls map[string][]*call) {
	calls = map[string][]*call{}
	byName := map[string]*call{}
	was := map[string]string{}    // status of each order's row
	recorded := map[string]bool{} // channel transactions
	add := func(order string, c *call) {
		if calls[order] == nil {
			orders = append(orders, order)
		}
		c.order = order
		calls[order] = append(calls[order], c)
	}
	for i := range e.trace.Records {
		r := &e.trace.Records[i]
		switch m := r.Message; {
		case r.Event == sim.EventSend || r.Event == sim.EventCopy:
			if order := orderOf(m); order != "" {
				c := &call{span: span{from: r.Seq, to: never}, input: input{kind: m.Kind}, keyed: m.Header.Get("Idempotency-Key") != ""}
				if m.Kind == "callback" {
					c.txn = parse(m).txn()
				}
				byName[r.Op] = c
				add(order, c)
			}
		case r.Event == sim.EventDeliver && m.Leg == sim.Request:
			if c := byName[r.Op]; c != nil {
				c.delivered = true
			}
		case r.Event == sim.EventDeliver:
			if c := byName[m.Exchange]; c != nil {
				c.known, c.to, c.code, c.status = true, r.Seq, m.Status, parse(m).Status
			}
		case isRow(r, "orders") && !r.Change.Deleted():
			order, status := r.Change.Text("order_no"), r.Change.Text("status")
			if status != was[order] && !causes(byName[r.Task], was[order], status) {
				// What no request has caused, such as a close, has no client. The commit
				// itself is when it happened.
				add(order, &call{span: span{r.Seq, r.Seq, true, true}, input: input{kind: "commit", was: was[order]}, status: status})
			}
			was[order] = status
		case isRow(r, "payment_records") && !r.Change.Deleted() && !recorded[txnOf(r.Change)]:
			txn := txnOf(r.Change)
			recorded[txn] = true
			if c := byName[r.Task]; c == nil || c.txn != txn {
				// A charge that was heard of otherwise: its callback will be answered with what
				// was written down then.
				add(r.Change.Text("order_no"), &call{span: span{r.Seq, r.Seq, true, true}, input: input{kind: "record", txn: txn},
					status: r.Change.Text("order_status")})
			}
		}
	}
	return orders, calls
}

// causes says whether the model has the change as the effect of the call.
func causes(c *call, from, to string) bool {
	return c != nil && (c.kind == "create" && from == "" || c.kind == "callback" && from == "CREATED" && to == "PAID")
}

// orderOf returns the order that a request is about, "" if the model knows none.
func orderOf(m *sim.Message) string {
	switch m.Kind {
	case "create":
		return parse(m).OrderNo
	case "callback":
		if b := parse(m); b.takesMoney() && m.From == b.Channel { // a forged one is no operation
			return b.OrderNo
		}
	case "read":
		path, _, _ := strings.Cut(m.Path, "?")
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// operations turns the calls up to a position of the trace into porcupine's form.
// What nobody has seen answered by then may happen at any later time, or never. Of
// several such that are alike the first is enough: a repeat changes nothing more,
// so wherever one of the others is the first to happen, this one could be.
func operations(calls []*call, until int) []porcupine.Operation {
	var ops []porcupine.Operation
	open := map[input]bool{}
	add := func(in input, out output, from, to int) {
		ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: in, Output: out, Call: int64(from), Return: int64(to)})
	}
	for _, c := range calls {
		known := c.known && c.to <= until
		switch {
		case c.from > until, !c.delivered, c.kind == "read" && (!known || c.code/100 == 5):
		case !known || c.code/100 == 5:
			if !open[c.input] {
				open[c.input] = true
				add(c.input, output{}, c.from, never)
			}
		case c.kind == "create" && c.code/100 == 2:
			// The order is made at one time and read for the answer at another.
			add(c.input, output{known: true, code: c.code}, c.from, c.to)
			if !c.keyed {
				add(input{kind: "read"}, output{true, 200, c.status}, c.from, c.to)
			}
		default:
			add(c.input, output{true, c.code, c.status}, c.from, c.to)
		}
	}
	return ops
}

type input struct {
	kind string // create, read, callback; commit and record, if it has no client
	txn  string // of a callback
	was  string // the row's status before a commit
}

type output struct {
	known  bool
	code   int
	status string
}

// state is what the world knows of one order. answered holds, as sorted text so
// that equal states are equal, what each channel transaction has been answered.
type state struct{ status, answered string }

// orderModel is what an order does, one operation at a time.
func orderModel(budget *int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(s, in, out any) (bool, any) {
			*budget--
			if *budget < 0 {
				return false, s
			}
			return step(s.(state), in.(input), out.(output))
		},
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
	}
}

func step(s state, in input, out output) (bool, any) {
	switch in.kind {
	case "create":
		if s.status == "" && (!out.known || out.code/100 == 2) {
			s.status = "CREATED"
		}
		return true, s
	case "commit":
		// Whether it was allowed is not asked here: see legal-transitions.
		ok := s.status == in.was
		s.status = out.status
		return ok, s
	case "record":
		return s.answer(in.txn) == "", s.with(in.txn, out.status)
	case "read":
		return readStep(s, out), s
	case "callback":
		return callbackStep(s, in, out)
	}
	return true, s
}

// readStep: a refusal says nothing of the order, unless it says that there is none.
func readStep(s state, out output) bool {
	switch {
	case out.code == 404:
		return s.status == ""
	case out.code/100 == 4:
		return true
	}
	return s.status == out.status && s.status != ""
}

// callbackStep: the first delivery of a charge decides; every other is answered
// alike. Any may be refused, but one that is known can't be unknown again.
func callbackStep(s state, in input, out output) (bool, any) {
	if out.known && out.code != 200 {
		return out.code != 404 || s.answer(in.txn) == "", s
	}
	if s.status == "" {
		return !out.known, s // an order nobody made acknowledges nothing
	}
	answer := s.answer(in.txn)
	if answer == "" {
		if s.status == "CREATED" {
			s.status = "PAID"
		}
		answer = s.status
		s = s.with(in.txn, answer)
	}
	// A channel may want an ack that leaves no room for the status.
	return !out.known || out.status == "" || out.status == answer, s
}

func (s state) with(txn, answer string) state {
	all := append(strings.Split(s.answered, ";"), txn+"="+answer)
	slices.Sort(all)
	s.answered = strings.Join(all, ";")
	return s
}

func (s state) answer(txn string) string {
	for _, one := range strings.Split(s.answered, ";") {
		if name, answer, _ := strings.Cut(one, "="); name == txn && answer != "" {
			return answer
		}
	}
	return ""
}

func describe(in input, out output) string {
	name := in.kind
	if in.txn != "" {
		name += " " + in.txn
	}
	switch {
	case !out.known:
		return name + " -> ?"
	case out.status == "":
		return fmt.Sprintf("%s -> %d", name, out.code)
	}
	return fmt.Sprintf("%s -> %s", name, out.status)
}

func otherwiseOrder(c asked) iter.Seq[string] { return c.(*call).otherwise }

func endLinearizableOrders(e *Evidence) {
	orders, calls := e.orderCalls()
	for _, order := range orders {
		h := &history{model: orderModel, did: "the order's row", otherwise: otherwiseOrder, operations: func(until int) []porcupine.Operation { return operations(calls[order], until) }}
		for _, c := range calls[order] {
			h.calls = append(h.calls, c)
		}
		e.judgeHistory(h)
	}
}
