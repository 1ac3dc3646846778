package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// shopRow makes a row of a shop's table from names and values of its columns.
func shopRow(table string, columns ...any) *sim.Change {
	c := &sim.Change{Database: "shop", Table: table, RowID: 1}
	for i := 0; i < len(columns); i += 2 {
		c.Columns, c.Values = append(c.Columns, columns[i].(string)), append(c.Values, columns[i+1])
	}
	return c
}

// However wide a row is, what decides is told: what has changed in it, before the rest.
func TestRowsAreToldWithWhatHasChanged(t *testing.T) {
	refund := func(state string, tries int64) *sim.Change {
		return shopRow("refunds", "refund_no", "F-"+strings.Repeat("2", 80), "order_no", "A", "channel_txn", "T-A-1-1", "amount_cents", int64(9900), "state", state, "tries", tries)
	}
	deleted := &sim.Change{Database: "shop", Table: "refunds", RowID: 1}
	rest := " refund_no=F-" + strings.Repeat("2", 80) + " channel_txn=T-A-1-1"
	for _, one := range []struct {
		now, before *sim.Change
		told        string
	}{
		{refund("ACCEPTED", 0), nil, "shop.refunds#1 state=ACCEPTED amount_cents=9900 order_no=A" + rest},
		{refund("SUCCEEDED", 1), refund("ACCEPTED", 0), "shop.refunds#1 state=SUCCEEDED (was ACCEPTED) amount_cents=9900 order_no=A" + rest},
		{refund("ACCEPTED", 1), refund("ACCEPTED", 0), "shop.refunds#1 tries=1 (was 0) state=ACCEPTED amount_cents=9900 order_no=A" + rest},
		{deleted, refund("ACCEPTED", 0), "shop.refunds#1 deleted, was state=ACCEPTED amount_cents=9900 order_no=A" + rest},
		{deleted, nil, "shop.refunds#1 deleted"},
		{shopRow("orders", "status", "CREATED", "order_no", "A", "close_reason", nil), shopRow("orders", "status", "CLOSED", "order_no", "A", "close_reason", "deadline"),
			"shop.orders#1 status=CREATED (was CLOSED) close_reason=nothing (was deadline) order_no=A"},
		{shopRow("job_fences", "job", "scan", "fence", int64(2)), shopRow("job_fences", "job", "scan", "fence", int64(1)), "shop.job_fences#1 fence=2 (was 1) job=scan"},
		{shopRow("alerts", "kind", "refund-failed", "detail", strings.Repeat("x", mostOfValue+1)), nil,
			"shop.alerts#1 kind=refund-failed detail=" + strings.Repeat("x", mostOfValue) + "..."},
	} {
		assert.Equal(t, one.told, tellRow(one.now, one.before))
	}
}

// A row is told with what it was, whatever happened to other rows meanwhile.
func TestRowsAreToldWithWhatTheyWere(t *testing.T) {
	trace := &sim.Trace{}
	other := shopRow("orders", "status", "PAID", "order_no", "B")
	other.RowID = 2
	for _, c := range []*sim.Change{shopRow("orders", "status", "CREATED", "order_no", "A"), other, shopRow("orders", "status", "CLOSED", "order_no", "A")} {
		trace.Append(sim.Record{Event: sim.EventRow, Change: c})
	}
	assert.Contains(t, tell(trace, 2), "shop.orders#1 status=CLOSED (was CREATED) order_no=A")
	assert.Contains(t, tell(trace, 1), "shop.orders#2 status=PAID order_no=B")
}

// What the service has logged where it failed is told, and a statement that could never work,
// wherever that was.
func TestServicesOwnWordIsTold(t *testing.T) {
	trace := &sim.Trace{Start: time.Unix(0, 0).UTC()}
	say := func(event sim.Event, task, op, detail string) {
		trace.Append(sim.Record{Node: "shop-1", Task: task, Event: event, Op: op, Detail: detail})
	}
	say(sim.EventSQL, "close-scan@14:15:00", "ListDueOrders", "error: no such column: statu")
	say(sim.EventSQL, "close-scan@14:16:00", "ListDueOrders", "error: no such column: statu")
	say(sim.EventSQL, "create(A)#1", "InsertOrder", "error: disk I/O error")
	say(sim.EventLog, "callback(B)#1", "ERROR", "of another task")
	say(sim.EventLog, "callback(A)#1", "WARN", "at first")
	say(sim.EventLog, "callback(A)#1", "ERROR", "request failed error=no such column: statu")
	say(sim.EventAnswer, "callback(A)#1", "callback(A)#1", "")
	say(sim.EventLog, "callback(A)#1", "ERROR", "said later")
	r := &Result{Case: Case{Workload: Workload{Orders: map[string]*Order{"A": {}, "B": {}}}}, Trace: trace}
	assert.Contains(t, Explain(r, checker.Failure{Order: "A", Seq: 7}), "\n  what the service said of it:\n"+
		"    00:00:00.000000  shop-1    callback(A)#1              log      ERROR  request failed error=no such column: statu\n"+
		"    00:00:00.000000  shop-1    close-scan@14:15:00        sql      ListDueOrders  error: no such column: statu (the statement itself is wrong, 2 times)\n\n")

	r.Trace.Records = r.Trace.Records[2:3]
	assert.NotContains(t, Explain(r, checker.Failure{Order: "A", Seq: 1}), "what the service said", "what was done to it is among the faults")
}

// What a job says of other orders is not told of a failure.
func TestWhatAJobSaysOfOtherOrdersIsNotTold(t *testing.T) {
	trace := &sim.Trace{}
	for _, order := range []string{"A", "B"} {
		trace.Append(sim.Record{Node: "shop-1", Task: "pending-query@14:00:00", Event: sim.EventLog, Op: "WARN", Detail: "query failed order=" + order + " error=none"})
	}
	r := &Result{Case: Case{Workload: Workload{Orders: map[string]*Order{"A": {}, "B": {}}}}, Trace: trace}
	lines := logsThatMatter(r, checker.Failure{Order: "A", Seq: 2})
	assert.Len(t, lines, 1)
	assert.Contains(t, lines[0], "order=A")
}
