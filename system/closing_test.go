package system_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

func TestScanClosesOnlyWhatIsDue(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.ScanBatch = 3 })
	for n := range 8 { // equal deadlines too: the order number tells them apart
		f.create(fmt.Sprintf(`{"orderNo":"A%d","amountCents":100}`, n))
	}
	f.callback(`{"orderNo":"A3","channel":"mock","channelTxn":"T3","amountCents":100}`)
	f.clock.advance(time.Second)
	f.create(`{"orderNo":"B","amountCents":100}`)

	f.clock.advance(15*time.Minute - time.Second - time.Millisecond)
	f.scan()
	require.Empty(t, f.column(`SELECT order_no FROM orders WHERE status = 'CLOSED'`))

	f.clock.advance(time.Millisecond)
	f.scan()
	require.Equal(t, []string{"A0", "A1", "A2", "A4", "A5", "A6", "A7"},
		f.column(`SELECT order_no FROM orders WHERE status = 'CLOSED' ORDER BY order_no`))
	require.Equal(t, system.Paid, f.order("A3").Status)
	require.Equal(t, system.Created, f.order("B").Status)
	closed := f.order("A0")
	require.Equal(t, closed.DeadlineMs, closed.ClosedMs)

	before := f.dump()
	f.scan()
	require.Equal(t, before, f.dump())
}

func TestScanPassesWhatCannotBeClosed(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.ScanBatch = 1 })
	for _, no := range []string{"A1", "A2", "A3"} {
		f.create(`{"orderNo":"` + no + `","amountCents":100}`)
	}
	_, err := f.db.ExecContext(t.Context(), `CREATE TRIGGER stuck BEFORE UPDATE ON orders WHEN old.order_no = 'A1'
		BEGIN SELECT raise(ABORT, 'stuck'); END`)
	require.NoError(t, err)
	f.clock.advance(time.Hour)
	f.scan()
	require.Equal(t, []string{"A2", "A3"}, f.column(`SELECT order_no FROM orders WHERE status = 'CLOSED' ORDER BY order_no`))
}

// An idle job costs one look into an index.
func TestJobsUseTheirIndexes(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		query, index string
		args         []any
	}{
		{system.ListDueOrdersSQL, "SEARCH orders USING COVERING INDEX orders_by_deadline (status=? AND ", []any{0, "", 100}},
		{system.ListDueMessagesSQL, "SEARCH outbox USING INDEX outbox_by_due (next_ms<?)", []any{100}},
		{system.ListDueAttemptsSQL, "SEARCH p USING INDEX payment_orders_by_query (next_query_ms<?)", []any{100, 0}},
		{system.ListDueRefundsSQL, "SEARCH refunds USING INDEX refunds_by_query (next_query_ms<?)", []any{100}},
	} {
		plan := f.plan(c.query, c.args...)
		require.Contains(t, plan, c.index)
		require.NotContains(t, plan, "TEMP B-TREE")
		require.NotContains(t, plan, "SCAN o")
	}
}

// plan is how SQLite would run a query.
func (f *fixture) plan(query string, args ...any) string {
	f.Helper()
	rows, err := f.db.QueryContext(f.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	require.NoError(f, err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(f, rows.Scan(&id, &parent, &unused, &detail))
		plan.WriteString(detail + "\n")
	}
	require.NoError(f, rows.Err())
	return plan.String()
}
