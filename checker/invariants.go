package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// at tells when and where a record happened: "14:15:03.900000 through shop-2, callback(A)#1".
func (e *Evidence) at(r *sim.Record) string {
	return fmt.Sprintf("%s through %s, %s", e.trace.Clock(r.At), r.Node, r.Task)
}

// isRow says that a record is a change of a table's row.
func isRow(r *sim.Record, table string) bool { return r.Change != nil && r.Change.Table == table }

// observeChargeOnce finds a charge that is booked twice, and an order that two
// charges have paid.
func observeChargeOnce(e *Evidence, r *sim.Record) {
	if !isRow(r, "payment_records") || r.Change.Deleted() || e.old != nil {
		return
	}
	row := r.Change
	order, txn := row.Text("order_no"), txnOf(row)
	e.booked[txn]++
	if n := e.booked[txn]; n > 1 {
		e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "record by " + role(r.Task), Message: fmt.Sprintf(
			"order %s: the one charge %s of %s is booked %d times (the last at %s): %s too much in the books",
			order, txn, amountOf(row), n, e.at(r), amountOf(row))})
	}
	if row.Text("disposition") != "applied" {
		return
	}
	e.applied[order]++
	if n := e.applied[order]; n > 1 {
		e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "applied by " + role(r.Task), Message: fmt.Sprintf(
			"order %s was paid %d times (the last with %s at %s): %s kept too much", order, n, txn, e.at(r), amountOf(row))})
	}
}

// endChargeOnce counts, in the channel's own ledger, what each order has cost its
// buyer and did not get back.
func endChargeOnce(e *Evidence) {
	kept := map[string][]*sim.Change{}
	returned := map[string]int64{}
	for _, refund := range e.table("refunds") {
		if refund.Text("state") == "SUCCESS" {
			returned[refund.Text("channel_txn")] += refund.Int("amount_cents")
		}
	}
	for _, charge := range e.table("charges") {
		if returned[charge.Text("channel_txn")] < charge.Int("amount_cents") {
			kept[charge.Text("order_no")] = append(kept[charge.Text("order_no")], charge)
		}
	}
	for _, charge := range e.table("charges") {
		order := charge.Text("order_no")
		if n := len(kept[order]); n > 1 {
			e.fail(Failure{Order: order, Stake: amountOf(charge), Roles: "charges in the ledger", Message: fmt.Sprintf(
				"order %s was charged %d times %s and the money of only one may stay (%s)", order, n, amountOf(charge), txns(kept[order]))})
		}
	}
}

func txns(charges []*sim.Change) string {
	var names []string
	for _, c := range charges {
		names = append(names, c.Text("channel_txn"))
	}
	return strings.Join(names, ", ")
}

// observeClosedIsFinal finds an order that leaves CLOSED, or vanishes from it.
func observeClosedIsFinal(e *Evidence, r *sim.Record) {
	if !isRow(r, "orders") || e.old == nil || e.old.Text("status") != "CLOSED" || r.Change.Text("status") == "CLOSED" {
		return
	}
	order, to := e.old.Text("order_no"), r.Change.Text("status")
	if r.Change.Deleted() {
		to = "nothing"
	}
	e.fail(Failure{Order: order, Stake: amountOf(e.old), Roles: "CLOSED to " + to + " by " + role(r.Task), Message: fmt.Sprintf(
		"order %s came back from CLOSED to %s at %s: %s on an order whose goods were given up", order, to, e.at(r), amountOf(e.old))})
}

// legal are the status changes that the specification allows. The list is written
// again here on purpose: the system's own table is what is judged.
var legal = map[[2]string]bool{
	{"CREATED", "PAID"}: true, {"CREATED", "CLOSED"}: true, {"PAID", "REFUNDING"}: true, {"REFUNDING", "REFUNDED"}: true,
}

func observeLegalTransitions(e *Evidence, r *sim.Record) {
	if !isRow(r, "orders") {
		return
	}
	from, to := "nothing", r.Change.Text("status")
	row := r.Change
	if e.old != nil {
		from = e.old.Text("status")
	}
	if r.Change.Deleted() {
		to, row = "nothing", e.old
	}
	if from == to || from == "nothing" && to == "CREATED" || legal[[2]string{from, to}] || row == nil {
		return
	}
	e.fail(Failure{Order: row.Text("order_no"), Stake: amountOf(row), Roles: from + " to " + to + " by " + role(r.Task), Message: fmt.Sprintf(
		"order %s of %s went from %s to %s at %s", row.Text("order_no"), amountOf(row), from, to, e.at(r))})
}

