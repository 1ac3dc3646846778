package checker

import (
	"fmt"

	"github.com/tillstorm/tillstorm/sim"
)

// A guard is where a flow comes to something that only a person can mend. Whoever writes
// that down raises its alert in the same commit: a crash must not be able to come between.

// observeGuards finds a refund that has failed, a message that is parked, and a notice that
// is refused because it contradicts our books, without its alert.
func (e *Evidence) observeGuards(r *sim.Record) {
	switch {
	case r.Event == sim.EventAnswer && isCallback(r.Message) && contradicts[refusal(r.Message)]:
		e.guardNotice(r)
	case e.becomes(r, "refunds", "FAILED"):
		refund := r.Change
		e.expectAlert(r, "refund-failed", refund.Text("channel")+"/"+refund.Text("refund_no"), refund.Text("order_no"), amountOf(refund))
	case e.becomes(r, "outbox", "PARKED"):
		message := r.Change
		e.expectAlert(r, "outbox-parked", message.Text("kind")+"/"+message.Text("message_key"), e.orderOfMessage(message), Money{})
	}
}

// contradicts are the codes with which a notice is refused that contradicts our books.
var contradicts = map[string]bool{"amount_mismatch": true, "transaction_conflict": true}

// becomes says whether a record is the change of one of our rows to a state.
func (e *Evidence) becomes(r *sim.Record, table, state string) bool {
	return isRow(r, table) && r.Change.Database == shopDB && r.Change.Text("state") == state && (e.old == nil || e.old.Text("state") != state)
}

// guardNotice: what a channel tells of money, and we take for untrue, is for a person to look
// at. That is committed before the channel hears of it.
func (e *Evidence) guardNotice(r *sim.Record) {
	request := e.requests[r.Message.Exchange]
	if request == nil {
		return
	}
	notice := parse(request)
	kind, number := "charge-refused", notice.ChannelTxn
	if request.Kind == "refund-callback" {
		kind, number = "refund-mismatch", notice.RefundNo
	}
	e.missAlert(r, kind, notice.Channel+"/"+number, notice.OrderNo, notice.amount())
}

// expectAlert has it checked, when the commit is whole, that an alert was raised.
func (e *Evidence) expectAlert(r *sim.Record, kind, subject, order string, amount Money) {
	if r.Node == sim.Operator {
		return
	}
	e.atCommit(func(by *sim.Record) { e.missAlert(by, kind, subject, order, amount) })
}

// missAlert finds that an alert was not raised. One that somebody else has raised stays as
// it is, whatever more is told of its subject.
func (e *Evidence) missAlert(by *sim.Record, kind, subject, order string, amount Money) {
	alert := e.accounts.alerts[kind+" "+subject]
	if alert != nil && (alert.Int("amount_cents") == amount.Cents || !e.hasRaised(by, alert)) {
		return
	}
	roles, what := "not raised", "without the alert"
	if alert != nil {
		roles, what = "of another amount", fmt.Sprintf("and the alert is of %s", amountOf(alert))
	}
	stake := amount
	if stake.Cents == 0 {
		stake = e.price(order)
	}
	e.fail(Failure{Order: order, Stake: stake, Seq: by.Seq, Roles: kind + " " + roles + " by " + sim.Role(by.Task), Message: fmt.Sprintf(
		"order %s: what was done at %s is %s of %s for %s, %s: nobody will look at it", order, e.at(by), kind, subject, stake, what)})
}

// hasRaised says whether an alert is of a record's task.
func (e *Evidence) hasRaised(r *sim.Record, alert *sim.Change) bool {
	seq := e.past.alerts[alert.Int("alert_id")]
	return seq > 0 && taskOf(&e.trace.Records[seq-1]) == taskOf(r)
}
