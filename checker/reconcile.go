package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// looks are what reconciliation has looked at, and when. A look counts once it is over,
// with the time at which it began.
type looks struct {
	began   map[string]int64  // runs, by task
	booksMs int64             // the last at our own books
	claimed map[string]int64  // days, by channel/day: when a run took them on
	days    map[string]*aDay  // days whose bill was compared
	changed map[string]int64  // orders: when the last of their money or status changed
	raised  map[[2]string]int // alerts, by kind and subject
	asking  map[string]string // tasks that have asked for a bill, by exchange
	unready map[string]string // days whose bill was not ready: the task that was told so
}

// aDay is a look at a day's bill.
type aDay struct {
	row      *sim.Change // of bill_days
	atMs     int64
	complete bool // no earlier bill was missing
	last     bool // nothing of that day is on its way any more
}

func newLooks() looks {
	return looks{map[string]int64{}, 0, map[string]int64{}, map[string]*aDay{}, map[string]int64{}, map[[2]string]int{}, map[string]string{}, map[string]string{}}
}

const billNotReady = "bill-not-ready"

// observeGapFound follows what reconciliation looks at, and finds alerts of it that are
// not true, or that stand twice.
func observeGapFound(e *Evidence, r *sim.Record) {
	e.observeGuards(r)
	if r.Change == nil || r.Change.Database != shopDB {
		e.observeBill(r)
		return
	}
	switch row := r.Change; row.Table {
	case "orders", "payment_records", "refunds":
		if row.Deleted() || e.old == nil || row.Table != "refunds" || e.old.Text("state") != row.Text("state") {
			e.looks.changed[cmp.Or(row.Text("order_no"), e.oldText("order_no"))] = e.nowMs(r)
		}
	case "reconcile_jobs":
		if row.Text("job") == "reconcile" {
			e.looks.began[taskOf(r)] = e.nowMs(r)
		} else if began, ok := e.looks.began[taskOf(r)]; ok { // stock comes after the books
			e.looks.booksMs = began
		}
	case "bill_days":
		e.observeDay(r)
	case "alerts":
		if e.old == nil && !row.Deleted() {
			e.observeAlert(r)
		}
	}
}

// observeBill notes who is told that a bill is not ready, and lives to report it.
func (e *Evidence) observeBill(r *sim.Record) {
	switch m := r.Message; {
	case r.Event == sim.EventCrash:
		maps.DeleteFunc(e.looks.unready, func(day, task string) bool {
			return strings.HasPrefix(task, r.Node+"/") && e.looks.raised[[2]string{billNotReady, day}] == 0
		})
	case m == nil || m.Kind != "bill":
	case r.Event == sim.EventSend:
		e.looks.asking[r.Op] = taskOf(r)
	case r.Event == sim.EventDeliver && m.Leg == sim.Answer && refusal(m) == "BILL_NOT_READY" && !e.trouble.gone[m.Exchange]:
		var asked struct{ Date string }
		_ = json.Unmarshal(e.requests[m.Exchange].Body, &asked) // what is no JSON names no day
		e.looks.unready[m.From+"/"+asked.Date] = e.looks.asking[m.Exchange]
	}
}

func (e *Evidence) nowMs(r *sim.Record) int64 { return e.trace.Start.Add(r.At).UnixMilli() }

func (e *Evidence) oldText(column string) string {
	if e.old == nil {
		return ""
	}
	return e.old.Text(column)
}

// dayOf names a day, of a row of the shop.
func dayOf(row *sim.Change) string { return row.Text("channel") + "/" + row.Text("bill_day") }

// observeDay follows a day: a claim counts a try, and after a comparison the row changes
// without one.
func (e *Evidence) observeDay(r *sim.Record) {
	row := r.Change
	switch day := dayOf(row); {
	case e.old == nil || row.Deleted():
	case row.Int("tries") != e.old.Int("tries"):
		e.looks.claimed[day] = e.nowMs(r)
	case e.old.Text("state") != "WAITING":
		e.looks.days[day] = &aDay{row, e.looks.claimed[day], e.hasBillsUntil(row), row.Text("state") == "CHECKED"}
	}
}

// hasBillsUntil says whether no bill of a day's channel is missing, up to that day.
func (e *Evidence) hasBillsUntil(day *sim.Change) bool {
	return !e.any("bill_days", func(other *sim.Change) bool {
		return other.Text("channel") == day.Text("channel") && other.Text("state") == "WAITING" && other.Int("start_ms") <= day.Int("start_ms")
	})
}

// observeAlert judges an alert as it is raised. Guards of other flows raise alerts too;
// what reconciliation raises must be true then, unless its order has changed while it
// looked.
func (e *Evidence) observeAlert(r *sim.Record) {
	kind, subject := r.Change.Text("kind"), r.Change.Text("subject")
	e.looks.raised[[2]string{kind, subject}]++
	if e.looks.raised[[2]string{kind, subject}] > 1 {
		e.failAlert(r, e.aboutOf(subject), "reported twice", "is reported twice", "", nil)
	}
	if sim.Role(r.Task) != "reconcile" {
		return
	}
	switch kind {
	case billNotReady:
		if !e.isBillMissing(subject) {
			e.failAlert(r, subject, "invented", "is reported, and it could be had", "", nil)
		}
	case "status-mismatch", "order-missing", "attempt-mismatch", "record-surplus", "stock-mismatch":
		// Our books agree with themselves, unless a person has had a hand in them.
		if _, byHand := e.hands[e.aboutOf(subject)]; !byHand {
			rows := e.rowsAgainst(subject)
			e.failAlert(r, e.aboutOf(subject), "invented", "is reported, and nobody has changed anything by hand", e.truthOf(rows), rows)
		}
	default:
		e.judgeGap(r, kind, subject)
	}
}

