package system_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// What the channel says before an order is closed decides whether it is.
func TestClosingAsksFirst(t *testing.T) {
	notPaid := func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(bankTrade{OutTradeNo: "A1-1", OrderNo: "A1", State: "NOTPAY", AmountCents: 9900, Currency: "CNY"})
	}
	hangs := func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) }
	for _, c := range []struct {
		name         string
		paid         bool
		query, close http.HandlerFunc // nil: as the bank does
		status       system.Status
		state        string
		watched      bool // the channel is asked further
	}{
		{"unpaid", false, nil, nil, system.Closed, "CLOSED", false},
		{"paid", true, nil, nil, system.Paid, "PAID", false},
		{"query fails", false, refuse(500, "SYSTEM_ERROR"), nil, system.Created, "OPEN", true},
		{"query hangs", false, hangs, nil, system.Created, "OPEN", true},
		{"query talks of another trade", false, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"outTradeNo":"B1-1","state":"NOTPAY"}`))
		}, nil, system.Created, "OPEN", true},
		{"close fails", false, nil, refuse(500, "SYSTEM_ERROR"), system.Created, "OPEN", true},
		{"close hangs", false, nil, hangs, system.Created, "OPEN", true},
		{"buyer is paying", false, nil, refuse(409, "USER_PAYING"), system.Created, "OPEN", true},
		{"paid, query lags", true, notPaid, nil, system.Created, "OPEN", true},
		{"unknown trade", false, refuse(404, "TRADE_NOT_EXIST"), refuse(404, "TRADE_NOT_EXIST"), system.Closed, "CLOSED", true},
		{"closed at the channel", false, notPaid, refuse(409, "ORDER_CLOSED"), system.Closed, "CLOSED", false},
		{"closed at an alipay-like channel", false, notPaid, refuse(409, "TRADE_STATUS_ERROR"), system.Closed, "CLOSED", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, func(c *system.Config) { c.CallTimeout = 50 * time.Millisecond })
			f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1"}`)
			if c.paid {
				f.bank.pay("mock", "A1-1", "T1")
			}
			f.bank.on("mock /query", c.query)
			f.bank.on("mock /close", c.close)
			f.clock.advance(15 * time.Minute)
			f.scan()
			require.Equal(t, c.status, f.order("A1").Status)
			require.Equal(t, []string{c.state}, f.column(`SELECT state FROM payment_orders`))
			require.Equal(t, c.watched, len(f.column(`SELECT 1 FROM payment_orders WHERE next_query_ms IS NOT NULL`)) == 1)
			f.relay()
			require.Equal(t, c.status == system.Closed, f.bank.count("stock /release A1") == 1)
			require.Equal(t, c.status == system.Paid, f.bank.count("stock /deduct A1") == 1)

			// What wasn't known is asked again, and comes to the same end as if it had been known at once.
			f.bank.on("mock /query", nil)
			f.bank.on("mock /close", nil)
			f.clock.advance(10 * time.Second)
			f.scan()
			f.relay()
			want := system.Closed
			if c.paid {
				want = system.Paid
			}
			require.Equal(t, want, f.order("A1").Status)
			require.Empty(t, f.refunds())
		})
	}
}

func TestEveryAttemptIsEndedBeforeTheOrder(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
	f.bank.on("second /close", refuse(500, "SYSTEM_ERROR"))
	f.clock.advance(15 * time.Minute)
	f.scan()
	require.Equal(t, system.Created, f.order("A1").Status)

	f.bank.on("second /close", nil)
	f.bank.pay("second", "A1-2", "T2")
	f.scan()
	require.Equal(t, system.Paid, f.order("A1").Status)
	require.Equal(t, []string{"second T2"}, f.column(`SELECT paid_channel || ' ' || paid_txn FROM orders`))
	f.relay()
	require.Equal(t, []string{"CLOSED", "PAID"}, f.column(`SELECT state FROM payment_orders ORDER BY attempt`))
}

// An attempt that is opened while the closer talks to the channels keeps the order open.
func TestAttemptOpenedWhileClosing(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.bank.on("mock /close", func(w http.ResponseWriter, r *http.Request) {
		f.bank.on("mock /close", nil)
		status, body := f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
		if status != 200 {
			t.Errorf("pay: %d %s", status, body)
		}
		refuse(409, "ORDER_CLOSED")(w, r)
	})
	status, body := f.do("POST", "/orders/A1/cancel", "", nil)
	require.Equal(t, 202, status, body)
	require.Equal(t, []string{"CLOSED", "OPEN"}, f.column(`SELECT state FROM payment_orders ORDER BY attempt`))
	status, body = f.do("POST", "/orders/A1/cancel", "", nil)
	require.Equal(t, 200, status, body)
	require.Equal(t, "cancelled", f.order("A1").CloseReason)
}

