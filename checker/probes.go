package checker

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Probe is an interesting place that a run may come to. They are counted, so that a
// sweep which proves nothing can be told from one that does.
type Probe struct {
	Name string
	// Optional says why a sweep need not come there; "" if it must.
	Optional string

	at   []place
	seen sight
}

// place says which records a probe looks at: those of an event, about a table, a kind
// of message, or a statement that has met no row.
type place struct {
	event sim.Event
	of    string
}

// sight says whether a record of that place shows what a probe counts.
type sight func(*Evidence, *sim.Record) bool

// Probes returns all probes, in the order of the docs.
func Probes() []Probe { return slices.Clone(probes) }

// probes are all there are. The list is never changed.
var probes = []Probe{
	// An order's life.
	{Name: "order paid", at: rows("orders"), seen: becomes("status", "PAID")},
	{Name: "paid at the last moment", at: rows("charges"), seen: nearDeadline},
	{Name: "charged after the close", at: rows("charges"), seen: both(isNew, ofOrder("CLOSED"))},
	{Name: "money taken later", at: rows("charges"), seen: by("settle-charge")},
	{Name: "failed try before the charge", at: rows("charges"), seen: afterDecline},
	{Name: "paid on two channels", at: rows("payment_records"), seen: onTwoChannels},
	{Name: "one number on two channels", at: rows("payment_records"), seen: sameNumber},
	{Name: "late success", at: rows("payment_records"), seen: becomes("disposition", "late")},
	{Name: "surplus charge", at: rows("payment_records"), seen: becomes("disposition", "surplus")},
	{Name: "reinstated", at: rows("order_status_log"), seen: becomes("cause", "reinstate")},
	{Name: "order past midnight", at: rows("orders"), seen: pastMidnight},

	// Creating.
	{Name: "create repeated", at: answers("create"), seen: status(200)},
	{Name: "created without a prepay token", at: answers("create"), seen: status(202)},
	{Name: "second attempt", at: rows("payment_orders"), seen: both(isNew, isSecond)},
	{Name: "second attempt on one channel", at: rows("payment_orders"), seen: both(isNew, isAgain)},
	{Name: "attempt refused", at: answers("attempt"), seen: says("order_not_payable")},
	{Name: "idempotency key replayed", at: answers("create", "attempt", "cancel", "ask-refund"), seen: isReplayed},
	{Name: "idempotency key in flight", at: answers("create", "attempt", "cancel", "ask-refund"), seen: says("idempotency_in_flight")},
	{Name: "idempotency key reused", at: answers("create", "attempt", "cancel", "ask-refund"), seen: says("idempotency_key_reused")},
	{Name: "order number reused", at: answers("create"), seen: says("order_conflict")},
	{Name: "idempotency key taken over", at: rows("idempotency_keys"), seen: changes("owner")},

	// How a charge is heard of.
	{Name: "callback repeated", at: answers("callback"), seen: isRepeated},
	{Name: "callback before prepay's answer", at: requests("callback"), seen: beforeToken},
	{Name: "callback to the other shop", at: requests("callback"), seen: toOtherShop},
	{Name: "callback refused as stale", at: answers("callback"), seen: both(status(401), not(isForged)), Optional: "it takes two clocks that are wrong by minutes, or a delay and one"},
	{Name: "forged notice refused", at: answers("callback", "refund-callback"), seen: both(isForged, not(status(200)))},
	{Name: "charge of another order refused", at: answers("callback"), seen: says("transaction_conflict")},
	{Name: "notice that names no trade", at: requests("callback"), seen: namesNoTrade},
	{Name: "notice that takes no money", at: requests("callback"), seen: takesNoMoney},
	{Name: "pending query found the charge", at: rows("payment_records"), seen: both(isNew, by("pending-query"))},
	{Name: "closer found the charge", at: rows("payment_records"), seen: both(isNew, by("close-scan", "close-due", "expired close", "cancel"))},
	{Name: "query lagged behind the ledger", at: answers("query"), seen: lags},
	{Name: "query knew of no trade", at: answers("query"), seen: status(404)},

	// Closing.
	{Name: "order closed", at: rows("orders"), seen: becomes("status", "CLOSED")},
	{Name: "closed by scan", at: rows("orders"), seen: both(becomes("close_reason", "deadline"), by("close-scan"))},
	{Name: "closed by message", at: rows("orders"), seen: both(becomes("close_reason", "deadline"), by("close-due"))},
	{Name: "closed by expiry", at: rows("orders"), seen: both(becomes("close_reason", "deadline"), by("expired close"))},
	{Name: "close answered paid", at: answers("close"), seen: either(says("ORDERPAID"), says("TRADE_HAS_SUCCESS"))},
	{Name: "close lost the race", at: misses("MarkOrderClosed"), seen: both(not(ofOrder("CREATED")), not(ofOrder("CLOSED")))},
	{Name: "two closers of one order", at: misses("MarkOrderClosed"), seen: ofOrder("CLOSED")},
	{Name: "cancelled", at: rows("orders"), seen: becomes("close_reason", "cancelled")},
	{Name: "cancel not decided yet", at: answers("cancel"), seen: status(202)},
	{Name: "cancel of a paid order", at: answers("cancel"), seen: says("order_not_cancellable")},

	// Refunds.
	{Name: "partial refund", at: rows("refunds"), seen: both(isOurs, becomes("state", "SUCCEEDED"), isPartial)},
	{Name: "full refund", at: rows("orders"), seen: becomes("status", "REFUNDED")},
	{Name: "late charge returned", at: rows("refunds"), seen: both(isOurs, becomes("state", "SUCCEEDED"), has("cause", "late"))},
	{Name: "surplus charge returned", at: rows("refunds"), seen: both(isOurs, becomes("state", "SUCCEEDED"), has("cause", "surplus"))},
	{Name: "refund retried", at: rows("outbox"), seen: both(has("kind", "refund"), changes("tries"), isRetried)},
	{Name: "refund refused for now", at: answers("refund"), seen: status(429)},
	{Name: "refund told before its reply", at: rows("refunds"), seen: both(isOurs, becomes("state", "SUCCEEDED"), was("state", "REQUESTED"), by("refund-callback"))},
	{Name: "refund found by query", at: rows("refunds"), seen: both(isOurs, becomes("state", "SUCCEEDED"), by("refund-query"))},
	{Name: "refund accepted then abnormal", at: rows("refunds"), seen: both(isOurs, becomes("channel_state", "ABNORMAL"), was("state", "ACCEPTED"))},
	{Name: "abnormal refund arrived after all", at: rows("refunds"), seen: both(isOurs, becomes("state", "SUCCEEDED"), was("channel_state", "ABNORMAL"))},
	{Name: "refund number reused", at: answers("ask-refund"), seen: says("refund_conflict")},
	{Name: "refund of too much refused", at: answers("ask-refund"), seen: says("refund_exceeds_paid")},

	// Stock and the outbox.
	{Name: "out of stock", at: answers("freeze"), seen: says("out_of_stock")},
	{Name: "closed for want of stock", at: rows("orders"), seen: becomes("close_reason", "out_of_stock")},
	{Name: "stock released before it was frozen", at: rows("stock_journal"), seen: both(has("movement", "release"), has("sku", ""))},
	{Name: "stock frozen after it was released", at: answers("freeze"), seen: says("order_released"), Optional: "it takes a freeze that is under way for as long as its order lives"},
	{Name: "stock release delivered by the outbox", at: rows("outbox"), seen: both(has("kind", "stock-release"), becomes("state", "DELIVERED"))},
	{Name: "other trade closed by the outbox", at: rows("outbox"), seen: both(has("kind", "channel-close"), becomes("state", "DELIVERED"))},
	{Name: "outbox retried", at: rows("outbox"), seen: both(becomes("state", "DELIVERED"), isRetried)},
	{Name: "outbox message taken over", at: rows("outbox"), seen: both(changes("tries"), isRetried, has("last_error", ""))},
	{Name: "outbox message claimed by another", at: misses("ClaimMessage"), seen: always},
	{Name: "outbox message parked", at: rows("outbox"), seen: becomes("state", "PARKED"), Optional: "it takes an outage of hours"},

	// Several instances, and what happens to them.
	{Name: "lease taken by another", at: events(sim.EventLease), seen: detail(sim.LeaseTaken)},
	{Name: "lease of two owners", at: events(sim.EventLease), seen: detail(sim.LeaseShared)},
	{Name: "lease expired in mid-job", at: events(sim.EventLease), seen: detail(sim.LeaseLost)},
	{Name: "lost lease fenced off", at: misses("PassFence"), seen: always, Optional: "it takes a stall of one statement, longer than a lease"},
	{Name: "waited for a lock", at: events(sim.EventBusy), seen: always},
	{Name: "waited for a lock in vain", at: []place{{sim.EventSQL, locked}}, seen: always},
	{Name: "crash inside a transaction", at: events(sim.EventCrash), seen: inside},
	{Name: "crash just after a commit", at: events(sim.EventCrash), seen: atStep("/COMMIT", ":after")},
	{Name: "crash in recovery", at: events(sim.EventCrash), seen: atStep("/boot#", "")},
	{Name: "commit whose outcome was lost, committed", at: events(sim.EventFault), seen: both(detail("lost"), atStep("COMMIT", ":after"))},
	{Name: "commit whose outcome was lost, not committed", at: events(sim.EventFault), seen: both(detail("lost"), atStep("COMMIT", ":before"))},

	// Reconciliation.
	{Name: "bill not ready", at: answers("bill"), seen: status(409)},
	{Name: "bill fetched", at: rows("bill_days"), seen: becomes("state", "FETCHED")},
	{Name: "charge missing in the bill", at: rows("alerts"), seen: has("kind", "record-unbilled")},
	{Name: "charge only in the bill", at: rows("alerts"), seen: has("kind", "record-missing")},
	{Name: "bill with another amount", at: rows("alerts"), seen: has("kind", "record-mismatch")},
}

