package scenarios

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// drawCareless draws what a client does that takes no care of its keys and numbers: it
// asks twice at once, or under one key for one thing and another. The load balancer
// brings what comes at once to both instances.
func (w *Workload) drawCareless(name string, order *Order, second string, created, paid time.Duration, r *rand.Rand) {
	key := name + "-key"
	soon := created + within(r, 0, 2*time.Second)
	create := Operation{At: soon, Verb: Creates, Order: name, Key: key}
	switch r.IntN(9) {
	case 0:
		w.atOnce(create, create, r)
	case 1: // the key with other content
		other := create
		other.Other = drawOther(order, second, r)
		w.atOnce(create, other, r)
	case 2, 3: // the number with other content
		w.add(Operation{At: soon, Verb: Creates, Order: name, Other: drawOther(order, second, r)})
	case 4: // the key of another operation
		w.add(create)
		w.add(Operation{At: paid + within(r, 0, time.Minute), Verb: Cancels, Order: name, Key: key})
		w.add(Operation{At: paid + within(r, 0, 2*time.Minute), Verb: Refunds, Order: name, Cents: 1 + order.Cents/4, Key: key})
	case 5, 6: // one refund, and perhaps another amount under its key
		refund := Operation{At: paid + within(r, 0, 2*time.Minute), Verb: Refunds, Order: name, Cents: 1 + order.Cents/4, Key: key}
		again := refund
		again.Cents += int64(r.IntN(2))
		w.atOnce(refund, again, r)
	case 7: // the key of somebody else, who calls himself otherwise
		create.Key, create.Caller = "same-key", "caller-"+name
		w.add(create)
	}
}

// drawOneKeyForTwo draws, in every other run, what a client asks for two orders under one
// key with one body: all that tells them apart is the path.
func (w *Workload) drawOneKeyForTwo(r *rand.Rand) {
	names := w.names()
	if r.IntN(2) == 0 || len(names) < 2 {
		return
	}
	first := r.IntN(len(names))
	second := other(names, names[first])
	op := Operation{Order: names[first], Key: "one-key"}
	switch r.IntN(3) {
	case 0:
		op.Verb = Cancels
	case 1:
		op.Verb, op.Channel = Attempts, w.Orders[second].Channel
	case 2:
		op.Verb, op.Cents = Refunds, 1+r.Int64N(99)
	}
	for _, name := range []string{op.Order, second} {
		op.Order, op.At = name, w.begins(name, op.Verb)+within(r, 0, time.Minute)
		w.add(op)
	}
}

// drawRefundAgain draws, for half of the orders of which a refund is asked for, a client
// that uses its number again, perhaps for other cents, and perhaps before the refund's own
// request.
func (w *Workload) drawRefundAgain(name string, r *rand.Rand) {
	asked := w.firstRefund(name)
	if asked == nil || r.IntN(2) == 0 {
		return
	}
	again := Operation{At: asked.At + around(r, time.Minute), Verb: Refunds, Order: name, Number: refundNumber(name, 1), Cents: asked.Cents}
	switch r.IntN(3) {
	case 0:
		again.Cents++
	case 1:
		again.Cents = 1 + asked.Cents/2
	}
	w.add(again)
}

// drawOneNumberForTwo draws, in every other run, a client that gives the refunds of two
// orders one number.
func (w *Workload) drawOneNumberForTwo(r *rand.Rand) {
	names := w.names()
	if r.IntN(2) == 0 || len(names) < 2 {
		return
	}
	first := names[r.IntN(len(names))]
	op := Operation{Verb: Refunds, Number: "one-number", Cents: 1 + r.Int64N(99)}
	for _, name := range []string{first, other(names, first)} {
		op.Order, op.At = name, w.begins(name, Refunds)+within(r, 0, time.Minute)
		w.add(op)
	}
}

// begins returns when a verb of an order may succeed: a refund when it is paid, anything
// else when it is created.
func (w *Workload) begins(name string, verb Verb) (at time.Duration) {
	for _, op := range w.Operations {
		if op.Order == name && (op.Verb == Creates && at == 0 || op.Verb == Pays && verb == Refunds) {
			at = op.At
		}
	}
	return at
}

// drawOther draws one thing in which a create is not for the order; second is the run's
// other channel.
func drawOther(order *Order, second string, r *rand.Rand) (o Other) {
	switch r.IntN(5) {
	case 0:
		o.Cents = 1 + order.Cents/2
	case 1:
		o.Currency = "JPY"
	case 2:
		o.Channel = second
	case 3:
		o.SKU = other(slices.Sorted(maps.Keys(usualStock)), order.SKU)
	default:
		o.SKU, o.Quantity = cmp.Or(order.SKU, "S1"), order.Quantity+1
	}
	return o
}

// atOnce adds two operations, of which the second comes at once, or while the first may
// be still at work.
func (w *Workload) atOnce(first, second Operation, r *rand.Rand) {
	longest := []time.Duration{time.Microsecond, 10 * time.Millisecond, 5 * time.Second}[r.IntN(3)]
	second.At += within(r, 0, longest)
	w.add(first)
	w.add(second)
}