// A callback that is lost for good is found by asking.
func TestPendingQueryFindsLostCallbacks(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.create(`{"orderNo":"A2","amountCents":9900}`)
	f.bank.on("mock /query", refuse(404, "TRADE_NOT_EXIST"))
	f.clock.advance(15 * time.Second)
	f.run("pending-query")
	require.Equal(t, []string{"OPEN", "OPEN"}, f.column(`SELECT state FROM payment_orders`))

	f.bank.on("mock /query", nil)
	f.bank.pay("mock", "A1-1", "T1")
	f.run("pending-query")
	require.Equal(t, system.Created, f.order("A1").Status, "it was asked a moment ago")
	f.clock.advance(15 * time.Second)
	f.run("pending-query")
	require.Equal(t, system.Paid, f.order("A1").Status)
	require.Equal(t, []string{"query"}, f.column(`SELECT cause FROM order_status_log WHERE to_status = 'PAID'`))
	status, body := f.callback(paidA1)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"orderNo":"A1","status":"PAID","result":"success"}`, body)
	require.Equal(t, []string{"2", "2"}, f.column(`SELECT query_tries FROM payment_orders ORDER BY out_trade_no`))
}

// One run asks about all that is due, batch by batch, and passes over what fails.
func TestQueriesWorkOffABacklog(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.ScanBatch = 3 })
	for n := range 10 { // equal times too
		no := fmt.Sprintf("A%d", n)
		f.create(`{"orderNo":"` + no + `","amountCents":100}`)
		f.bank.pay("mock", no+"-1", "T"+no)
		f.clock.advance(time.Duration(n%2) * time.Millisecond)
	}
	broken := func(table string) {
		_, err := f.db.ExecContext(t.Context(), `CREATE TRIGGER broken_`+table+` BEFORE UPDATE ON `+table+`
			WHEN old.order_no = 'A4' BEGIN SELECT raise(ABORT, 'broken'); END`)
		require.NoError(t, err)
	}
	broken("payment_orders")
	f.clock.advance(15 * time.Second)
	f.run("pending-query")
	require.Equal(t, []string{"A4"}, f.column(`SELECT order_no FROM orders WHERE status <> 'PAID'`))
	require.Equal(t, 9, f.bank.count("mock /query"))

	for n := range 10 {
		no := fmt.Sprintf("A%d", n)
		f.do("POST", "/orders/"+no+"/refunds", `{"refundNo":"Q`+no+`"}`, nil)
	}
	f.relay()
	f.bank.endRefunds()
	broken("refunds")
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, []string{"REFUNDED 9"}, f.column(`SELECT status || ' ' || count(*) FROM orders WHERE order_no <> 'A4' GROUP BY status`))
}

// An attempt that its channel doesn't know can still be paid after the order is closed. It is watched until it can't.
func TestUnknownTradeIsWatchedAfterTheClose(t *testing.T) {
	f := newFixture(t)
	f.bank.on("mock /prepay", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.create(`{"orderNo":"A2","amountCents":9900}`)
	f.clock.advance(15 * time.Minute)
	f.scan()
	require.Equal(t, system.Closed, f.order("A1").Status)
	f.bank.trades["mock A1-1"] = &bankTrade{OutTradeNo: "A1-1", OrderNo: "A1", State: "SUCCESS", AmountCents: 9900, Currency: "CNY", ChannelTxn: "T1"}

	f.run("pending-query")
	f.relay()
	require.Equal(t, []string{"R-mock-T1 9900 late ACCEPTED"}, f.refunds())
	for range 30 {
		f.clock.advance(10 * time.Minute)
		f.run("pending-query")
	}
	require.Empty(t, f.column(`SELECT out_trade_no FROM payment_orders WHERE next_query_ms IS NOT NULL`))
}

// The channel says it has taken another amount: a person must look at it, and nothing is closed over it.
func TestContradictionIsAlerted(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.bank.pay("mock", "A1-1", "T1")
	f.bank.trades["mock A1-1"].AmountCents = 1
	f.clock.advance(15 * time.Minute)
	f.scan()
	f.scan()
	require.Equal(t, system.Created, f.order("A1").Status)
	require.Equal(t, []string{"charge-refused mock/T1"}, f.column(`SELECT kind || ' ' || subject FROM alerts`))
}

// One channel that hangs costs a run three timeouts, not one for each order.
func TestHangingChannelHoldsUpNoOther(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.CallTimeout = 200 * time.Millisecond })
	for _, no := range []string{"A1", "A2", "A3", "A4", "A5", "A6"} {
		f.create(`{"orderNo":"` + no + `","amountCents":100}`)
	}
	f.create(`{"orderNo":"B1","amountCents":100,"channel":"second"}`)
	f.bank.on("mock /query", hangs)
	f.clock.advance(15 * time.Minute)
	f.scan()
	require.Equal(t, 3, f.bank.count("mock /query"))
	require.Equal(t, system.Closed, f.order("B1").Status)
	f.bank.on("mock /query", nil)
	f.scan()
	require.Empty(t, f.column(`SELECT order_no FROM orders WHERE status <> 'CLOSED'`))
}
