package system_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// Two instances, no leases, everybody at once: buyers pay, callbacks come several times, both scan, cancel and query.
func TestEverybodyAtOnce(t *testing.T) {
	const orders = 12
	f := newFixture(t, func(c *system.Config) { c.CallTimeout = 10 * time.Second })
	first, jobs := f.url, f.loops.every
	f.loops.every = nil
	second := f.start(f.cfg, nil, nil)
	for n := range orders {
		f.create(fmt.Sprintf(`{"orderNo":"A%d","amountCents":100,"sku":"S1"}`, n))
	}
	f.clock.advance(15 * time.Minute)

	var group sync.WaitGroup
	both := func(do func(g *fixture)) {
		for _, url := range []string{first, second} {
			group.Go(func() { do(&fixture{T: t, clock: f.clock, loops: f.loops, db: f.db, bank: f.bank, url: url}) })
		}
	}
	for n := range orders {
		no, txn := fmt.Sprintf("A%d", n), fmt.Sprintf("T%d", n)
		group.Go(func() { f.bank.charge("mock", no+"-1", txn) })
		both(func(g *fixture) {
			if g.bank.paid("mock", no+"-1") {
				g.callback(`{"orderNo":"` + no + `","channel":"mock","channelTxn":"` + txn + `","amountCents":100}`)
			}
		})
		if n%3 == 0 {
			both(func(g *fixture) { g.do("POST", "/orders/"+no+"/cancel", "", nil) })
		}
	}
	for _, all := range []map[string]func(context.Context){jobs, f.loops.every} {
		group.Go(func() { all["close-scan"](t.Context()) })
		group.Go(func() { all["pending-query"](t.Context()) })
		group.Go(func() { all["outbox-relay"](t.Context()) })
	}
	group.Wait()
	f.settle()

	for n := range orders {
		no := fmt.Sprintf("A%d", n)
		want := system.Closed
		if f.bank.paid("mock", no+"-1") {
			want = system.Paid // the channel was asked before the close, so nothing comes late
		}
		require.Equal(t, want, f.order(no).Status, no)
	}
	require.Empty(t, f.refunds())
	require.Empty(t, f.column(`SELECT order_no FROM order_status_log GROUP BY order_no HAVING count(*) <> 2`))
	require.Empty(t, f.column(`SELECT message_key FROM outbox WHERE state <> 'DELIVERED'`))
	require.Equal(t, f.column(`SELECT order_no FROM orders WHERE status = 'PAID' ORDER BY 1`), f.column(`SELECT order_no FROM payment_records ORDER BY 1`))
}
