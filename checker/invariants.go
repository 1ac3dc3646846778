package checker

import (
	"cmp"
	"fmt"
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
	if !isRow(r, "payment_records") {
		return
	}
	e.count(e.old, -1)
	e.count(r.Change, +1)
	row := r.Change
	order, txn := row.Text("order_no"), txnOf(row)
	if n := e.booked[txn]; n > 1 {
		e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "record by " + sim.Role(r.Task), Message: fmt.Sprintf(
			"order %s: the one charge %s of %s is booked %d times (the last at %s): %s too much in the books",
			order, txn, amountOf(row), n, e.at(r), amountOf(row))})
	}
	if n := e.applied[order]; n > 1 && isApplied(row) {
		e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "applied by " + sim.Role(r.Task), Message: fmt.Sprintf(
			"order %s was paid %d times (the last with %s at %s): %s kept too much", order, n, txn, e.at(r), amountOf(row))})
	}
}

// count adds a row of payment_records to the books, or takes it away.
func (e *Evidence) count(row *sim.Change, by int) {
	if row == nil || row.Deleted() {
		return
	}
	e.booked[txnOf(row)] += by
	if isApplied(row) {
		e.applied[row.Text("order_no")] += by
	}
}

func isApplied(row *sim.Change) bool { return row.Text("disposition") == "applied" }

// endChargeOnce counts, in the channels' own ledgers, what each order has cost its
// buyer and did not get back.
func endChargeOnce(e *Evidence) {
	type txn struct{ ledger, name string }
	returned := map[txn]int64{}
	for _, refund := range e.table("refunds") {
		if refund.Text("state") == "SUCCESS" {
			returned[txn{refund.Database, refund.Text("channel_txn")}] += refund.Int("amount_cents")
		}
	}
	kept := map[string][]string{} // what is told of each charge, by order
	rows := map[string][]*sim.Change{}
	tooMuch, largest := map[string]Money{}, map[string]int64{}
	var orders []string
	for _, charge := range e.table("charges") {
		order, name := charge.Text("order_no"), charge.Text("channel_txn")
		net := amountOf(charge)
		if net.Cents -= returned[txn{charge.Database, name}]; net.Cents <= 0 || e.isStranded(chargeOf(charge)) {
			continue
		}
		if kept[order] == nil {
			orders = append(orders, order)
		}
		rows[order] = append(rows[order], charge)
		kept[order] = append(kept[order], fmt.Sprintf("%s with %s %s", net, charge.Database, name))
		// The largest may stay; everything else is too much.
		tooMuch[order] = Money{tooMuch[order].Cents + min(net.Cents, largest[order]), net.Currency}
		largest[order] = max(net.Cents, largest[order])
	}
	for _, order := range orders {
		if n := len(kept[order]); n > 1 {
			e.fail(Failure{Order: order, Stake: tooMuch[order], Roles: "charges in the ledger", Message: fmt.Sprintf(
				"order %s was charged %d times (%s): %s kept too much", order, n, strings.Join(kept[order], ", "), tooMuch[order])}, rows[order]...)
		}
	}
}

// observeClosedIsFinal finds an order that leaves CLOSED, or vanishes from it.
func observeClosedIsFinal(e *Evidence, r *sim.Record) {
	if !isRow(r, "orders") || e.old == nil || e.old.Text("status") != "CLOSED" || r.Change.Text("status") == "CLOSED" {
		return
	}
	order, to := e.old.Text("order_no"), r.Change.Text("status")
	if e.reinstate && to == "PAID" && !e.isCancelled(e.old) {
		e.atCommit(func(by *sim.Record) { e.judgeReinstated(order, by) })
		return
	}
	if r.Change.Deleted() {
		to = "nothing"
	}
	e.fail(Failure{Order: order, Stake: amountOf(e.old), Roles: "CLOSED to " + to + " by " + sim.Role(r.Task), Message: fmt.Sprintf(
		"order %s came back from CLOSED to %s at %s: %s on an order whose goods were given up", order, to, e.at(r), amountOf(e.old))})
}

// isCancelled says whether an order's buyer wants it no more, as the order says, or as was
// promised.
func (e *Evidence) isCancelled(order *sim.Change) bool {
	return order.Text("close_reason") == "cancelled" || e.accounts.messages["cancel "+order.Text("order_no")] != nil
}

