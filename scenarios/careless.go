package scenarios

import (
	"math/rand/v2"
	"time"
)

// drawCareless draws what a client does that takes no care of its keys and numbers: it
// asks twice at once, or under one key for one thing and another. The load balancer
// brings what comes at once to both instances.
func (w *Workload) drawCareless(name string, order *Order, created, paid time.Duration, r *rand.Rand) {
	key := name + "-key"
	soon := created + within(r, 0, 2*time.Second)
	create := Operation{At: soon, Verb: Creates, Order: name, Key: key}
	switch r.IntN(8) {
	case 0:
		w.atOnce(create, create, r)
	case 1: // the key with another amount
		other := create
		other.Cents = 1 + order.Cents/2
		w.atOnce(create, other, r)
	case 2: // the number with another amount
		w.add(Operation{At: soon, Verb: Creates, Order: name, Cents: 1 + order.Cents/2})
	case 3: // the key of another operation
		w.add(create)
		w.add(Operation{At: paid + within(r, 0, time.Minute), Verb: Cancels, Order: name, Key: key})
		w.add(Operation{At: paid + within(r, 0, 2*time.Minute), Verb: Refunds, Order: name, Cents: 1 + order.Cents/4, Key: key})
	case 4, 5: // one refund, and perhaps another amount under its key
		refund := Operation{At: paid + within(r, 0, 2*time.Minute), Verb: Refunds, Order: name, Cents: 1 + order.Cents/4, Key: key}
		again := refund
		again.Cents += int64(r.IntN(2))
		w.atOnce(refund, again, r)
	case 6: // the key of somebody else, who calls himself otherwise
		create.Key, create.Caller = "same-key", "caller-"+name
		w.add(create)
	}
}

// atOnce adds two operations, of which the second comes at once, or while the first may
// be still at work.
func (w *Workload) atOnce(first, second Operation, r *rand.Rand) {
	longest := []time.Duration{time.Microsecond, 10 * time.Millisecond, 5 * time.Second}[r.IntN(3)]
	second.At += within(r, 0, longest)
	w.add(first)
	w.add(second)
}
