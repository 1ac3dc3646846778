package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// The order database and the stock service's; every other database with charges is a
// channel's ledger, named like the channel.
const (
	shopDB  = "shop"
	stockDB = "stock"
)

// ledgerRows returns the rows of a table in all ledgers, in a fixed order.
func (e *Evidence) ledgerRows(table string) []*sim.Change {
	var rows []*sim.Change
	for _, row := range e.table(table) {
		if row.Database != shopDB && row.Database != stockDB {
			rows = append(rows, row)
		}
	}
	return rows
}

// returned is what the channels have given back of each charge, for good.
func (e *Evidence) returned() map[string]int64 {
	back := map[string]int64{}
	for _, refund := range e.ledgerRows("refunds") {
		if refund.Text("state") == "SUCCESS" {
			back[chargeOf(refund)] += refund.Int("amount_cents")
		}
	}
	return back
}

// chargeOf names the channel transaction that a ledger's row is about, as txnOf does
// for ours.
func chargeOf(row *sim.Change) string { return row.Database + " " + row.Text("channel_txn") }

// endNoOrphanMoney follows each charge of the ledgers to its end: it has paid its
// order, or it has gone back whole. Where it has paid the order, the order says whether it
// has gone back.
func endNoOrphanMoney(e *Evidence) {
	back := e.returned()
	for _, charge := range e.ledgerRows("charges") {
		order, txn, amount := charge.Text("order_no"), chargeOf(charge), amountOf(charge)
		row, returned := e.orders[order], Money{back[txn], amount.Currency}
		status, pays := e.statusOf(order), row != nil && paidBy(row) == txn
		whole, roles, what := returned == amount, "charge of an order "+status, "which did not pay it"
		if pays && status != "CLOSED" {
			roles, what = "paying "+roles, "which did pay it"
			if whole == (status == "REFUNDED") { // what it gave back of it besides is refund-bounded's
				continue
			}
		} else if whole || e.isStranded(txn) {
			continue
		}
		stake := Money{abs(amount.Cents - returned.Cents), amount.Currency}
		if whole { // its goods are given away
			stake = amount
		}
		e.fail(Failure{Order: order, Stake: stake, Roles: roles, Message: fmt.Sprintf(
			"order %s is %s, its buyer was charged %s with %s, %s, and %s", order, status, amount, txn, what, backTold(returned))},
			charge, e.records[txn], row)
	}
}

func backTold(returned Money) string {
	if returned.Cents == 0 {
		return "nothing of it went back"
	}
	return fmt.Sprintf("%s of it went back", returned)
}

func abs(n int64) int64 { return max(n, -n) }

func (e *Evidence) statusOf(order string) string {
	if row := e.orders[order]; row != nil {
		return row.Text("status")
	}
	return "unknown"
}

// observeBooksMatchChannel finds a refund that our books take for done before the channel
// has done it: what it has accepted may still fail. By the end nobody can tell any more.
func observeBooksMatchChannel(e *Evidence, r *sim.Record) {
	row := r.Change
	if isRow(r, "orders") && row.Text("status") == "REFUNDED" && (e.old == nil || e.old.Text("status") != "REFUNDED") {
		e.atCommit(func(by *sim.Record) { e.judgeRefunded(row, by) })
	}
	if isRow(r, "trades") && e.old == nil {
		e.judgeTrade(r)
	}
	if !isRow(r, "refunds") || row.Database != shopDB || row.Text("state") != "SUCCEEDED" || e.old != nil && e.old.Text("state") == "SUCCEEDED" {
		return
	}
	name, said := row.Text("channel")+" "+row.Text("refund_no"), "nothing of it"
	if refund := e.accounts.executed[row.Text("refund_no")]; refund != nil && refund.Database == row.Text("channel") {
		said = refund.Text("state")
	}
	if said != "SUCCESS" {
		e.differ(row.Text("order_no"), amountOf(row), "refund that is not done yet by "+sim.Role(r.Task), fmt.Sprintf(
			"refund %s of %s is done in our books at %s, and the channel says %s", name, amountOf(row), e.at(r), said))
	}
}

