package checker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// manyAtOnce is a history in which a repeat is not answered as the first, beside so many
// callbacks that nobody can try all their orders.
func manyAtOnce(callbacks int) string {
	var lines []string
	for i := range callbacks {
		lines = append(lines, fmt.Sprintf("callback(A)#%d sent T%d 198.00", i+1, i+1))
	}
	repeat := callbacks + 2
	return "A is-created 198.00\n" + strings.Join(lines, "\n") + fmt.Sprintf(`
		A is-paid T0 198.00
		callback(A)#%d sent T0 198.00
		callback(A)#%d answers 200 REFUNDING`, repeat, repeat)
}

func TestBudgetExhaustedIsUnknown(t *testing.T) {
	for _, one := range []struct {
		callbacks, budget int
		illegal, unknown  bool
	}{
		{9, checker.StepBudget, true, false},
		{4, 20, false, true},
		{40, 2_000, false, true},
	} {
		trace := &sim.Trace{}
		evidence := checker.New(trace).Judge(told...)
		evidence.SetBudget(one.budget)
		require.NoError(t, newTeller(trace).tell(manyAtOnce(one.callbacks)))
		failures, unknown := evidence.Finish()
		assert.Equal(t, one.illegal, len(failures) == 1, "%v", one)
		assert.Equal(t, one.unknown, unknown, "%v", one)
	}
}

// A repeat that nobody answered costs the search nothing: the channel sends many.
func TestRepeatsAreCheap(t *testing.T) {
	history := "A is-created 198.00\n"
	for i := range 60 {
		history += fmt.Sprintf("callback(A)#%d sent T1 198.00\ncreate(A)#%d sent 198.00\ncallback(A)#%d copied\n", i+1, i+2, i+1)
	}
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge(told...)
	evidence.SetBudget(1000)
	require.NoError(t, newTeller(trace).tell(history+"A is-read PAID\nA is-read CREATED"))
	failures, unknown := evidence.Finish()
	assert.False(t, unknown)
	assert.Len(t, failures, 1)
}

func TestTheMostMoneyComesFirst(t *testing.T) {
	failures := judge(t, `
		A is-created 10.00
		B is-created 5000.00
		C is-created 20.00
		close(A)#1 calls query inside
		close(B)#1 calls query inside
		close(C)#1 calls query inside`, told...)
	var stakes []string
	for _, f := range failures {
		stakes = append(stakes, f.Stake.String())
	}
	assert.Equal(t, []string{"5000.00 CNY", "20.00 CNY", "10.00 CNY"}, stakes)
}

func TestMoney(t *testing.T) {
	for text, m := range map[string]checker.Money{
		"99.00 CNY": {Cents: 9900, Currency: "CNY"}, "0.05 CNY": {Cents: 5, Currency: "CNY"},
		"-1.20 EUR": {Cents: -120, Currency: "EUR"}, "0.00 CNY": {Currency: "CNY"},
	} {
		assert.Equal(t, text, m.String())
	}
}

func TestSettledWaitsForOrdersAndNotifications(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge(told...)
	teller := newTeller(trace)
	for _, step := range []struct {
		line    string
		settled bool
	}{
		{"shop-1 crashes", true},
		{"A is-created 198.00", false},
		{"A is-charged T1 198.00", false},
		{"A is-closed", false},
		{"notify commits notification T1 ACKED", true},
		{"order commits order B CREATED 5.00", false},
		{"order commits order B/2 CREATED 5.00", false},
		{"order commits order B/2 gone", true},
	} {
		require.NoError(t, teller.tell(step.line))
		assert.Equal(t, step.settled, evidence.Settled(), step.line)
	}
}

// BenchmarkChecker judges a run of many orders side by side. The time for a record
// must not grow with the number of orders. The time without a checker is the trace's
// own.
func BenchmarkChecker(b *testing.B) {
	for _, orders := range []int{12, 120} {
		records := sideBySide(b, orders)
		for _, watched := range []bool{false, true} {
			b.Run(fmt.Sprintf("orders=%d/checker=%v", orders, watched), func(b *testing.B) {
				for b.Loop() {
					trace := &sim.Trace{Start: start, Records: make([]sim.Record, 0, len(records))}
					evidence := checker.New(&sim.Trace{})
					if watched {
						evidence = checker.New(trace).Judge(slices.Concat(told, whole)...)
					}
					for _, r := range records {
						trace.Append(r)
					}
					if failures, unknown := evidence.Finish(); len(failures) > 0 || unknown {
						b.Fatal(failures, unknown)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
			})
		}
	}
}

// sideBySide returns the records of a run in which each order takes its steps in
// turn with the others.
func sideBySide(b *testing.B, orders int) []sim.Record {
	trace := &sim.Trace{}
	teller := newTeller(trace)
	require.NoError(b, teller.tell("S1 is-stocked 1000"))
	for _, step := range []string{
		"X is-created 198.00 S1", "X is-frozen S1", "X is-read CREATED", "X is-charged TX 198.00", "callback(X)#1 sent TX 198.00", "callback(X)#1 meets error", "callback(X)#1 answers 500",
		"create(X)#2 sent 198.00 held", "callback(X)#2 sent TX 198.00", "shop-1 crashes", "callback(X)#2 gives-up",
		"callback(X)#3 sent TX 198.00", "callback(X)#3 copied", "create(X)#2 arrives",
		"callback(X)#3 commits record TX X 198.00 applied, order X PAID, log X CREATED>PAID, message stock-deduct X", "X is-sold S1", "callback(X)#3 answers 200 PAID",
		"X is-read PAID", "callback(X)#3+1 answers 200 PAID", "create(X)#2 answers 200 PAID 198.00", "callback(X)#4 sent TX 198.00 lost", "X is-read PAID",
	} {
		for i := range orders {
			require.NoError(b, teller.tell(strings.ReplaceAll(step, "X", fmt.Sprintf("A%d", i))))
		}
	}
	return trace.Records
}
