package checker

import (
	"fmt"

	"github.com/tillstorm/tillstorm/sim"
)

// doubt is why a callback is not to be believed.
type doubt struct {
	notice body
	kind   string
	forged bool // no channel has sent it
	why    string
}

// isCallback says whether a message is one that channels post.
func isCallback(m *sim.Message) bool { return m.Kind == "callback" || m.Kind == "refund-callback" }

// observeAuthenticOnly finds a callback that has an effect though its channel did not
// send it, or though it is for another attempt or amount than we know. Being
// acknowledged is an effect: whoever sent it is believed.
func observeAuthenticOnly(e *Evidence, r *sim.Record) {
	switch {
	case r.Event == sim.EventDeliver && r.Message.Leg == sim.Request && isCallback(r.Message):
		if d := e.doubtOf(r.Message); d.why != "" {
			e.doubts[r.Node+"/"+r.Op] = d
		}
	case r.Change != nil && r.Change.Database == shopDB && r.Change.Table != "alerts":
		e.failDoubtful(r, "changed "+r.Change.Table, "changed a row of "+r.Change.Table)
	case r.Event == sim.EventAnswer && r.Message.Status/100 == 2 && isCallback(r.Message):
		e.failDoubtful(r, "was acknowledged", "was acknowledged")
	}
}

// doubtOf tells what is wrong with a callback as it arrives, by what is known then.
func (e *Evidence) doubtOf(m *sim.Message) doubt {
	n := parse(m)
	d := doubt{kind: m.Kind, notice: n}
	row := e.attempts[n.OutTradeNo]
	if m.Kind == "refund-callback" {
		row = e.accounts.intents[n.RefundNo]
	}
	switch {
	case m.From != n.Channel:
		d.forged, d.why = true, m.From+" sent it, not "+n.Channel
	case row == nil || row.Text("channel") != n.Channel || row.Text("order_no") != n.OrderNo:
		d.why = "we know of no such attempt or refund"
	case n.amount() != e.due(row):
		d.why = e.due(row).String() + " is due"
	}
	return d
}

// due is what an attempt or a refund is of.
func (e *Evidence) due(row *sim.Change) Money {
	if row.Table == "refunds" {
		return amountOf(row)
	}
	return e.price(row.Text("order_no"))
}

func (e *Evidence) failDoubtful(r *sim.Record, roles, effect string) {
	task := r.Node + "/" + r.Task
	d, found := e.doubts[task]
	if !found {
		return
	}
	e.fail(Failure{Order: d.notice.OrderNo, Stake: d.notice.amount(), Seq: r.Seq, Roles: d.kind + " that is none " + roles, Message: fmt.Sprintf(
		"order %s: a %s that tells of %s %s at %s, but %s", d.notice.OrderNo, d.kind, d.notice.amount(), effect, e.at(r), d.why)})
}