// judgeReinstated finds an order that is opened again though its stock is not frozen again.
func (e *Evidence) judgeReinstated(order string, by *sim.Record) {
	row := e.orders[order]
	if row == nil || row.Text("sku") == "" {
		return
	}
	number, frozen := row.Text("stock_no"), e.shelf(row.Text("sku"))
	if frozen.byHand || e.accounts.moves["freeze "+number] != nil && e.accounts.moves["release "+number] == nil {
		return
	}
	e.fail(Failure{Order: order, Stake: amountOf(row), Seq: by.Seq, Roles: "without stock by " + sim.Role(by.Task), Message: fmt.Sprintf(
		"order %s of %s was opened again at %s, and its %d of %s are not frozen for it", order, amountOf(row), e.at(by), row.Int("quantity"), row.Text("sku"))})
}

// legal are the status changes that the specification allows. The list is written
// again here on purpose: the system's own table is what is judged.
var legal = map[[2]string]bool{
	{"CREATED", "PAID"}: true, {"CREATED", "CLOSED"}: true, {"PAID", "REFUNDING"}: true, {"REFUNDING", "REFUNDED"}: true,
}

// allowed says whether an order may go from one status to another; it begins with "".
func allowed(from, to string) bool {
	return from == "" && to == "CREATED" || legal[[2]string{from, to}]
}

// observeLegalTransitions leaves to closed-is-final what leaves CLOSED.
func observeLegalTransitions(e *Evidence, r *sim.Record) {
	if isRow(r, "order_status_log") {
		observeLog(e, r)
	}
	if !isRow(r, "orders") {
		return
	}
	row, from, to := r.Change, "", r.Change.Text("status")
	if e.old != nil {
		from = e.old.Text("status")
	}
	if to == "CLOSED" && from != to {
		e.atCommit(func(by *sim.Record) { e.judgeClosed(row, by) })
	}
	if row.Deleted() {
		row = e.old
	}
	if row == nil || from == to || from == "CLOSED" || allowed(from, to) {
		return
	}
	from, to = cmp.Or(from, "nothing"), cmp.Or(to, "nothing")
	e.fail(Failure{Order: row.Text("order_no"), Stake: amountOf(row), Roles: from + " to " + to + " by " + sim.Role(r.Task), Message: fmt.Sprintf(
		"order %s of %s went from %s to %s at %s", row.Text("order_no"), amountOf(row), from, to, e.at(r))})
}

// judgeClosed finds an order that is closed beside an attempt that is open: whoever has the
// attempt's token takes it for payable.
func (e *Evidence) judgeClosed(order *sim.Change, by *sim.Record) {
	for n := 1; ; n++ {
		number := fmt.Sprintf("%s-%d", order.Text("order_no"), n)
		switch attempt := e.attempts[number]; {
		case attempt == nil:
			return
		case attempt.Text("state") == "OPEN":
			e.fail(Failure{Order: order.Text("order_no"), Stake: amountOf(order), Seq: by.Seq, Roles: "closed with an open attempt by " + sim.Role(by.Task), Message: fmt.Sprintf(
				"order %s of %s was closed at %s, and its attempt %s is open", order.Text("order_no"), amountOf(order), e.at(by), number)})
		}
	}
}

// observeLog follows an order's log: each entry goes on from the one before.
func observeLog(e *Evidence, r *sim.Record) {
	entry := r.Change
	if entry.Deleted() || e.old != nil {
		return
	}
	order, from, to := entry.Text("order_no"), entry.Text("from_status"), entry.Text("to_status")
	if last := e.logged[order]; from != last || from != "CLOSED" && !allowed(from, to) {
		e.fail(Failure{Order: order, Stake: e.price(order), Roles: "log by " + sim.Role(r.Task), Message: fmt.Sprintf(
			"order %s of %s: its log says at %s that it went from %s to %s, but it was %s", order, e.price(order), e.at(r),
			cmp.Or(from, "nothing"), to, cmp.Or(last, "nothing"))})
	}
	e.logged[order] = to
}

// endLegalTransitions compares each order with the last entry of its log.
func endLegalTransitions(e *Evidence) {
	last, entries := map[string]string{}, map[string]*sim.Change{}
	for _, entry := range e.table("order_status_log") {
		last[entry.Text("order_no")], entries[entry.Text("order_no")] = entry.Text("to_status"), entry
	}
	for _, row := range e.table("orders") {
		order, status := row.Text("order_no"), row.Text("status")
		if last[order] != status {
			e.fail(Failure{Order: order, Stake: amountOf(row), Roles: "log and row", Message: fmt.Sprintf(
				"order %s of %s is %s, but the last entry of its log says %q", order, amountOf(row), status, last[order])}, row, entries[order])
		}
	}
}

