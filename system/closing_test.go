package system_test

import (
	"fmt"
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
