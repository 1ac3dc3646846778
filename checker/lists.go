package checker

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/tillstorm/tillstorm/sim"
)

// A list tells of each thing what was true at one time since the request, in its order,
// and leaves out nothing that was there when the request came.

// judgeList: the orders by number, those after the one that was asked for.
func (e *Evidence) judgeList(t told) wrong {
	if t.Status != 200 {
		return wrong{}
	}
	after, next := t.query("after"), t.said.text("next")
	listed := map[string]bool{}
	for _, order := range t.said.list("orders") {
		number := order.text("orderNo")
		if number <= after {
			return wrong{roles: "out of order", what: fmt.Sprintf("with order %s after %s", number, after), order: number}
		}
		if w := t.untrue(e.past.orders[number], func(then version) clash { return clashOf(order, then.row, orderFields) }); w.what != "" {
			w.order = number
			return w
		}
		listed[number], after = true, number
	}
	for _, number := range slices.Sorted(maps.Keys(e.past.orders)) {
		there := during(e.past.orders[number], t.from)
		gone := slices.ContainsFunc(there, func(w version) bool { return w.row == nil })
		if number > t.query("after") && (next == "" || number <= next) && !gone && !listed[number] {
			return wrong{roles: "leaves out an order", what: "and leaves out order " + number, order: number}
		}
	}
	return wrong{}
}

var logFields = [][2]string{{"from", "from_status"}, {"to", "to_status"}, {"cause", "cause"}, {"atMs", "at_ms"}}

// judgeLog: the changes of an order's status, as they followed each other.
func (e *Evidence) judgeLog(t told) wrong {
	if t.Status != 200 {
		return e.unknown(t)
	}
	entries, all := t.said.list("log"), e.past.logs[t.order]
	there := 0
	for there < len(all) && all[there].since <= t.from {
		there++
	}
	if len(entries) < there || len(entries) > len(all) {
		return wrong{roles: "with another number of entries", what: fmt.Sprintf("with %d entries, and the log has %d", len(entries), len(all))}
	}
	for i, entry := range entries {
		if c := clashOf(entry, all[i].row, logFields); c != (clash{}) {
			return wrong{roles: "with another entry", what: fmt.Sprintf("whose entry %d tells %s", i+1, c)}
		}
	}
	return wrong{}
}

// judgeRefunds: all refunds of an order.
func (e *Evidence) judgeRefunds(t told) wrong {
	if t.Status != 200 {
		return e.unknown(t)
	}
	listed := map[string]bool{}
	for _, refund := range t.said.list("refunds") {
		number := refund.text("refundNo")
		if w := e.untrueRefund(t, refund); w.what != "" {
			return w
		}
		if listed[number] || refund.text("orderNo") != t.order {
			return wrong{roles: "with a refund too many", what: fmt.Sprintf("with refund %s of order %s once too often", number, refund.text("orderNo"))}
		}
		listed[number] = true
	}
	for _, number := range e.past.numbers[t.order] {
		if during(e.past.refunds[number], t.from)[0].row != nil && !listed[number] {
			return wrong{roles: "leaves out a refund", what: "and leaves out refund " + number}
		}
	}
	return wrong{}
}

var alertFields = [][2]string{{"kind", "kind"}, {"subject", "subject"}, {"amountCents", "amount_cents"}, {"detail", "detail"}}

// judgeAlerts: what a person must look at, by number, after the one that was asked for.
func (e *Evidence) judgeAlerts(t told) wrong {
	if t.Status != 200 {
		return wrong{}
	}
	first, _ := strconv.ParseInt(t.query("after"), 10, 64)
	after, next, listed := first, t.said.int("next"), map[int64]bool{}
	for _, alert := range t.said.list("alerts") {
		id := alert.int("alertId")
		row := e.tables["alerts"][rowKey{shopDB, "alerts", id}]
		if c := clashOf(alert, row, alertFields); c.field == missing || id <= after {
			return wrong{roles: "out of order", what: fmt.Sprintf("with alert %d after %d", id, after), order: e.aboutOf(alert.text("subject"))}
		} else if c != (clash{}) {
			return e.wrongAlert(row, "tells another alert", fmt.Sprintf("whose alert %d tells %s", id, c))
		}
		listed[id], after = true, id
	}
	for _, row := range e.table("alerts") {
		if id := row.Int("alert_id"); id > first && (next == 0 || id <= next) && !listed[id] && e.past.alerts[id] <= t.from {
			return e.wrongAlert(row, "leaves out an alert", fmt.Sprintf("and leaves out alert %d: %s of %s", id, row.Text("kind"), row.Text("subject")))
		}
	}
	return wrong{}
}

func (e *Evidence) wrongAlert(row *sim.Change, roles, what string) wrong {
	return wrong{roles: roles, what: what, order: e.aboutOf(row.Text("subject")), stake: amountOf(row)}
}

// query returns a parameter of the request's path.
func (t told) query(name string) string {
	asks, err := url.Parse(t.request.Path)
	if err != nil {
		return ""
	}
	return asks.Query().Get(name)
}