// ack is something the system has acknowledged to somebody outside.
type ack struct {
	order       string
	txn, refund string // of which charge or refund; "" for the order itself
	promise     string // the message that keeps what was promised, while the order is CREATED
	status      string // what it said of the order
	amount      Money
	where       string
	role        string
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
	case isRow(r, "orders"), isRow(r, "payment_records"), isRow(r, "refunds") && r.Change.Database == shopDB:
		order := r.Change.Text("order_no")
		e.verifyAll(order, r)
		if e.old != nil && e.old.Text("order_no") != order {
			e.verifyAll(e.old.Text("order_no"), r)
		}
	}
}

func (e *Evidence) verifyAll(order string, r *sim.Record) {
	for _, a := range e.acks[order] {
		e.verify(a, r)
	}
}

// ackOf reads an acknowledgement from an answer, if it is one.
func (e *Evidence) ackOf(r *sim.Record) (ack, bool) {
	request := e.requests[r.Message.Exchange]
	if request == nil {
		return ack{}, false
	}
	asked, said := parse(request), parse(r.Message)
	a := ack{order: cmp.Or(asked.OrderNo, said.OrderNo), status: said.Status, where: e.at(r), role: r.Message.Kind, amount: asked.amount()}
	switch r.Message.Kind {
	case "create":
		if said.AmountCents != 0 {
			a.amount = said.amount()
		}
		return a, true
	case "callback":
		a.txn = asked.txn()
		return a, asked.takesMoney()
	case "ask-refund":
		a.refund, a.amount, a.status = said.RefundNo, said.amount(), ""
		return a, a.refund != ""
	case "cancel":
		a.promise, a.amount = "cancel "+a.order, e.price(a.order)
		return a, true
	}
	return ack{}, false
}

// verify fails if the rows contradict what was acknowledged.
func (e *Evidence) verify(a ack, r *sim.Record) {
	lost := e.lost(a)
	if lost == "" {
		return
	}
	when, roles := "but at "+e.at(r), a.role+", undone by "+sim.Role(r.Task)
	if r.Event == sim.EventAnswer {
		when, roles = "and even then", a.role+", untrue at once"
	}
	e.fail(Failure{Order: a.order, Stake: a.amount, Roles: roles, Message: fmt.Sprintf(
		"order %s: %q was acknowledged at %s, %s %s: %s at stake", a.order, strings.TrimSpace(a.role+" "+a.status), a.where, when, lost, a.amount)})
}

// lost tells what is missing of what was acknowledged, "" if nothing is.
func (e *Evidence) lost(a ack) string {
	order := e.orders[a.order]
	if order == nil {
		return "there is no such order"
	}
	booked, name := order, "it"
	switch {
	case a.txn != "":
		booked, name = e.records[a.txn], "charge "+a.txn
	case a.refund != "":
		booked, name = e.accounts.intents[a.refund], "refund "+a.refund
	}
	switch status := order.Text("status"); {
	case booked == nil:
		return fmt.Sprintf("%s of %s is not in the books", name, a.amount)
	case booked.Text("order_no") != a.order:
		return fmt.Sprintf("%s is in the books of order %s", name, booked.Text("order_no"))
	case amountOf(booked) != a.amount:
		return fmt.Sprintf("%s is in the books with %s", name, amountOf(booked))
	case a.status == "PAID" && status != "PAID" && status != "REFUNDING" && status != "REFUNDED":
		return "it is " + status
	case a.promise != "" && status == "CREATED" && e.accounts.messages[a.promise] == nil:
		return "it is CREATED, and no message was committed that changes that"
	}
	return ""
}

// observeNoCallInTransaction finds a request that leaves while its task holds a
// transaction open: the lock then lasts as long as somebody else likes.
func observeNoCallInTransaction(e *Evidence, r *sim.Record) {
	if r.Event != sim.EventSend || !r.OpenTx {
		return
	}
	sent := parse(r.Message)
	order := cmp.Or(sent.OrderNo, r.Message.Key)
	stake := e.price(order)
	if sent.AmountCents != 0 {
		stake = sent.amount()
	}
	e.fail(Failure{Order: order, Stake: stake, Roles: sim.Role(r.Task) + " calls " + r.Message.Kind, Message: fmt.Sprintf(
		"order %s of %s: %s was sent to %s at %s inside an open transaction: every order of this database waits for the other side's answer",
		order, stake, r.Message.Kind, r.Message.To, e.at(r))})
}
