package system_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// refunds is what the shop has of refunds, "R-mock-T1 9900 late SUCCEEDED".
func (f *fixture) refunds() []string {
	f.Helper()
	return f.column(`SELECT refund_no || ' ' || amount_cents || ' ' || cause || ' ' || state FROM refunds ORDER BY refund_no`)
}

// outbox is what the shop has of messages, "refund R-mock-T1 DELIVERED".
func (f *fixture) outbox() []string {
	f.Helper()
	return f.column(`SELECT kind || ' ' || message_key || ' ' || state FROM outbox ORDER BY message_id`)
}

// Whoever hears of a late charge, how often and by which way: the money goes back once.
func TestLateChargeGoesBackOnce(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.ClosePolicy = system.CloseLocalOnly })
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.bank.pay("mock", "A1-1", "T1")
	f.clock.advance(15 * time.Minute)
	f.scan()
	closed := f.order("A1")
	require.Equal(t, system.Closed, closed.Status)

	for range 3 {
		status, body := f.callback(paidA1)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"orderNo":"A1","status":"CLOSED","result":"success"}`, body)
	}
	f.run("pending-query")
	f.relay()
	f.run("outbox-relay")
	require.Equal(t, []string{"R-mock-T1 9900 late ACCEPTED"}, f.refunds())
	require.Equal(t, []string{"refund R-mock-T1 DELIVERED"}, f.outbox())
	require.Equal(t, 1, f.bank.count("mock /refund R-mock-T1"))
	require.Equal(t, closed, f.order("A1"))

	f.bank.refundEnds("R-mock-T1", "SUCCESS")
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, []string{"R-mock-T1 9900 late SUCCEEDED"}, f.refunds())
	before := f.dump()
	f.clock.advance(time.Hour)
	f.run("refund-query")
	f.run("outbox-relay")
	f.run("pending-query")
	require.Equal(t, before, f.dump())
}

func TestSurplusChargeGoesBackAndLeavesTheOrder(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.callback(paidA1)
	paid := f.order("A1")
	for n := range 3 { // a transaction's number means something on its own channel only
		f.callback(fmt.Sprintf(`{"orderNo":"A1","channel":"mock","channelTxn":"T%d","amountCents":9900}`, n+2))
	}
	f.relay()
	for n := range 3 {
		f.bank.refundEnds(fmt.Sprintf("R-mock-T%d", n+2), "SUCCESS")
	}
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, []string{"R-mock-T2 9900 surplus SUCCEEDED", "R-mock-T3 9900 surplus SUCCEEDED", "R-mock-T4 9900 surplus SUCCEEDED"}, f.refunds())
	require.Equal(t, paid, f.order("A1"))
}

func TestTwoChannelsBothPaid(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	status, body := f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
	require.Equal(t, 200, status, body)
	require.Equal(t, "A1-2", f.order("A1").OutTradeNo)
	status, again := f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
	require.Equal(t, 200, status)
	require.Equal(t, body, again)

	f.bank.pay("second", "A1-2", "T1")
	f.callback(paidA1) // the same transaction number, on the first channel
	status, body = f.callback(`{"orderNo":"A1","channel":"second","channelTxn":"T1","amountCents":9900}`)
	require.Equal(t, 200, status)
	require.Equal(t, "success", body)
	f.relay()
	require.Equal(t, system.Paid, f.order("A1").Status)
	require.Equal(t, []string{"R-second-T1 9900 surplus ACCEPTED"}, f.refunds())
	require.Equal(t, []string{"channel-close A1-2 DELIVERED", "refund R-second-T1 DELIVERED"}, f.outbox())
	require.Equal(t, []string{"PAID", "PAID"}, f.column(`SELECT state FROM payment_orders`))
	require.Empty(t, f.column(`SELECT out_trade_no FROM payment_orders WHERE next_query_ms IS NOT NULL`))
}

func TestOtherAttemptsAreClosedAtTheirChannels(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
	f.bank.on("second /close", refuse(500, "SYSTEM_ERROR"))
	f.callback(paidA1)
	f.relay()
	require.Equal(t, []string{"channel-close A1-2 PENDING"}, f.outbox())
	require.Equal(t, []string{"PAID", "OPEN"}, f.column(`SELECT state FROM payment_orders ORDER BY attempt`))

	f.bank.on("second /close", nil)
	f.clock.advance(10 * time.Second)
	f.run("outbox-relay")
	require.Equal(t, []string{"channel-close A1-2 DELIVERED"}, f.outbox())
	require.Equal(t, []string{"PAID", "CLOSED"}, f.column(`SELECT state FROM payment_orders ORDER BY attempt`))
	status, body := f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
	require.Equal(t, 409, status)
	require.Equal(t, "order_not_payable", code(t, body))
}

func TestNewsWithoutMoneyChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	before := f.dump()
	for _, state := range []string{"CLOSED", "FAILED"} {
		status, body := f.callback(`{"orderNo":"A1","outTradeNo":"A1-1","channel":"mock","state":"` + state + `","amountCents":9900}`)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"orderNo":"A1","status":"CREATED","result":"success"}`, body)
	}
	require.Equal(t, before, f.dump())
}

