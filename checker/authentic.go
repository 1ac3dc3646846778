package checker

import (
	"fmt"
	"strings"
	"time"

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
		if d := e.doubtOf(r.Message, r.At); d.why != "" {
			e.doubts[r.Node+"/"+r.Op] = d
		}
	case r.Change != nil && r.Change.Database == shopDB && r.Change.Table != "alerts":
		e.failDoubtful(r, "changed "+r.Change.Table, "changed a row of "+r.Change.Table)
		if isRow(r, "payment_records") && e.old == nil {
			e.judgeBooked(r)
		}
	case r.Event == sim.EventAnswer && r.Message.Status/100 == 2 && isCallback(r.Message):
		e.failDoubtful(r, "was acknowledged", "was acknowledged")
	}
}

// doubtOf tells what is wrong with a callback as it arrives, by what is known then.
func (e *Evidence) doubtOf(m *sim.Message, at time.Duration) doubt {
	d := doubt{kind: m.Kind, notice: parse(m)}
	var whys []string
	if channel := d.notice.Channel; m.From != channel {
		d.forged = true
		whys = append(whys, fmt.Sprintf("%s sent it, not %s: %s", m.From, channel, e.sealTold(m, at)))
	}
	if mistake := e.mistakeOf(d); mistake != "" {
		whys = append(whys, mistake)
	}
	if other := d.notice.MerchantID; len(whys) > 0 && other != "" && other != e.seal.merchant {
		whys = append(whys, "it is for the merchant "+other+", and we are "+e.seal.merchant)
	}
	d.why = strings.Join(whys, ", and ")
	return d
}

// mistakeOf tells what a callback says otherwise than what we know, "" if nothing.
func (e *Evidence) mistakeOf(d doubt) string {
	n := d.notice
	row, name := e.attempts[n.OutTradeNo], "attempt "+n.OutTradeNo
	if n.OutTradeNo == "" {
		row, name = e.latestAttempt(n.OrderNo, n.Channel), "attempt"
	}
	if d.kind == "refund-callback" {
		row, name = e.accounts.intents[n.RefundNo], "refund "+n.RefundNo
	}
	if row == nil || row.Text("channel") != n.Channel || row.Text("order_no") != n.OrderNo {
		return fmt.Sprintf("we know of no %s of order %s on %s", name, n.OrderNo, n.Channel)
	}
	switch due := e.due(row); {
	case n.amount() == due && d.kind == "callback":
		return e.otherCharge(n)
	case n.amount() == due:
		return ""
	case n.amount().Currency != due.Currency:
		return "in another currency: " + due.String() + " is due"
	default:
		return due.String() + " is due"
	}
}

// latestAttempt returns the last attempt of an order on a channel, nil if there is none: a
// notice that names no trade is about that one.
func (e *Evidence) latestAttempt(order, channel string) (latest *sim.Change) {
	for _, row := range e.attempts { // order-free: their numbers differ
		if row.Text("order_no") == order && row.Text("channel") == channel && (latest == nil || row.Int("attempt") > latest.Int("attempt")) {
			latest = row
		}
	}
	return latest
}

// judgeBooked finds a charge that is booked for another attempt than its channel has charged:
// whoever names no trade means one of them, too.
func (e *Evidence) judgeBooked(r *sim.Record) {
	record, charge := r.Change, e.accounts.charges[txnOf(r.Change)]
	if charge == nil || charge.Text("out_trade_no") == record.Text("out_trade_no") {
		return
	}
	order := record.Text("order_no")
	e.fail(Failure{Order: order, Stake: amountOf(record), Seq: r.Seq, Roles: "charge booked for another attempt by " + sim.Role(r.Task), Message: fmt.Sprintf(
		"order %s: charge %s of %s was booked at %s for attempt %s, and %s has charged %s", order, txnOf(record), amountOf(record), e.at(r),
		record.Text("out_trade_no"), charge.Database, charge.Text("out_trade_no"))})
}

// otherCharge tells that the transaction of a notice is known as that of another order.
func (e *Evidence) otherCharge(n body) string {
	record := e.records[n.txn()]
	if !n.takesMoney() || record == nil || record.Text("order_no") == n.OrderNo {
		return ""
	}
	return fmt.Sprintf("charge %s is one of order %s", n.txn(), record.Text("order_no"))
}

// excuseForgotten excuses who takes a notice for another order, where a person has deleted
// the record of its charge: he can't know better, and that order counts as touched, too.
func (e *Evidence) excuseForgotten(n body) (excused bool) {
	charge, record := e.accounts.charges[n.txn()], e.records[n.txn()]
	if charge == nil || record != nil && record.Text("order_no") != n.OrderNo {
		return false
	}
	hand, touched := e.hands[charge.Text("order_no")]
	if touched {
		e.hands[n.OrderNo] = hand
	}
	return touched
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
	if !found || e.excuseForgotten(d.notice) {
		return
	}
	e.fail(Failure{Order: d.notice.OrderNo, Stake: d.notice.amount(), Seq: r.Seq, Roles: d.kind + " that is none " + roles, Message: fmt.Sprintf(
		"order %s: a %s that tells of %s %s at %s, but %s", d.notice.OrderNo, d.kind, d.notice.amount(), effect, e.at(r), d.why)})
}
