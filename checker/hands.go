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
		e.hands[order] = byHand{e.old, e.trace.Clock(r.At), e.trace.Start.Add(r.At).UnixMilli()}
	}
}

// missHands looks for what was said of the rows that were changed by hand, where they
// still differ.
func (e *Evidence) missHands() {
	for _, order := range slices.Sorted(maps.Keys(e.hands)) {
		hand := e.hands[order]
		if e.isBack(hand.before) || e.isReported(order, hand) {
			continue
		}
		e.fail(Failure{Order: order, Stake: amountOf(hand.before), Roles: "hand in " + hand.before.Table, Message: fmt.Sprintf(
			"order %s: its row in %s was changed by hand at %s, and nothing was reported: %s at stake",
			order, hand.before.Table, hand.at, amountOf(hand.before))})
	}
}

// isBack says whether a row is as it was: what was deleted may have been written again.
func (e *Evidence) isBack(before *sim.Change) bool {
	return slices.ContainsFunc(e.table(before.Table), func(now *sim.Change) bool {
		return now.Database == before.Database && now.Text("order_no") == before.Text("order_no") &&
			now.Text("channel_txn") == before.Text("channel_txn") && amountOf(now) == amountOf(before)
	})
}

// isReported says whether there is an alert about the order or its charge from then on.
func (e *Evidence) isReported(order string, hand byHand) bool {
	return slices.ContainsFunc(e.table("alerts"), func(a *sim.Change) bool {
		about := strings.HasSuffix(a.Text("subject"), "/"+hand.before.Text("channel_txn")) || a.Text("subject") == order
		return about && a.Int("raised_ms") >= hand.atMs
	})
}