func reinstates(c *system.Config) {
	c.ClosePolicy, c.LateSuccess = system.CloseLocalOnly, system.LateReinstate
}

func TestReinstateWithStock(t *testing.T) {
	f := newFixture(t, reinstates)
	f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1"}`)
	f.clock.advance(15 * time.Minute)
	f.scan()
	f.callback(paidA1)
	f.callback(`{"orderNo":"A1","channel":"mock","channelTxn":"T2","amountCents":9900}`)
	f.relay()
	order := f.order("A1")
	require.Equal(t, system.Paid, order.Status)
	require.Equal(t, []string{"CREATED", "CLOSED", "PAID"}, f.column(`SELECT to_status FROM order_status_log ORDER BY log_id`))
	require.Equal(t, []string{"R-mock-T2 9900 late ACCEPTED"}, f.refunds())
	require.Equal(t, []string{"stock-release A1", "stock-deduct A1.", "stock-release A1."},
		f.column(`SELECT kind || ' ' || substr(message_key, 1, 3) FROM outbox WHERE kind LIKE 'stock-%' ORDER BY message_id`))
	require.Equal(t, f.column(`SELECT stock_no FROM orders`), f.column(`SELECT message_key FROM outbox WHERE kind = 'stock-deduct'`))

	// A message that is delivered again finds its work done.
	_, err := f.db.ExecContext(t.Context(), `UPDATE outbox SET state = 'PENDING', next_ms = 0 WHERE kind = 'reinstate'`)
	require.NoError(t, err)
	f.run("outbox-relay")
	f.relay()
	require.Equal(t, order, f.order("A1"))
	require.Len(t, f.refunds(), 1)
}

// A charge that is on its way back opens no order, though there is stock when its message is delivered again.
func TestReinstateAfterRefund(t *testing.T) {
	f := newFixture(t, reinstates)
	f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1"}`)
	f.clock.advance(15 * time.Minute)
	f.scan()
	f.bank.on("stock /freeze", refuse(409, "out_of_stock"))
	f.callback(paidA1)
	f.relay()
	f.bank.on("stock /freeze", nil)
	_, err := f.db.ExecContext(t.Context(), `UPDATE outbox SET state = 'PENDING', next_ms = 0 WHERE kind = 'reinstate'`)
	require.NoError(t, err)
	f.run("outbox-relay")
	require.Equal(t, system.Closed, f.order("A1").Status)
	require.Len(t, f.refunds(), 1)
	require.Equal(t, 2, f.bank.count("stock /release A1"), "and the stock that was frozen for it is free again")
}

// What its buyer didn't want any more isn't brought back by a late charge, though there is stock for it; nor what the
// deadline closed before the promised cancel could.
func TestCancelledOrderIsNotReinstated(t *testing.T) {
	for _, promised := range []bool{false, true} {
		t.Run(fmt.Sprint("promised ", promised), func(t *testing.T) {
			f := newFixture(t, func(c *system.Config) { c.LateSuccess = system.LateReinstate })
			f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1"}`)
			if promised {
				f.bank.on("mock /close", refuse(500, "SYSTEM_ERROR"))
			}
			f.do("POST", "/orders/A1/cancel", "", nil)
			f.loops.forget()
			f.bank.on("mock /close", nil)
			f.clock.advance(15 * time.Minute)
			f.scan()
			require.Equal(t, promised, f.order("A1").CloseReason == "deadline")

			f.callback(paidA1)
			f.run("outbox-relay")
			f.relay()
			require.Equal(t, system.Closed, f.order("A1").Status)
			require.Equal(t, []string{"R-mock-T1 9900 late ACCEPTED"}, f.refunds())
			require.Equal(t, 1, f.bank.count("stock /freeze"), "at its creation")
		})
	}
}

func TestReinstateWithoutStock(t *testing.T) {
	f := newFixture(t, reinstates)
	f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1"}`)
	f.bank.pay("mock", "A1-1", "T1")
	f.clock.advance(15 * time.Minute)
	f.scan()
	f.bank.on("stock /freeze", refuse(409, "out_of_stock"))
	f.callback(paidA1)
	f.relay()
	require.Equal(t, system.Closed, f.order("A1").Status)
	require.Equal(t, []string{"R-mock-T1 9900 late ACCEPTED"}, f.refunds())
}
