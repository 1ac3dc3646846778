package checker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// whatChanged returns the tables whose rows some records have changed.
func whatChanged(trace *sim.Trace, seqs ...int) (tables []string) {
	for _, seq := range seqs {
		tables = append(tables, trace.Records[seq-1].Change.Table)
	}
	return tables
}

// What shows at the end is placed where the rows that it is about became what they are,
// however much happens afterwards.
func TestEndFailuresNameTheirRows(t *testing.T) {
	for property, one := range map[string]struct {
		history string
		about   []string
	}{
		"no-orphan-money": {`
			A is-created 198.00
			A is-closed
			A is-charged T1 198.00
			callback(A)#1 commits record T1 A 198.00 late
			A is-read CLOSED`, []string{"orders", "charges", "payment_records"}},
		"charge-once": {`
			A is-created 198.00
			A is-charged T1 198.00
			A is-charged T2 198.00
			A is-paid T1 198.00
			A is-read PAID`, []string{"charges", "charges"}},
		"books-match-channel": {`
			A is-created 198.00
			A is-charged T1 198.00
			A is-closed
			A is-read CLOSED`, []string{"charges"}},
		"finally-terminal": {`
			A is-created 198.00
			B is-created 5.00
			A is-closed
			B is-read CREATED`, []string{"orders"}},
		"legal-transitions": {`
			A is-created 198.00
			note#1 commits log A CREATED>PAID
			A is-read CREATED`, []string{"orders", "order_status_log"}},
		"outbox-delivered": {`
			S1 is-stocked 1
			A is-created 198.00 S1
			A is-frozen S1
			A is-closed
			relay#1 commits message stock-release A DELIVERED
			A is-read CLOSED`, []string{"outbox"}},
		"stock-conserved": {`
			S1 is-stocked 1
			A is-created 198.00 S1
			A is-frozen S1
			A is-closed
			A is-read CLOSED`, []string{"stock_journal", "orders"}},
		"gap-found": {`
			A is-booked T1 99.00 PAID
			A is-billed T1 98.00
			reconcile@15 begins
			reconcile@15 fetches
			reconcile@15 ends`, []string{"payment_records", "bill_rows"}},
	} {
		t.Run(property, func(t *testing.T) {
			trace := &sim.Trace{}
			evidence := checker.New(trace).Judge(property)
			require.NoError(t, newTeller(trace).tell(one.history))
			failures, _ := evidence.Finish()
			require.Len(t, failures, 1)
			f := failures[0]
			assert.True(t, f.AtEnd)
			assert.Equal(t, one.about, whatChanged(trace, f.About...))
			assert.Equal(t, f.About[len(f.About)-1], f.Seq)
		})
	}
}

// An alert that should not be is about the rows that it names: of our books, and of the bill.
func TestInventedAlertsNameTheirRows(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge("gap-found")
	require.NoError(t, newTeller(trace).tell(`
		A is-booked T1 99.00 PAID
		A is-billed T1 99.00
		reconcile@15 begins
		reconcile@15 fetches
		reconcile@15 reports record-mismatch mock/T1 99.00`))
	failures, _ := evidence.Finish()
	require.Len(t, failures, 1)
	assert.Equal(t, []string{"payment_records", "bill_rows"}, whatChanged(trace, failures[0].About...))
	assert.Equal(t, len(trace.Records), failures[0].Seq)
	assert.False(t, failures[0].AtEnd)
}

// What names no rows is about its order's; what is about no order, about the whole run.
func TestEndFailuresOfNoRow(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge("none")
	evidence.Expect([]checker.Expectation{expecting(checker.OfRefund, "A", "", 1), expecting(checker.OfRefund, "B", "", 1)})
	require.NoError(t, newTeller(trace).tell("A is-created 198.00\nA is-read CREATED"))
	failures, _ := evidence.Finish()
	require.Len(t, failures, 2)
	assert.Equal(t, []string{"orders"}, whatChanged(trace, failures[0].About...))
	assert.Empty(t, failures[1].About)
	assert.Equal(t, len(trace.Records), failures[1].Seq)
}

// Of what costs the same, what went wrong first comes first: it may be the cause.
func TestOfTheSameMoneyTheFirstComesFirst(t *testing.T) {
	var names []string
	for _, f := range judge(t, `
		A is-created 198.00
		note#1 commits log A CREATED>PAID
		A is-charged T1 198.00
		B is-created 500.00
		B is-charged T2 500.00`, "no-orphan-money", "legal-transitions") {
		names = append(names, f.Property+" "+f.Order)
	}
	assert.Equal(t, []string{"no-orphan-money B", "legal-transitions A", "no-orphan-money A"}, names)
}

// A run that was ended names what waits, the orders first, with what they are worth.
func TestRestlessRunNamesWhatWaits(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge("finally-terminal")
	require.NoError(t, newTeller(trace).tell(`
		A is-created 198.00
		B is-created 5.00
		C is-created 300.00
		A is-closed
		pay(B)#1 commits intent R1 T1 B 5.00 request, message refund R1
		spin#1 calls query`))
	evidence.NeverRests(1_000_000)
	failures, _ := evidence.Finish()
	require.Len(t, failures, 1)
	assert.Contains(t, failures[0].Message, "what waits is worth 305.00 CNY: B (orders CREATED), C (orders CREATED), B (refunds REQUESTED), refund R1 (outbox PENDING)")
	assert.Equal(t, "C", failures[0].Order, "the lines that matter are about the most money")
}