// probesAt are the probes, by their number, that look at a record.
var probesAt = func() map[place][]int {
	at := map[place][]int{}
	for i := range probes {
		for _, p := range probes[i].at {
			at[p] = append(at[p], i)
		}
	}
	return at
}()

// Probes returns how often the run came to each.
func (e *Evidence) Probes() map[string]int {
	counts := make(map[string]int, len(probes))
	for i, n := range e.reached {
		counts[probes[i].Name] = n
	}
	return counts
}

// probe counts what a record shows. Most records are statements that met rows: no
// probe looks at them.
func (e *Evidence) probe(r *sim.Record) {
	p, ok := placeOf(r)
	if !ok {
		return
	}
	for _, i := range probesAt[p] {
		if probes[i].seen(e, r) {
			e.reached[i]++
		}
	}
}

// locked stands for the statements that have waited for a lock in vain.
const locked = "database is locked"

func placeOf(r *sim.Record) (p place, ok bool) {
	p.event = r.Event
	switch {
	case r.Change != nil:
		p.of = r.Change.Table
	case r.Event == sim.EventSQL:
		return statementOf(r)
	case r.Message != nil:
		p.of = r.Message.Kind
		return p, r.Event == sim.EventAnswer || r.Event == sim.EventDeliver && r.Message.Leg == sim.Request
	}
	return p, true
}