func (e *Evidence) judgeGap(r *sim.Record, kind, subject string) {
	order, rows := e.aboutOf(subject), e.rowsAgainst(subject)
	roles, what, says := "invented", "is reported, and there is no such difference", e.truthOf(rows)
	for _, g := range e.gaps() {
		if g.kind != kind || g.subject != subject {
			continue
		}
		if g.money.Cents == r.Change.Int("amount_cents") {
			return
		}
		order, rows = g.order, g.rows
		roles, what, says = "with another amount", fmt.Sprintf("is reported, and is of %s", g.money), g.says
	}
	if e.looks.changed[order] < e.looks.began[taskOf(r)] {
		e.failAlert(r, order, roles, what, says, rows)
	}
}

// isBillMissing says whether a bill can't be had, or was asked for again and again.
func (e *Evidence) isBillMissing(day string) bool {
	const triesUntilAlert = 6
	channel, date, _ := strings.Cut(day, "/")
	return !e.isBillMade(channel, date) || e.any("bill_days", func(row *sim.Change) bool {
		return row.Database == shopDB && dayOf(row) == day && row.Int("tries") >= triesUntilAlert
	})
}

func (e *Evidence) isBillMade(channel, date string) bool {
	return e.any("bills", func(bill *sim.Change) bool { return bill.Database == channel && bill.Text("bill_date") == date })
}

// aboutOf returns the order that an alert's subject is about, the subject if it is none.
func (e *Evidence) aboutOf(subject string) string {
	if rows := e.rowsOf(subject); len(rows) > 0 {
		return rows[0].Text("order_no")
	}
	return subject
}

// rowsOf returns the rows that an alert's subject names: of our books, and of the bills.
func (e *Evidence) rowsOf(subject string) (rows []*sim.Change) {
	channel, number, _ := strings.Cut(subject, "/")
	for _, row := range []*sim.Change{e.orders[subject], e.attempts[subject], e.records[channel+" "+number], e.accounts.intents[number]} {
		if row != nil {
			rows = append(rows, row)
		}
	}
	for _, row := range e.ledgerRows("bill_rows") {
		if row.Database == channel && billNumber(row) == number {
			rows = append(rows, row)
		}
	}
	return rows
}

// rowsAgainst returns the rows by which an alert is judged: those that its subject names, and
// what the channel's ledger has of what stands in no bill.
func (e *Evidence) rowsAgainst(subject string) []*sim.Change {
	rows := e.rowsOf(subject)
	if n := len(rows); n > 0 && rows[n-1].Table == "bill_rows" {
		return rows
	}
	channel, number, _ := strings.Cut(subject, "/")
	if charge := e.accounts.charges[channel+" "+number]; charge != nil {
		rows = append(rows, charge)
	}
	if refund := e.accounts.executed[number]; refund != nil && refund.Database == channel {
		rows = append(rows, refund)
	}
	return rows
}

// failAlert reports an alert that should not be as it is: says tells what is true, by the rows
// that it is about.
func (e *Evidence) failAlert(r *sim.Record, order, roles, what, says string, rows []*sim.Change) {
	kind := r.Change.Text("kind")
	message := fmt.Sprintf("order %s: %s of %s for %s %s, at %s", order, kind, r.Change.Text("subject"), amountOf(r.Change), what, e.at(r))
	if says != "" {
		message += ": " + says
	}
	if detail := r.Change.Text("detail"); detail != "" {
		message += "; the alert says: " + detail
	}
	e.fail(Failure{Order: order, Stake: amountOf(r.Change), Seq: r.Seq, Roles: kind + " " + roles, Message: message}, rows...)
}

// endGapFound looks for what reconciliation should have said: of every difference that
// was there when it looked, and of rows that were changed by hand.
func endGapFound(e *Evidence) {
	for _, g := range e.gaps() {
		if g.sure && e.looks.raised[[2]string{g.kind, g.subject}] == 0 {
			e.fail(Failure{Order: g.order, Stake: g.money, Roles: g.kind + " not reported", Message: fmt.Sprintf(
				"order %s: %s of %s for %s was there when reconciliation looked, and was never reported: %s", g.order, g.kind, g.subject, g.money, g.says)}, g.rows...)
		}
	}
	e.missBills()
	e.missDays()
	e.missHands()
}

// missBills looks for what was said of bills that were not ready.
func (e *Evidence) missBills() {
	for _, day := range slices.Sorted(maps.Keys(e.looks.unready)) {
		task := e.looks.unready[day]
		if e.looks.raised[[2]string{billNotReady, day}] > 0 || e.trouble.upset[task] {
			continue
		}
		e.fail(Failure{Order: day, Roles: billNotReady + " not reported", Message: fmt.Sprintf(
			"the bill %s was not ready when %s asked for it, and that was never reported: nobody knows that a day's money is not compared yet", day, task)})
	}
}
