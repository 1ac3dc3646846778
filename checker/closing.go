package checker

import (
	"fmt"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// observeCloseOnTime finds an order that its deadline closed before the deadline, or whose
// times are by another clock than the database's.
func observeCloseOnTime(e *Evidence, r *sim.Record) {
	e.noteAsked(r)
	if !isRow(r, "orders") || r.Change.Deleted() || r.Node == sim.Operator {
		return
	}
	e.judgeTimes(r)
	if r.Change.Text("status") != "CLOSED" || e.old != nil && e.old.Text("status") == "CLOSED" {
		return
	}
	if e.asksFirst {
		e.judgeUnpaid(r)
	}
	if r.Change.Text("close_reason") == "deadline" {
		e.judgeDeadline(r)
	}
}

// AsksFirst declares the policy by which no order is closed before its channels have said
// that it is not paid.
func (e *Evidence) AsksFirst() { e.asksFirst = true }

// noteAsked notes who has asked a channel about a trade, or to close it, and when last.
func (e *Evidence) noteAsked(r *sim.Record) {
	if r.Event == sim.EventSend && (r.Message.Kind == "query" || r.Message.Kind == "close") {
		e.asked[taskOf(r)+" "+parse(r.Message).OutTradeNo] = r.At
	}
}

// judgeUnpaid finds an order that is closed though its channel has charged it: whoever closes
// it has asked after that, or not at all. A charge that comes between the channel's answer
// and the close is nobody's fault.
func (e *Evidence) judgeUnpaid(r *sim.Record) {
	order := r.Change.Text("order_no")
	for n := 1; ; n++ {
		number := fmt.Sprintf("%s-%d", order, n)
		attempt := e.attempts[number]
		if attempt == nil {
			return
		}
		charge := e.chargeOf(attempt)
		if charge == nil {
			continue
		}
		asked, known := e.asked[taskOf(r)+" "+number]
		charged := time.UnixMilli(charge.Int("charged_ms")).Sub(e.trace.Start)
		if known && asked < charged+time.Millisecond {
			continue
		}
		e.fail(Failure{Order: order, Stake: amountOf(charge), Seq: r.Seq, Roles: "charged before by " + sim.Role(r.Task), Message: fmt.Sprintf(
			"order %s was closed at %s as unpaid, and %s had charged %s for %s at %s, before it was asked", order, e.at(r),
			charge.Database, amountOf(charge), number, e.trace.Clock(charged))})
	}
}

// chargeOf returns the charge of an attempt in its channel's ledger, nil if there is none.
func (e *Evidence) chargeOf(attempt *sim.Change) *sim.Change {
	return e.accounts.charged[attempt.Text("channel")+" "+attempt.Text("out_trade_no")]
}

// judgeDeadline finds an order that its deadline closed too early, or too late.
func (e *Evidence) judgeDeadline(r *sim.Record) {
	now, deadline := e.trace.Start.Add(r.At).UnixMilli(), r.Change.Int("deadline_ms")
	early, late := deadline-now, now-deadline
	order := r.Change.Text("order_no")
	switch {
	case early > 0:
		e.fail(Failure{Order: order, Stake: amountOf(r.Change), Roles: "too early by " + sim.Role(r.Task), Message: fmt.Sprintf(
			"order %s of %s was closed %d ms before its deadline, at %s", order, amountOf(r.Change), early, e.at(r))})
	case late > closeSlackMs:
		e.fail(Failure{Order: order, Stake: amountOf(r.Change), Roles: "too late by " + sim.Role(r.Task), Message: fmt.Sprintf(
			"order %s of %s was closed %d s after its deadline, at %s", order, amountOf(r.Change), late/1000, e.at(r))})
	}
}

// judgeTimes holds the times of an order against true time: what has happened has happened
// by now, an order is made when somebody asks for it, and it waits for just as long as all.
func (e *Evidence) judgeTimes(r *sim.Record) {
	row, now := r.Change, e.nowMs(r)
	for _, column := range []string{"created_ms", "paid_ms", "closed_ms"} {
		if ms := row.Int(column); ms > now && (e.old == nil || e.old.Int(column) != ms) {
			e.failTime(r, column, fmt.Sprintf("%s is %d ms ahead of true time", column, ms-now))
		}
	}
	created, deadline := row.Int("created_ms"), row.Int("deadline_ms")
	if e.old != nil || created == 0 {
		return
	}
	if asked := e.past.arrivals[taskOf(r)]; asked > 0 && created < e.nowMs(&e.trace.Records[asked-1]) {
		e.failTime(r, "created_ms", fmt.Sprintf("created_ms is %d ms before the request came", e.nowMs(&e.trace.Records[asked-1])-created))
	}
	if waits := deadline - created; e.window != 0 && waits != e.window.Milliseconds() {
		e.failTime(r, "deadline_ms", fmt.Sprintf("it waits %v for its money, not %v", time.Duration(waits)*time.Millisecond, e.window))
	}
}

func (e *Evidence) failTime(r *sim.Record, column, what string) {
	order := r.Change.Text("order_no")
	e.fail(Failure{Order: order, Stake: amountOf(r.Change), Seq: r.Seq, Roles: column + " by " + sim.Role(r.Task), Message: fmt.Sprintf(
		"order %s of %s: by what was written at %s, %s", order, amountOf(r.Change), e.at(r), what)})
}

// OrdersWait declares for how long each order waits for its money.
func (e *Evidence) OrdersWait(window time.Duration) { e.window = window }

// closeSlackMs is how late closing may be. It covers a storm that keeps every
// instance, or the channel that has to be asked, away from the order.
const closeSlackMs = 30 * 60 * 1000

// endCloseOnTime finds an order that nobody has closed.
func endCloseOnTime(e *Evidence) {
	if len(e.trace.Records) == 0 {
		return
	}
	now := e.nowMs(&e.trace.Records[len(e.trace.Records)-1])
	for _, row := range e.table("orders") {
		late := now - row.Int("deadline_ms")
		if row.Text("status") != "CREATED" || row.Int("deadline_ms") == 0 || late <= closeSlackMs {
			continue
		}
		order := row.Text("order_no")
		e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "never closed", Message: fmt.Sprintf(
			"order %s of %s is CREATED at the end, %d s after its deadline", order, amountOf(row), late/1000)}, row)
	}
}
