package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// Of many faults those are told that are about the failing order, and the last others, without
// what any network does.
func TestToldFaults(t *testing.T) {
	trace := &sim.Trace{}
	trace.Append(sim.Record{At: time.Hour})
	trace.Append(sim.Record{At: 2 * time.Hour})
	r := &Result{Case: Case{Workload: Workload{Orders: map[string]*Order{"A": {}, "B": {}}}}, Trace: trace}
	fired := func(when time.Duration, kind faults.Kind, at string) {
		r.Fired = append(r.Fired, faults.Firing{Perturbation: faults.Perturbation{Kind: kind, At: at}, When: when})
	}
	fired(time.Minute, faults.LateSettlement, "wechat/A-1")
	for i := range otherFaults + 3 {
		fired(2*time.Minute, faults.Drop, fmt.Sprintf("create(B)#%d", i))
	}
	fired(3*time.Minute, faults.Crash, "shop-1/callback(A)#1/COMMIT:before")
	fired(3*time.Minute, faults.Stall, "shop-1/callback(A)#1/BEGIN:before")
	fired(90*time.Minute, faults.Drop, "ask-refund(A)#1")

	told, left := r.ToldFaults()
	assert.Len(t, told, otherFaults+7, "nothing broke, so all may matter")
	assert.Zero(t, left)

	r.Failures = []checker.Failure{{Order: "A", Seq: 1}}
	told, left = r.ToldFaults()
	assert.Equal(t, 5, left, "the stall of no time is one")
	assert.Len(t, told, otherFaults+2)
	assert.Equal(t, "wechat/A-1", told[0].At)
	assert.Equal(t, "create(B)#3", told[1].At)
	assert.Equal(t, "shop-1/callback(A)#1/COMMIT:before", told[len(told)-1].At, "what came later did not do it")

	r.Failures[0].AtEnd = true
	told, _ = r.ToldFaults()
	assert.Equal(t, "ask-refund(A)#1", told[len(told)-1].At, "what showed at the end may have come of it")
}

// Around a failure that shows at the end stand the rows that it is about, and what happened
// then: neither what the shop and the channel said for hours afterwards, nor other orders.
func TestRecordsThatMatter(t *testing.T) {
	trace := &sim.Trace{}
	row := func(task, table string, id int64, columns ...any) {
		c := shopRow(table, columns...)
		c.RowID = id
		trace.Append(sim.Record{Node: "shop-1", Task: task, Event: sim.EventRow, Change: c})
	}
	message := func(event sim.Event, name string) {
		kind, key, _ := strings.Cut(name, "(")
		m := &sim.Message{Exchange: name, Kind: kind, Key: key[:1], From: "wechat", To: "shop"}
		trace.Append(sim.Record{Node: "wechat", Task: name, Event: event, Op: name, Message: m})
	}
	row("create(A)#1", "orders", 1, "order_no", "A", "status", "CREATED")
	for i := range 9 {
		message(sim.EventAnswer, fmt.Sprintf("query(A)#%d", i))
	}
	row("pay(A)#1", "charges", 1, "order_no", "A", "channel_txn", "T-A-1-1")
	row("close(A)#1", "orders", 1, "order_no", "A", "status", "CLOSED")
	message(sim.EventDrop, "callback(A)#1")
	row("close(B)#1", "orders", 2, "order_no", "B", "status", "CLOSED")
	row("callback(A)#2", "payment_records", 1, "order_no", "A", "disposition", "late")
	wrong := len(trace.Records)
	row("relay#1", "outbox", 1, "kind", "refund", "message_key", "R-wechat-T-A-1-1", "state", "PENDING", "tries", int64(0))
	row("relay#1", "outbox", 1, "kind", "refund", "message_key", "R-wechat-T-A-1-1", "state", "PENDING", "tries", int64(1))
	for i := range 9 {
		message(sim.EventAnswer, fmt.Sprintf("read(A)#%d", i))
	}
	message(sim.EventDrop, "read(A)#10")
	r := &Result{Case: Case{Workload: Workload{Orders: map[string]*Order{"A": {}, "B": {}}}}, Trace: trace}
	f := checker.Failure{Order: "A", Seq: wrong, AtEnd: true, About: []int{11, wrong}}
	lines := tellAll(trace, recordsThatMatter(r, f, 6))
	for i, part := range []string{"charges#1", "status=CLOSED", "drop     callback(A)#1", "disposition=late", "state=PENDING", "read(A)#0"} {
		assert.Contains(t, lines[i], part)
	}
	f.AtEnd, f.About = false, nil
	lines = tellAll(trace, recordsThatMatter(r, f, 6))
	assert.Contains(t, lines[5], "disposition=late", "of what is wrong at once, nothing later")
}

// Another failure of the order that was there first is told, for it may be the cause.
func TestFirstFailureIsTold(t *testing.T) {
	trace := &sim.Trace{Start: time.Unix(0, 0).UTC()}
	for i := range 3 {
		trace.Append(sim.Record{At: time.Duration(i) * time.Second})
	}
	r := &Result{Trace: trace, Failures: []checker.Failure{
		{Property: "no-orphan-money", Order: "A", Seq: 3, AtEnd: true, Message: "it is kept"},
		{Property: "effect-once", Order: "A", Seq: 2, Message: "it happened twice"},
		{Property: "job-exclusive", Order: "B", Seq: 1, Message: "of another order"},
	}}
	assert.Contains(t, Explain(r, r.Failures[0]), "\n  first: effect-once, at 00:00:01.000000: it happened twice\n")
	assert.NotContains(t, Explain(r, r.Failures[1]), "first: ")

	r.Failures = []checker.Failure{
		{Property: "stock-conserved", Order: "A", Seq: 1, AtEnd: true},
		{Property: "outbox-delivered", Order: "A", Seq: 2, Message: "it has no message"},
		{Property: checker.Expected, Order: "A", Seq: 1},
	}
	assert.NotContains(t, Explain(r, r.Failures[1]), "first: ", "neither what showed at the end nor what a file expects leads to it")
	assert.NotContains(t, Explain(r, r.Failures[0]), "first: ", "a second is a long time")
	trace.Records[1].At = 0
	assert.Contains(t, Explain(r, r.Failures[0]), "\n  first: outbox-delivered, at 00:00:00.000000: it has no message\n", "of the same commit")
}
