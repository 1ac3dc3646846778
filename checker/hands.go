package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// byHand is a row that a person has changed, past the system.
type byHand struct {
	before *sim.Change
	did    string // what was done to it
	seq    int
	at     string
	atMs   int64
}

// noteHand takes note of an operator's hand. What becomes of the order from then on is
// the operator's doing; of the system it is expected that it reports the difference.
func (e *Evidence) noteHand(r *sim.Record) {
	if r.Node != sim.Operator {
		return
	}
	if r.Change.Database == stockDB {
		e.noteShelf(r.Change)
	}
	if e.old == nil {
		return
	}
	order := e.old.Text("order_no")
	if _, known := e.hands[order]; !known && order != "" {
		e.hands[order] = byHand{e.old, handiwork(e.old, r.Change), r.Seq, e.trace.Clock(r.At), e.trace.Start.Add(r.At).UnixMilli()}
	}
}

// handiwork tells what a hand has done to a row.
func handiwork(before, now *sim.Change) string {
	if now.Deleted() {
		return "deleted its row " + before.String()
	}
	var changes []string
	for i, column := range before.Columns {
		if was, is := valueOf(before.Values[i]), valueOf(now.Get(column)); was != is {
			changes = append(changes, column+" from "+was+" to "+is)
		}
	}
	return fmt.Sprintf("changed its row in %s (%s)", before.Table, strings.Join(changes, ", "))
}

// handTold tells, of an order that a hand has touched, how, with the old values and the new
// ones.
func (e *Evidence) handTold(order string) string {
	hand, touched := e.hands[order]
	if !touched {
		return ""
	}
	return fmt.Sprintf("; by hand somebody %s at %s", hand.did, hand.at)
}

func valueOf(v any) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprint(v)
}

// touched says whether a name is that of an order which a hand has touched, or of
// something of it, such as the attempt A-1.
func (e *Evidence) touched(name string) bool {
	for order := range e.hands { // order-free: whether there is one
		if rest, ok := strings.CutPrefix(name, order); ok && (rest == "" || rest[0] == '-') {
			return true
		}
	}
	return false
}

// missHands looks for what was said of the rows that were changed by hand, where they
// still differ.
func (e *Evidence) missHands() {
	for _, order := range slices.Sorted(maps.Keys(e.hands)) {
		hand := e.hands[order]
		if e.isBack(hand.before) || e.isAgreed(hand.before) || e.isReported(hand) {
			continue
		}
		e.fail(Failure{Order: order, Stake: amountOf(hand.before), Roles: "hand in " + hand.before.Table, Message: fmt.Sprintf(
			"order %s: its row in %s was changed by hand, and nothing was reported: %s at stake",
			order, hand.before.Table, amountOf(hand.before)), Seq: hand.seq, AtEnd: true}, hand.before)
	}
}

// names are the columns by which a row and what is said of it can be found again.
var names = []string{"order_no", "out_trade_no", "channel_txn", "paid_txn", "refund_no", "from_status", "to_status", "movement"}

// isBack says whether a row is as it was: what was deleted may have been written again.
func (e *Evidence) isBack(before *sim.Change) bool {
	return slices.ContainsFunc(e.table(before.Table), func(now *sim.Change) bool {
		return now.Database == before.Database && amountOf(now) == amountOf(before) &&
			!slices.ContainsFunc(names, func(column string) bool { return now.Text(column) != before.Text(column) })
	})
}

// isAgreed says whether nothing contradicts an order that was changed: no money was taken
// for it, or just what it is for now.
func (e *Evidence) isAgreed(before *sim.Change) bool {
	if before.Table != "orders" {
		return false
	}
	now := e.orders[before.Text("order_no")]
	return !slices.ContainsFunc(e.ledgerRows("charges"), func(charge *sim.Change) bool {
		return charge.Text("order_no") == before.Text("order_no") && (now == nil || amountOf(now) != amountOf(charge))
	})
}

// isReported says whether there is an alert from then on about what the row names: the
// order, or CHANNEL/NUMBER of a charge or a refund of it.
func (e *Evidence) isReported(hand byHand) bool {
	about := map[string]bool{}
	for _, column := range names {
		about[hand.before.Text(column)] = true
	}
	for _, charge := range e.ledgerRows("charges") {
		if charge.Text("order_no") == hand.before.Text("order_no") {
			about[charge.Text("channel_txn")] = true
		}
	}
	return slices.ContainsFunc(e.table("alerts"), func(a *sim.Change) bool {
		subject := a.Text("subject")
		subject = subject[strings.LastIndexByte(subject, '/')+1:]
		return subject != "" && about[subject] && a.Int("raised_ms") >= hand.atMs
	})
}