// judgeTrade finds a trade that its channel is to charge otherwise than our order is for.
func (e *Evidence) judgeTrade(r *sim.Record) {
	trade, order := r.Change, e.orders[r.Change.Text("order_no")]
	if order == nil {
		return
	}
	what := ""
	switch price, until := amountOf(order), trade.Int("time_expire_ms"); {
	case amountOf(trade) != price:
		what = fmt.Sprintf("%s, and the order is for %s", amountOf(trade), price)
	case until != 0 && until != order.Int("deadline_ms"):
		shown := func(ms int64) string { return e.trace.Clock(time.UnixMilli(ms).Sub(e.trace.Start)) }
		what = fmt.Sprintf("%s until %s, and the order waits until %s", amountOf(trade), shown(until), shown(order.Int("deadline_ms")))
	default:
		return
	}
	name := order.Text("order_no")
	e.differ(name, amountOf(order), "trade of other terms by "+sim.Role(r.Task), fmt.Sprintf("trade %s of %s is of %s", trade.Text("out_trade_no"), trade.Database, what))
}

// judgeRefunded finds an order that our books take for refunded before its channel has given
// back all of what has paid it.
func (e *Evidence) judgeRefunded(order *sim.Change, by *sim.Record) {
	name, price, back := order.Text("order_no"), amountOf(order), e.returned()[paidBy(order)]
	if back >= price.Cents {
		return
	}
	e.fail(Failure{Order: name, Stake: Money{price.Cents - back, price.Currency}, Seq: by.Seq, Roles: "order that is not refunded yet by " + sim.Role(by.Task), Message: fmt.Sprintf(
		"order %s of %s is REFUNDED since %s, and %s has given back %s of it", name, price, e.at(by), order.Text("paid_channel"), Money{back, price.Currency})})
}

// endBooksMatchChannel compares our books with the ledgers, charge by charge and
// refund by refund, in both directions.
func endBooksMatchChannel(e *Evidence) {
	ledger := map[string]*sim.Change{}
	for _, charge := range e.ledgerRows("charges") {
		ledger[chargeOf(charge)] = charge
		record := e.records[chargeOf(charge)]
		switch order := charge.Text("order_no"); {
		case record == nil:
			e.differ(order, amountOf(charge), "charge not in our books", fmt.Sprintf("charge %s of %s is not in our books", chargeOf(charge), amountOf(charge)), charge)
		case amountOf(record) != amountOf(charge):
			e.differ(order, amountOf(charge), "charge with another amount", fmt.Sprintf("charge %s is %s for the channel and %s in our books", chargeOf(charge), amountOf(charge), amountOf(record)), record)
		}
	}
	for _, record := range e.table("payment_records") {
		if ledger[txnOf(record)] == nil {
			e.differ(record.Text("order_no"), amountOf(record), "charge that no channel knows", fmt.Sprintf("charge %s of %s is in our books, and no channel knows it", txnOf(record), amountOf(record)), record)
		}
	}
	e.compareRefunds()
	e.compareDispositions()
}

func (e *Evidence) differ(order string, stake Money, roles, message string, about ...*sim.Change) {
	e.fail(Failure{Order: order, Stake: stake, Roles: roles, Message: "order " + order + ": " + message}, about...)
}

// compareRefunds holds what has become of each of the ledgers' refunds against what our
// books say of it. What our books have given back is also compared when they say so.
func (e *Evidence) compareRefunds() {
	for _, refund := range e.ledgerRows("refunds") {
		name, state := refund.Database+" "+refund.Text("refund_no"), refund.Text("state")
		own := e.accounts.intents[refund.Text("refund_no")]
		if own != nil && own.Text("channel") != refund.Database {
			own = nil
		}
		switch {
		case state == "SUCCESS" && (own == nil || own.Text("state") != "SUCCEEDED" || amountOf(own) != amountOf(refund)):
			e.differ(refund.Text("order_no"), amountOf(refund), "refund that our books don't have", fmt.Sprintf("the channel gave back %s with %s, and our books don't have it so", amountOf(refund), name), refund)
		case own != nil && (state == "CLOSED" || state == "ABNORMAL") && own.Text("channel_state") != state:
			e.differ(refund.Text("order_no"), amountOf(refund), "refund that is "+state, fmt.Sprintf(
				"%s of %s is %s for the channel, and %s in our books", name, amountOf(refund), state, strings.TrimSpace(own.Text("state")+" "+own.Text("channel_state"))), refund)
		}
	}
}