func statementOf(r *sim.Record) (place, bool) {
	switch r.Detail {
	case "0 rows":
		name, _, _ := strings.Cut(r.Op, "#")
		name, _, _ = strings.Cut(name, "(")
		return place{sim.EventSQL, name}, true
	case "error: " + locked:
		return place{sim.EventSQL, locked}, true
	}
	return place{}, false
}

func rows(table string) []place { return []place{{sim.EventRow, table}} }

func events(event sim.Event) []place { return []place{{event, ""}} }

// misses are the times when a statement met no row.
func misses(statement string) []place { return []place{{sim.EventSQL, statement}} }

// requests are the arrivals of requests of a kind.
func requests(kind string) []place { return []place{{sim.EventDeliver, kind}} }

// answers are the answers to requests of some kinds, as they leave.
func answers(kinds ...string) (at []place) {
	for _, kind := range kinds {
		at = append(at, place{sim.EventAnswer, kind})
	}
	return at
}

func always(*Evidence, *sim.Record) bool { return true }

func both(sights ...sight) sight {
	return func(e *Evidence, r *sim.Record) bool {
		return !slices.ContainsFunc(sights, func(s sight) bool { return !s(e, r) })
	}
}

func either(a, b sight) sight {
	return func(e *Evidence, r *sim.Record) bool { return a(e, r) || b(e, r) }
}

