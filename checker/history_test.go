package checker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// lastUnit is a history in which the last unit is promised twice.
const lastUnit = `
	S1           is-stocked  1
	A            is-created  198.00 S1
	B            is-created  99.00 S1
	A            is-frozen   S1
	freeze(B)#1  sent S1
	freeze(B)#1  answers     200
	A            is-read     CLOSED`

// A history that fits no order of events is told as a page, whatever it is about.
func TestMisfitsArePages(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge("linearizable-orders", "linearizable-stock")
	require.NoError(t, newTeller(trace).tell(lastUnit))
	failures, unknown := evidence.Finish()
	require.False(t, unknown)
	require.Len(t, failures, 2)
	pages := map[string]string{"linearizable-orders": "read -\\u003e CLOSED", "linearizable-stock": "freeze B -\\u003e done"}
	for _, m := range evidence.Misfits() {
		var page strings.Builder
		require.NoError(t, m.WriteHTML(&page))
		assert.Contains(t, page.String(), pages[m.Property])
		delete(pages, m.Property)
	}
	assert.Empty(t, pages)
}

func TestStockOutOfBudgetIsUnknown(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge("linearizable-stock")
	evidence.SetBudget(2)
	require.NoError(t, newTeller(trace).tell(lastUnit))
	failures, unknown := evidence.Finish()
	assert.Empty(t, failures)
	assert.True(t, unknown)
	assert.Equal(t, []string{"linearizable-stock"}, evidence.Undecided())
}

// An operator's hand in the stock is not the system's doing, for no order of that SKU.
func TestHandInTheStock(t *testing.T) {
	for _, row := range []string{"stock S1 3/1/0", "move A/2 freeze S1", "move A freeze gone"} {
		trace := &sim.Trace{}
		evidence := checker.New(trace).Judge("stock-conserved", "linearizable-stock")
		teller := newTeller(trace)
		require.NoError(t, teller.tell("S1 is-stocked 2\nA is-created 198.00 S1\nB is-created 99.00 S1\nA is-frozen S1"))
		require.NoError(t, teller.tell(sim.Operator+"/hand commits "+row))
		require.NoError(t, teller.tell("B is-frozen S1\nB is-closed\nB is-released S1\nfreeze(B)#2 sent S1\nfreeze(B)#2 answers 200"))
		failures, _ := evidence.Finish()
		assert.Empty(t, failures, row)
	}
}

// The stock that a run begins with is declared.
func TestFirstStockIsDeclared(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge("stock-conserved", "linearizable-stock")
	evidence.PutIn("S1", 1)
	require.NoError(t, newTeller(trace).tell(`
		A            is-created  198.00 S1
		freeze(A)#1  sent S1
		freeze(A)#1  commits     move A freeze S1, stock S1 0/1/0
		freeze(A)#1  answers     200
		B            is-created  99.00 S1
		freeze(B)#1  sent S1
		freeze(B)#1  answers     409 code=out_of_stock
		note#1       commits     stock S1 1/1/0`))
	failures, _ := evidence.Finish()
	require.NotEmpty(t, failures)
	assert.Contains(t, failures[0].Message, "are 2, and 1 were put in")
}
