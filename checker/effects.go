package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tillstorm/tillstorm/sim"
)

// effect-once counts, for each cause, the rows that are its effect. Other properties own
// what is beside that: charge-once that a charge is booked once; books-match-channel
// that it is booked at all; legal-transitions that the log's entries go on from each
// other; refund-bounded how much goes back; outbox-delivered what an effect elsewhere
// must have been asked for by; stock-conserved how much stock an effect moves.

// effect is something that follows from a cause exactly once.
type effect struct {
	name string
	// of returns the cause of which a row is the effect.
	of func(*Evidence, *sim.Change) cause
	// due returns the cause that a row shows, which must have had its effect in the end;
	// nil if it may have none, or if another property asks for it.
	due func(*Evidence, *sim.Change) cause
}

// cause is what an effect follows from; the zero cause is none.
type cause struct{ order, what string }

// effects are all there are. The list is never changed.
var effects = []effect{
	{"log entry", ofLog, ofStatus},
	{"outcome", ofOutcome, ofRecord},
	{"freeze", ofMove("freeze"), nil},
	{"release", ofMove("release"), nil},
	{"deduct", ofMove("deduct"), nil},
	{"message", ofMessage, nil},
	{"trade", ofTrade, nil},
}

// ofLog and ofStatus: each change of an order's status has its entry in the log.
func ofLog(_ *Evidence, row *sim.Change) cause {
	if row.Table != "order_status_log" {
		return cause{}
	}
	return changeTo(row.Text("to_status"), row)
}

func ofStatus(_ *Evidence, row *sim.Change) cause {
	if row.Table != "orders" {
		return cause{}
	}
	return changeTo(row.Text("status"), row)
}

func changeTo(status string, row *sim.Change) cause {
	return cause{row.Text("order_no"), "its change to " + status}
}

// ofOutcome and ofRecord: each charge has one outcome. It pays its order, now or by the
// order's reinstatement, or it goes back as late or surplus.
func ofOutcome(_ *Evidence, row *sim.Change) cause {
	switch {
	case row.Table == "orders" && row.Text("paid_txn") != "":
		return cause{row.Text("order_no"), "charge " + row.Text("paid_channel") + " " + row.Text("paid_txn")}
	case row.Table == "refunds" && row.Database == shopDB && row.Text("cause") != "request":
		return cause{row.Text("order_no"), "charge " + txnOf(row)}
	}
	return cause{}
}

func ofRecord(_ *Evidence, row *sim.Change) cause {
	if row.Table != "payment_records" {
		return cause{}
	}
	return cause{row.Text("order_no"), "charge " + txnOf(row)}
}

// ofMove: the stock of a number moves once in each way. A number stands for an order's
// making, close and payment, or for a charge that reinstates the order.
func ofMove(movement string) func(*Evidence, *sim.Change) cause {
	return func(_ *Evidence, row *sim.Change) cause {
		if row.Table != "stock_journal" || row.Text("movement") != movement {
			return cause{}
		}
		number := row.Text("order_no")
		return cause{stockOrder(number), "number " + number}
	}
}

// ofMessage: a fact has one message of a kind.
func ofMessage(e *Evidence, row *sim.Change) cause {
	if row.Table != "outbox" {
		return cause{}
	}
	return cause{e.orderOfMessage(row), messageOf(row)}
}

// ofTrade: an attempt has one trade, whatever the channel.
func ofTrade(_ *Evidence, row *sim.Change) cause {
	if row.Table != "trades" {
		return cause{}
	}
	return cause{row.Text("order_no"), "attempt " + row.Text("out_trade_no")}
}

// followed is a cause and the number of its effect in the list.
type followed struct {
	cause
	effect int
}

// effectCounts is what has been seen of causes and effects.
type effectCounts struct {
	had map[followed]int
	due map[followed]*sim.Change // the row that shows the cause
}

func newEffectCounts() effectCounts {
	return effectCounts{map[followed]int{}, map[followed]*sim.Change{}}
}

// observeEffectOnce finds a second effect of one cause.
func observeEffectOnce(e *Evidence, r *sim.Record) {
	if r.Change == nil {
		return
	}
	for i := range effects {
		e.countEffect(i, r)
	}
}

func (e *Evidence) countEffect(i int, r *sim.Record) {
	x := &effects[i]
	if before, now := e.causeOf(x.of, e.old), e.causeOf(x.of, r.Change); before != now {
		e.effects.had[followed{before, i}]--
		e.effects.had[followed{now, i}]++
		if n := e.effects.had[followed{now, i}]; n > 1 && now != (cause{}) {
			price := e.price(now.order)
			e.fail(Failure{Order: now.order, Stake: price, Roles: x.name + " by " + sim.Role(r.Task), Message: fmt.Sprintf(
				"order %s of %s: %s has had its %s %d times, the last at %s", now.order, price, now.what, x.name, n, e.at(r))})
		}
	}
	if due := e.causeOf(x.due, r.Change); due != (cause{}) {
		if key := (followed{due, i}); e.effects.due[key] == nil {
			e.effects.due[key] = r.Change
		}
	}
}

// causeOf asks what a row is about; one that isn't there is about nothing.
func (e *Evidence) causeOf(ask func(*Evidence, *sim.Change) cause, row *sim.Change) cause {
	if ask == nil || row == nil || row.Deleted() {
		return cause{}
	}
	return ask(e, row)
}

// endEffectOnce finds a cause that never had its effect.
func endEffectOnce(e *Evidence) {
	var missing []followed
	for f := range e.effects.due { // order-free: sorted below
		if e.effects.had[f] < 1 {
			missing = append(missing, f)
		}
	}
	slices.SortFunc(missing, func(a, b followed) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.what, b.what), cmp.Compare(a.effect, b.effect))
	})
	for _, f := range missing {
		name, price := effects[f.effect].name, e.price(f.order)
		e.fail(Failure{Order: f.order, Stake: price, Roles: "no " + name, Message: fmt.Sprintf(
			"order %s of %s: %s never had its %s", f.order, price, f.what, name)}, e.effects.due[f])
	}
}
