package checker

import (
	"fmt"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// gap is a difference between two of these: our books, themselves, and the channels'
// bills.
type gap struct {
	kind, subject string
	order         string
	money         Money
	sure          bool          // it was there when reconciliation has looked last
	says          string        // what differs, or which side lacks what the other has
	rows          []*sim.Change // those that it is between
}

const (
	// dayGrace is by how much a channel's clock may differ from ours: so close to its end, a
	// day's charges are looked for with those of the next.
	dayGrace = 5 * 60 * 1000
	// refundGrace is how long a refund may follow its charge, by message.
	refundGrace = 10 * 60 * 1000
)

// books are all rows that differences are between, as they stand.
type books struct {
	*Evidence
	bills  map[string]*sim.Change // first rows of the channels' bills, by channel, kind and number
	back   map[string]int64       // what goes back of each charge, as our refunds say
	done   map[string]int64       // what has gone back of it
	giving map[string]bool        // charges of which a refund was made, failed or not
	found  []gap
}

// gaps returns all differences.
func (e *Evidence) gaps() []gap {
	b := &books{Evidence: e, bills: map[string]*sim.Change{}, back: map[string]int64{}, done: map[string]int64{}, giving: map[string]bool{}}
	for _, refund := range e.ourRefunds() {
		b.giving[txnOf(refund)] = true
		if refund.Text("state") != "FAILED" {
			b.back[txnOf(refund)] += refund.Int("amount_cents")
		}
		if refund.Text("state") == "SUCCEEDED" {
			b.done[txnOf(refund)] += refund.Int("amount_cents")
		}
	}
	for _, row := range e.ledgerRows("bill_rows") {
		b.compareBilled(row)
	}
	for _, record := range e.table("payment_records") {
		b.compareRecord(record)
	}
	for _, refund := range e.ourRefunds() {
		b.compareRefund(refund)
	}
	for _, order := range e.table("orders") {
		b.compareOrder(order)
	}
	return b.found
}

func (e *Evidence) ourRefunds() (ours []*sim.Change) {
	for _, refund := range e.table("refunds") {
		if refund.Database == shopDB {
			ours = append(ours, refund)
		}
	}
	return ours
}

func (b *books) differ(kind, subject, order string, m Money, sure bool, says string, rows ...*sim.Change) {
	b.found = append(b.found, gap{kind, subject, order, m, sure, says, rows})
}

// inBooks says whether our books were looked at since something about an order changed.
func (b *books) inBooks(order string) bool { return b.looks.changed[order] < b.looks.booksMs }

// billNumber is what a bill's row is known by.
func billNumber(row *sim.Change) string {
	if row.Text("kind") == "refund" {
		return row.Text("refund_no")
	}
	return row.Text("channel_txn")
}

// compareBilled looks for a bill's row in our books.
func (b *books) compareBilled(row *sim.Change) {
	channel, kind, number, order := row.Database, row.Text("kind"), billNumber(row), row.Text("order_no")
	name, day := channel+" "+kind+" "+number, b.looks.days[channel+"/"+row.Text("bill_date")]
	if b.bills[name] != nil {
		b.differ("bill-duplicate", channel+"/"+kind+"/"+number, order, amountOf(row), day != nil,
			fmt.Sprintf("the %s stands in %s, and again in %s", kind, sourceOf(b.bills[name]), sourceOf(row)), b.bills[name], row)
		return
	}
	b.bills[name] = row
	own, word, subject := b.ownOf(row), "record", channel+"/"+number
	if kind == "refund" {
		word = "refund"
	}
	refused := own == nil && b.looks.raised[[2]string{"charge-refused", subject}] > 0
	sure := day != nil && !refused && b.looks.changed[order] < day.atMs
	switch {
	case own != nil:
		if !saysTheSame(own, row) {
			b.differ(word+"-mismatch", subject, order, amountOf(row), sure && b.looks.changed[own.Text("order_no")] < day.atMs,
				differing(own, row, "order_no", "out_trade_no"), own, row)
		}
	case kind == "refund":
		if b.statusOf(order) == "REFUNDED" && !strings.HasPrefix(number, "R-") {
			subject = order // which misses it too
		}
		b.differ("refund-missing", subject, order, amountOf(row), sure, contentOf(row)+"; our refunds don't have it", row)
	default:
		b.differ("record-missing", subject, order, amountOf(row), sure && !b.mayCome(row, day), contentOf(row)+"; our records don't have it", row)
	}
}

// ownOf returns our row of what a bill's row tells, nil if we have none.
func (b *books) ownOf(row *sim.Change) *sim.Change {
	if row.Text("kind") == "charge" {
		return b.records[row.Database+" "+row.Text("channel_txn")]
	}
	if own := b.accounts.intents[row.Text("refund_no")]; own != nil && own.Text("channel") == row.Database {
		return own
	}
	return nil
}

func saysTheSame(own, billed *sim.Change) bool {
	return amountOf(own) == amountOf(billed) && own.Text("order_no") == billed.Text("order_no") && own.Text("out_trade_no") == billed.Text("out_trade_no")
}

// mayCome says whether a charge that a bill tells may have been on its way to us still.
func (b *books) mayCome(row *sim.Change, day *aDay) bool {
	attempt := b.attempts[row.Text("out_trade_no")]
	known := attempt != nil && attempt.Text("channel") == row.Database
	return known && !b.pays(row.Text("order_no"), row.Database+" "+row.Text("channel_txn")) && (!day.last || attempt.Get("next_query_ms") != nil)
}

// pays says whether a charge has paid an order, as the order says.
func (b *books) pays(order, txn string) bool {
	row := b.orders[order]
	return row != nil && paidBy(row) == txn
}

// paidBy names the charge that has paid an order.
func paidBy(order *sim.Change) string {
	return strings.TrimSpace(order.Text("paid_channel") + " " + order.Text("paid_txn"))
}

// compareRecord looks for a charge of ours in the bills, its order and its refunds.
func (b *books) compareRecord(record *sim.Change) {
	channel, txn, order := record.Text("channel"), record.Text("channel_txn"), record.Text("order_no")
	name, back := txnOf(record), b.back[txnOf(record)]
	if b.bills[channel+" charge "+txn] == nil && b.isBillDue(b.timeOf("charges", channel, "channel_txn", txn, "charged_ms"), channel) {
		b.differ("record-unbilled", channel+"/"+txn, order, amountOf(record), b.wasBilledUntil(channel, record.Int("recorded_ms"), order),
			contentOf(record)+"; no bill of "+channel+" has it", record)
	}
	refund, money := channel+"/R-"+channel+"-"+txn, amountOf(record)
	switch paid := b.pays(order, name); {
	case paid && back > money.Cents, !paid && back != 0 && back != money.Cents:
		b.differ("refund-mismatch", refund, order, money, b.inBooks(order),
			fmt.Sprintf("%s, and our refunds of it add up to %s", contentOf(record), Money{back, money.Currency}), record)
	case !paid && record.Text("disposition") != "applied" && !b.giving[name]:
		b.differ("refund-missing", refund, order, money, b.looks.changed[order]+refundGrace < b.looks.booksMs && !b.reinstate,
			contentOf(record)+"; it paid no order, and none of our refunds gives it back", record)
	}
}

// compareRefund looks for a refund of ours in the bills, and for its charge.
func (b *books) compareRefund(refund *sim.Change) {
	channel, number, order := refund.Text("channel"), refund.Text("refund_no"), refund.Text("order_no")
	if b.records[txnOf(refund)] == nil {
		b.differ("record-missing", channel+"/"+refund.Text("channel_txn"), order, amountOf(refund), b.inBooks(order), contentOf(refund)+"; its charge is in none of our records", refund)
	}
	if refund.Text("state") == "SUCCEEDED" && b.bills[channel+" refund "+number] == nil &&
		b.isBillDue(b.timeOf("refunds", channel, "refund_no", number, "accepted_ms"), channel) {
		b.differ("refund-unbilled", channel+"/"+number, order, amountOf(refund), b.wasBilledUntil(channel, refund.Int("done_ms"), order),
			contentOf(refund)+"; no bill of "+channel+" has it", refund)
	}
}

// compareOrder looks for the charge that has paid an order, and for its refunds.
func (b *books) compareOrder(order *sim.Change) {
	name, txn, price := order.Text("order_no"), paidBy(order), amountOf(order)
	subject := strings.Replace(txn, " ", "/", 1)
	switch record := b.records[txn]; {
	case txn == "":
	case record == nil:
		b.differ("record-missing", subject, name, price, b.inBooks(name), contentOf(order)+"; of the charge that paid it there is no record", order)
	case record.Text("order_no") != name || amountOf(record) != price:
		b.differ("record-mismatch", subject, name, price, b.inBooks(name), differing(order, record, "order_no"), order, record)
	}
	if order.Text("status") == "REFUNDED" && b.done[txn] != price.Cents {
		b.differ("refund-missing", name, name, price, b.inBooks(name),
			fmt.Sprintf("%s, and our refunds of it that are done add up to %s", contentOf(order), Money{b.done[txn], price.Currency}), order)
	}
}

// timeOf returns when a channel has taken a charge, or a refund; 0 if it has not.
func (b *books) timeOf(table, channel, column, number, time string) (ms int64) {
	for _, row := range b.tables[table] { // order-free: there is one
		if row.Database == channel && row.Text(column) == number {
			ms = row.Int(time)
		}
	}
	return ms
}

// isBillDue says whether the channel has made the bill in which something should stand; what
// it does not know will stand in none.
func (b *books) isBillDue(ms int64, channel string) bool {
	day, known := b.dayAt(channel, ms)
	return !known || ms == 0 || b.isBillMade(channel, day.name)
}

// wasBilledUntil says whether all bills up to a time have been compared since something
// about an order changed.
func (b *books) wasBilledUntil(channel string, ms int64, order string) bool {
	for _, day := range b.looks.days { // order-free: any will do
		from, until := day.row.Int("start_ms")-dayGrace, day.row.Int("end_ms")-dayGrace
		if day.row.Text("channel") == channel && day.complete && from <= ms && ms < until && b.looks.changed[order] < day.atMs {
			return true
		}
	}
	return false
}