// endLegalTransitions compares each order with the last entry of its log.
func endLegalTransitions(e *Evidence) {
	last := map[string]string{}
	for _, entry := range e.table("order_status_log") {
		last[entry.Text("order_no")] = entry.Text("to_status")
	}
	for _, row := range e.table("orders") {
		order, status := row.Text("order_no"), row.Text("status")
		if last[order] != status {
			e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "log and row", Message: fmt.Sprintf(
				"order %s of %s is %s, but the last entry of its log says %q", order, amountOf(row), status, last[order])})
		}
	}
}

// ack is something the system has acknowledged to somebody outside.
type ack struct {
	order, txn string // txn is "" for the order itself
	status     string // what it said of the order
	stake      Money
	seq        int
	where      string
	role       string
}

// observeAckedIsDurable remembers what is acknowledged, and finds it missing: at
// once, and whenever a row goes back on it.
func observeAckedIsDurable(e *Evidence, r *sim.Record) {
	switch {
	case r.Event == sim.EventAnswer && r.Message.Status/100 == 2:
		if a, ok := e.ackOf(r); ok {
			e.acks[a.order] = append(e.acks[a.order], a)
			e.verify(a, r)
		}
	case isRow(r, "orders"), isRow(r, "payment_records"):
		order := r.Change.Text("order_no")
		if r.Change.Deleted() && e.old != nil {
			order = e.old.Text("order_no")
		}
		for _, a := range e.acks[order] {
			e.verify(a, r)
		}
	}
}

func endAckedIsDurable(e *Evidence) {
	if len(e.trace.Records) == 0 {
		return
	}
	last := &e.trace.Records[len(e.trace.Records)-1]
	for _, order := range slices.Sorted(maps.Keys(e.acks)) {
		for _, a := range e.acks[order] {
			e.verify(a, last)
		}
	}
}

// ackOf reads an acknowledgement from an answer, if it is one.
func (e *Evidence) ackOf(r *sim.Record) (ack, bool) {
	request := e.requests[r.Message.Exchange]
	if request == nil {
		return ack{}, false
	}
	asked, said := parse(request), parse(r.Message)
	a := ack{order: asked.OrderNo, status: said.Status, seq: r.Seq, where: e.at(r), role: r.Message.Kind, stake: e.price(asked.OrderNo)}
	switch r.Message.Kind {
	case "create":
	case "callback":
		a.txn = asked.Channel + " " + asked.ChannelTxn
		a.stake.Cents = asked.AmountCents
	default:
		return ack{}, false
	}
	return a, true
}

// verify fails if the rows contradict what was acknowledged.
func (e *Evidence) verify(a ack, r *sim.Record) {
	lost := ""
	switch row := e.orders[a.order]; {
	case row == nil:
		lost = "there is no such order"
	case a.txn != "" && e.records[a.txn] == nil:
		lost = fmt.Sprintf("charge %s of %s is not in the books", a.txn, a.stake)
	case a.status == "PAID" && !strings.Contains("PAID REFUNDING REFUNDED", row.Text("status")):
		lost = "it is " + row.Text("status")
	}
	if lost == "" {
		return
	}
	e.fail(Failure{Order: a.order, Stake: a.stake, Seq: r.Seq, Roles: a.role + ", undone by " + role(r.Task), Message: fmt.Sprintf(
		"order %s: %q was acknowledged at %s, but at %s %s: %s at stake", a.order, a.role+" "+a.status, a.where, e.at(r), lost, a.stake)})
}

// observeNoCallInTransaction finds a request that leaves while its task holds a
// transaction open: the lock then lasts as long as somebody else likes.
func observeNoCallInTransaction(e *Evidence, r *sim.Record) {
	if r.Event != sim.EventSend || !r.OpenTx {
		return
	}
	order := parse(r.Message).OrderNo
	e.fail(Failure{Order: order, Stake: Money{parse(r.Message).AmountCents, "CNY"}, Roles: role(r.Task) + " calls " + r.Message.Kind, Message: fmt.Sprintf(
		"order %s: %s was sent to %s at %s inside an open transaction: every order of this database waits for the other side's answer",
		order, r.Message.Kind, r.Message.To, e.at(r))})
}