func not(s sight) sight { return func(e *Evidence, r *sim.Record) bool { return !s(e, r) } }

// Of rows:

func isNew(e *Evidence, r *sim.Record) bool { return e.old == nil && !r.Change.Deleted() }

func isOurs(_ *Evidence, r *sim.Record) bool { return r.Change.Database == shopDB }

func has(column, value string) sight {
	return func(_ *Evidence, r *sim.Record) bool { return !r.Change.Deleted() && r.Change.Text(column) == value }
}

func was(column, value string) sight {
	return func(e *Evidence, _ *sim.Record) bool { return e.old != nil && e.old.Text(column) == value }
}

func becomes(column, value string) sight { return both(has(column, value), not(was(column, value))) }

// changes says that a row has another value than before.
func changes(column string) sight {
	return func(e *Evidence, r *sim.Record) bool {
		return e.old != nil && !r.Change.Deleted() && e.old.Get(column) != r.Change.Get(column)
	}
}

// by says that the task is one of these, by its name without key and count.
func by(roles ...string) sight {
	return func(_ *Evidence, r *sim.Record) bool { return slices.Contains(roles, sim.Role(r.Task)) }
}

func isSecond(_ *Evidence, r *sim.Record) bool { return r.Change.Int("attempt") == 2 }

// isAgain says that an attempt is not the order's first on its channel.
func isAgain(e *Evidence, r *sim.Record) bool {
	return e.any("payment_orders", func(row *sim.Change) bool {
		return row.Text("order_no") == r.Change.Text("order_no") && row.Text("channel") == r.Change.Text("channel") && row.Int("attempt") < r.Change.Int("attempt")
	})
}

func isRetried(_ *Evidence, r *sim.Record) bool { return r.Change.Int("tries") > 1 }

func isPartial(_ *Evidence, r *sim.Record) bool {
	return r.Change.Int("amount_cents") < r.Change.Int("total_cents")
}

// ofOrder says that the order that a record is about has the status.
func ofOrder(status string) sight {
	return func(e *Evidence, r *sim.Record) bool { return e.statusOf(orderIn(r)) == status }
}

// orderIn returns the order that a row names, or else a statement or its task.
func orderIn(r *sim.Record) string {
	if r.Change != nil {
		return r.Change.Text("order_no")
	}
	if key := keyOf(r.Op); key != "" {
		return key
	}
	return keyOf(r.Task)
}

// lastMoment is how close to an order's deadline its last moment is, in milliseconds.
const lastMoment = 1000

func nearDeadline(e *Evidence, r *sim.Record) bool {
	order := e.orders[r.Change.Text("order_no")]
	return isNew(e, r) && order != nil && abs(order.Int("deadline_ms")-r.Change.Int("charged_ms")) <= lastMoment
}

