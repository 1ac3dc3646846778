package checker

import (
	"fmt"

	"github.com/tillstorm/tillstorm/sim"
)

// refundSums are what goes back of each charge, by channel and transaction, and how many
// refunds the channels have under a number.
type refundSums struct {
	intended, accepted map[string]int64
	executions         map[string]int
}

func newRefundSums() refundSums {
	return refundSums{map[string]int64{}, map[string]int64{}, map[string]int{}}
}

// observeRefundBounded adds up, refund by refund, what we mean to give back of a charge and
// what its channel has accepted, and holds each against what was charged.
func observeRefundBounded(e *Evidence, r *sim.Record) {
	if !isRow(r, "refunds") {
		return
	}
	sums, charge, who := e.sums.accepted, chargeOf, "the channel has accepted"
	if r.Change.Database == shopDB {
		sums, charge, who = e.sums.intended, txnOf, "we mean to give back"
	} else {
		e.sums.count(e.old, -1)
		e.sums.count(r.Change, +1)
	}
	addRefund(sums, charge, e.old, -1)
	addRefund(sums, charge, r.Change, +1)
	if r.Change.Deleted() {
		return
	}
	e.boundRefunds(r, charge(r.Change), sums[charge(r.Change)], who)
	if r.Change.Database != shopDB && e.old == nil {
		e.askedFor(r)
	}
}

// addRefund counts a refund that has given money back, or may yet do it.
func addRefund(sums map[string]int64, charge func(*sim.Change) string, row *sim.Change, sign int64) {
	if row == nil || row.Deleted() {
		return
	}
	if mayGiveBack(row) {
		sums[charge(row)] += sign * row.Int("amount_cents")
	}
}

func (s *refundSums) count(row *sim.Change, by int) {
	if row != nil && !row.Deleted() {
		s.executions[row.Text("refund_no")] += by
	}
}

func (e *Evidence) boundRefunds(r *sim.Record, txn string, cents int64, who string) {
	row := r.Change
	paid := Money{Currency: row.Text("currency")}
	if charge := e.accounts.charges[txn]; charge != nil {
		paid = amountOf(charge)
	}
	if cents <= paid.Cents {
		return
	}
	sum, excess := Money{cents, paid.Currency}, Money{cents - paid.Cents, paid.Currency}
	e.fail(Failure{Order: row.Text("order_no"), Stake: excess, Roles: "too much by " + sim.Role(r.Task), Message: fmt.Sprintf(
		"order %s: %s was paid with %s, and %s %s of it (the last at %s): %s too much",
		row.Text("order_no"), paid, txn, who, sum, e.at(r), excess)})
}

// askedFor finds a refund of a channel's that no intent of ours has asked for, or that one
// has asked for before.
func (e *Evidence) askedFor(r *sim.Record) {
	row := r.Change
	order, number := row.Text("order_no"), row.Text("refund_no")
	intent, problem := e.accounts.intents[number], ""
	switch {
	case intent == nil:
		problem = "no intent of ours asked for it"
	case txnOf(intent) != chargeOf(row):
		problem = "our intent was about " + txnOf(intent)
	case amountOf(intent) != amountOf(row):
		problem = fmt.Sprintf("our intent was about %s", amountOf(intent))
	case e.sums.executions[number] > 1:
		problem = fmt.Sprintf("that is the same intent's refund number %d", e.sums.executions[number])
	default:
		return
	}
	e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "refund in the ledger by " + sim.Role(r.Task), Message: fmt.Sprintf(
		"order %s: refund %s gives back %s of %s since %s, and %s", order, number, amountOf(row), chargeOf(row), e.at(r), problem)})
}
