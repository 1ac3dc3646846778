package system_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

func TestCancel(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1","quantity":2}`)
	for range 2 {
		status, body := f.do("POST", "/orders/A1/cancel", "", nil)
		require.Equal(t, 200, status, body)
	}
	f.clock.advance(time.Hour)
	f.scan()
	f.relay()
	f.run("outbox-relay")
	require.Equal(t, 1, f.bank.count("stock /release A1"))

	f.create(`{"orderNo":"A2","amountCents":9900}`)
	f.bank.pay("mock", "A2-1", "T2")
	status, body := f.do("POST", "/orders/A2/cancel", "", nil)
	require.Equal(t, 409, status)
	require.Equal(t, "order_not_cancellable", code(t, body))
	require.Equal(t, system.Paid, f.order("A2").Status)

	status, body = f.do("POST", "/orders/A3/cancel", "", nil)
	require.Equal(t, 404, status)
	require.Equal(t, "order_unknown", code(t, body))
}

// A body that says something is refused before anything is closed: a cancel of a part, say, would cancel all.
func TestCancelTakesNoFields(t *testing.T) {
	f := newFixture(t)
	f.create(orderA1)
	before := f.facts()
	for body, want := range map[string]string{
		`{"reason":"x"}`: "field_unknown", `{"amountCents":1}`: "field_unknown",
		`reason=x`: "body_invalid", `[]`: "body_invalid", `{} {}`: "body_invalid",
	} {
		status, answer := f.do("POST", "/orders/A1/cancel", body, nil)
		require.Equal(t, 400, status, body)
		require.Equal(t, want, code(t, answer), body)
	}
	require.Equal(t, before, f.facts())
	status, answer := f.do("POST", "/orders/A1/cancel", ` {} `, nil)
	require.Equal(t, 200, status, answer)
}

// While a channel can't tell, a cancel is promised: it is carried on with, before the deadline, whoever asks again.
func TestCancelIsCarriedOn(t *testing.T) {
	f := newFixture(t)
	f.create(orderA1)
	for _, call := range []string{"mock /query", "mock /close"} {
		f.bank.on(call, refuse(500, "SYSTEM_ERROR"))
		for range 2 {
			status, body := f.do("POST", "/orders/A1/cancel", "", nil)
			require.Equal(t, 202, status, body)
		}
		f.relay()
		f.bank.on(call, nil)
	}
	require.Equal(t, []string{"cancel A1 PENDING"}, f.outbox())
	f.clock.advance(10 * time.Second)
	f.run("outbox-relay")
	require.Equal(t, system.Closed, f.order("A1").Status)
	require.Equal(t, "cancelled", f.order("A1").CloseReason)
	require.Equal(t, []string{"cancel A1 DELIVERED"}, f.outbox())
}

// A promised cancel that finds the order paid has nothing to do.
func TestPromisedCancelOfPaidOrder(t *testing.T) {
	f := newFixture(t)
	f.create(orderA1)
	f.bank.on("mock /close", refuse(409, "USER_PAYING"))
	status, _ := f.do("POST", "/orders/A1/cancel", "", nil)
	require.Equal(t, 202, status)
	f.bank.pay("mock", "A1-1", "T1")
	f.callback(paidA1)
	f.clock.advance(10 * time.Second)
	f.run("outbox-relay")
	require.Equal(t, system.Paid, f.order("A1").Status)
	require.Equal(t, []string{"cancel A1 DELIVERED"}, f.outbox())
	require.Empty(t, f.refunds())
}

// Who closes the order right now may have another reason.
func TestCancelWhileSomebodyCloses(t *testing.T) {
	f, leases := newFixture(t), &desk{held: true, refuse: "order/"}
	f.url = f.start(f.cfg, nil, leases)
	f.create(orderA1)
	status, body := f.do("POST", "/orders/A1/cancel", "", nil)
	require.Equal(t, 202, status, body)
	leases.refuse = ""
	f.relay()
	require.Equal(t, "cancelled", f.order("A1").CloseReason)
}

// What fails in our own database is not a promise.
func TestCancelThatFailsHere(t *testing.T) {
	for _, c := range []struct{ name, broken string }{
		{"close", `BEFORE UPDATE ON orders`},
		{"promise", `BEFORE INSERT ON outbox`},
		{"charge", `BEFORE INSERT ON payment_records`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.create(orderA1)
			switch c.name {
			case "promise":
				f.bank.on("mock /query", refuse(500, "SYSTEM_ERROR"))
			case "charge":
				f.bank.pay("mock", "A1-1", "T1")
			}
			_, err := f.db.ExecContext(t.Context(), `CREATE TRIGGER broken `+c.broken+` BEGIN SELECT raise(ABORT, 'broken'); END`)
			require.NoError(t, err)
			before := f.dump()
			status, body := f.do("POST", "/orders/A1/cancel", "", nil)
			require.Equal(t, 503, status, body)
			require.Equal(t, "cancel_failed", code(t, body))
			require.Equal(t, before, f.dump())
		})
	}
}