func afterDecline(e *Evidence, r *sim.Record) bool {
	return isNew(e, r) && e.any("trades", func(trade *sim.Change) bool {
		return trade.Database == r.Change.Database && trade.Text("out_trade_no") == r.Change.Text("out_trade_no") && trade.Int("declined") > 0
	})
}

func onTwoChannels(e *Evidence, r *sim.Record) bool {
	return isNew(e, r) && e.any("payment_records", func(other *sim.Change) bool {
		return other.Text("order_no") == r.Change.Text("order_no") && other.Text("channel") != r.Change.Text("channel")
	})
}

func sameNumber(e *Evidence, r *sim.Record) bool {
	return isNew(e, r) && e.any("payment_records", func(other *sim.Change) bool {
		return other.Text("channel_txn") == r.Change.Text("channel_txn") && other.Text("channel") != r.Change.Text("channel")
	})
}

// any says whether a table has such a row.
func (e *Evidence) any(table string, is func(*sim.Change) bool) bool {
	for _, row := range e.tables[table] { // order-free: any will do
		if is(row) {
			return true
		}
	}
	return false
}

// pastMidnight says that an order's status changes on another day than it was made.
func pastMidnight(e *Evidence, r *sim.Record) bool {
	if e.old == nil || e.old.Text("status") == r.Change.Text("status") {
		return false
	}
	zone := e.trace.Start.Location()
	made := time.UnixMilli(r.Change.Int("created_ms")).In(zone)
	return made.YearDay() != e.trace.Start.Add(r.At).YearDay()
}

// Of messages:

func status(code int) sight {
	return func(_ *Evidence, r *sim.Record) bool { return r.Message.Status == code }
}

// says looks for a word in what was answered.
func says(word string) sight {
	quoted := []byte(`"` + word + `"`)
	return func(_ *Evidence, r *sim.Record) bool { return bytes.Contains(r.Message.Body, quoted) }
}

func isReplayed(_ *Evidence, r *sim.Record) bool {
	return r.Message.Header.Get("Idempotency-Replayed") != ""
}

// isRepeated says that a charge is acknowledged that was before.
func isRepeated(e *Evidence, r *sim.Record) bool {
	a, ok := e.ackOf(r)
	times := 0
	for _, other := range e.acks[a.order] {
		if other.txn == a.txn {
			times++
		}
	}
	return ok && r.Message.Status/100 == 2 && times > 1
}

func beforeToken(e *Evidence, r *sim.Record) bool {
	notice := parse(r.Message)
	return notice.takesMoney() && e.any("payment_orders", func(attempt *sim.Change) bool {
		return attempt.Text("out_trade_no") == notice.OutTradeNo && attempt.Text("prepay_token") == ""
	})
}

func toOtherShop(e *Evidence, r *sim.Record) bool {
	home := e.homes[parse(r.Message).OrderNo]
	return home != "" && home != r.Node
}

func isForged(e *Evidence, r *sim.Record) bool { return e.doubts[taskOf(r)].forged }

func takesNoMoney(_ *Evidence, r *sim.Record) bool { return !parse(r.Message).takesMoney() }

func namesNoTrade(_ *Evidence, r *sim.Record) bool { return parse(r.Message).OutTradeNo == "" }

// lags says that a channel has taken money for a trade, and does not tell so yet.
func lags(e *Evidence, r *sim.Record) bool {
	said := parse(r.Message)
	return said.State == "NOTPAY" && e.any("charges", func(charge *sim.Change) bool {
		return charge.Database == r.Node && charge.Text("out_trade_no") == said.OutTradeNo
	})
}

// Of what happens to a process:

func detail(text string) sight {
	return func(_ *Evidence, r *sim.Record) bool { return r.Detail == text }
}

func inside(_ *Evidence, r *sim.Record) bool { return r.OpenTx }

func atStep(part, end string) sight {
	return func(_ *Evidence, r *sim.Record) bool {
		return strings.Contains(r.Op, part) && strings.HasSuffix(r.Op, end)
	}
}