// compareDispositions holds what our books say of each charge against what became of
// its order: one that paid it, and no other, is applied.
func (e *Evidence) compareDispositions() {
	for _, record := range e.table("payment_records") {
		order := e.orders[record.Text("order_no")]
		if order == nil {
			continue
		}
		paid := order.Text("paid_channel")+" "+order.Text("paid_txn") == txnOf(record)
		if paid == isApplied(record) || paid && e.reinstate {
			continue
		}
		e.differ(record.Text("order_no"), amountOf(record), "disposition "+record.Text("disposition"), fmt.Sprintf(
			"charge %s of %s is booked as %s, but the order is %s by %s", txnOf(record), amountOf(record), record.Text("disposition"),
			order.Text("status"), order.Text("paid_channel")+" "+order.Text("paid_txn")), record)
	}
}

// NeverRests says that the run was ended because it went on and on: after so many steps
// it is not to be expected that it comes to rest.
func (e *Evidence) NeverRests(steps int) { e.restless = steps }

// busyRecords is how many of the last records tell who keeps a run from coming to rest.
const busyRecords = 1000

// failRestless tells who keeps the run going, and what waits.
func (e *Evidence) failRestless() {
	last := e.trace.Records[max(0, len(e.trace.Records)-busyRecords):]
	counts := map[string]int{}
	for i := range last {
		counts[sim.Role(last[i].Task)+" on "+last[i].Node]++
	}
	busiest := slices.MaxFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
	waiting, stake := e.waiting()
	e.fail(Failure{Order: e.dearestWaiting(), Stake: stake, Roles: "endless " + busiest, Message: fmt.Sprintf(
		"after %d steps nothing has come to rest: %d of the last %d records are by %s; what waits is worth %s: %s",
		e.restless, counts[busiest], len(last), busiest, stake, waiting)})
}

// mostWaiting is how many rows that wait are named.
const mostWaiting = 8

// waiting names the rows that something has yet to become of, the orders first, and what
// these orders are worth.
func (e *Evidence) waiting() (names string, stake Money) {
	var told []string
	for _, row := range e.pendingRows() {
		told = append(told, subjectOf(row)+" ("+row.Table+" "+stateOf(row)+")")
		if row.Table == "orders" {
			stake = Money{stake.Cents + row.Int("amount_cents"), row.Text("currency")}
		}
	}
	if n := len(told) - mostWaiting; n > 0 {
		told = append(told[:mostWaiting], fmt.Sprintf("and %d more", n))
	}
	return cmp.Or(strings.Join(told, ", "), "nothing"), stake
}

// dearestWaiting is the order that waits for the most money, "" if none does that no hand
// has touched.
func (e *Evidence) dearestWaiting() (order string) {
	for _, row := range e.pendingRows() {
		if name := row.Text("order_no"); row.Table == "orders" && !e.touched(name) && amountOf(row).Cents > e.price(order).Cents {
			order = name
		}
	}
	return order
}

// pendingRows are those that must come to a final state and have not.
func (e *Evidence) pendingRows() (rows []*sim.Change) {
	for _, table := range []string{"orders", "payment_orders", "refunds", "outbox", "notifications"} {
		rows = append(rows, slices.DeleteFunc(e.table(table), func(row *sim.Change) bool { return !isPending(row) || e.waitsForPerson(row) })...)
	}
	return rows
}

// subjectOf is what a row is known by.
func subjectOf(row *sim.Change) string {
	return cmp.Or(row.Text("order_no"), row.Text("out_trade_no"), row.Text("kind")+" "+row.Text("message_key"))
}

// endFinallyTerminal finds what never came to an end.
func endFinallyTerminal(e *Evidence) {
	if e.restless > 0 {
		e.failRestless()
		return
	}
	for _, row := range e.pendingRows() {
		subject := subjectOf(row)
		message := fmt.Sprintf("%s: %s.%s is still %s when everything has come to rest", subject, row.Database, row.Table, stateOf(row))
		if amount := amountOf(row); amount.Cents > 0 {
			message = fmt.Sprintf("order %s: %s.%s of %s is still %s when everything has come to rest", subject, row.Database, row.Table, amount, stateOf(row))
		}
		e.fail(Failure{Order: subject, Stake: amountOf(row), Roles: row.Table + " " + stateOf(row), Message: message}, row)
	}
}
