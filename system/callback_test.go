package system_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/signature"
)

const paidA1 = `{"orderNo":"A1","channel":"mock","channelTxn":"T1","amountCents":9900}`

func TestCallbackTenTimes(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.clock.advance(time.Second)
	status, first := f.callback(paidA1)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"orderNo":"A1","status":"PAID","result":"success"}`, first)
	after := f.dump()

	for range 9 {
		f.clock.advance(time.Second)
		status, again := f.callback(paidA1)
		require.Equal(t, 200, status)
		require.Equal(t, first, again)
	}
	require.Equal(t, after, f.dump())
	require.Equal(t, []string{"applied"}, f.column(`SELECT disposition FROM payment_records`))
	require.Equal(t, []string{"CREATED", "PAID"}, f.column(`SELECT to_status FROM order_status_log ORDER BY log_id`))
	require.Equal(t, []string{"PAID"}, f.column(`SELECT state FROM payment_orders`))
	order := f.order("A1")
	require.Equal(t, order.CreatedMs+1000, order.PaidMs)
}

func TestLateCallbackLeavesTheOrderClosed(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.clock.advance(15 * time.Minute)
	f.scan()
	closed := f.order("A1")
	require.Equal(t, system.Closed, closed.Status)
	require.Equal(t, "deadline", closed.CloseReason)
	require.Equal(t, []string{"CLOSED"}, f.column(`SELECT state FROM payment_orders`))

	f.clock.advance(time.Second)
	for range 2 {
		status, body := f.callback(paidA1)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"orderNo":"A1","status":"CLOSED","result":"success"}`, body)
	}
	require.Equal(t, closed, f.order("A1"))
	require.Equal(t, []string{"late"}, f.column(`SELECT disposition FROM payment_records`))
	require.Equal(t, []string{"CREATED", "CLOSED"}, f.column(`SELECT to_status FROM order_status_log ORDER BY log_id`))
}

func TestSecondTransactionIsSurplus(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.callback(paidA1)
	paid := f.order("A1")
	f.clock.advance(time.Second)
	status, body := f.callback(`{"orderNo":"A1","channel":"mock","channelTxn":"T2","amountCents":9900}`)
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"orderNo":"A1","status":"PAID","result":"success"}`, body)
	require.Equal(t, paid, f.order("A1"))
	require.Equal(t, []string{"applied", "surplus"}, f.column(`SELECT disposition FROM payment_records ORDER BY channel_txn`))
}

func TestRefusedCallbackChangesNothing(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.create(`{"orderNo":"A2","amountCents":9900}`)
	f.callback(`{"orderNo":"A2","channel":"mock","channelTxn":"T9","amountCents":9900}`)
	before := f.facts()

	sign := func(body string) string { return signature.Sign(signingKey, []byte(body), f.clock.Now()) }
	for _, c := range []struct {
		name, body, signed, code string
		status                   int
	}{
		{"unsigned", paidA1, "", "signature_missing", 401},
		{"forged", paidA1, signature.Sign([]byte("another key, not ours"), []byte(paidA1), f.clock.Now()), "signature_invalid", 401},
		{"for another body", paidA1, sign(paidA1 + " "), "signature_invalid", 401},
		{"stale", paidA1, signature.Sign(signingKey, []byte(paidA1), f.clock.Now().Add(-6*time.Minute)), "signature_stale", 401},
		{"from the future", paidA1, signature.Sign(signingKey, []byte(paidA1), f.clock.Now().Add(6*time.Minute)), "signature_stale", 401},
		{"unsigned nonsense", `{`, "", "signature_missing", 401},
		{"nonsense", `{`, sign(`{`), "body_invalid", 400},
		{"other merchant", `{"orderNo":"A1","channel":"mock","merchantId":"M2","channelTxn":"T1","amountCents":9900}`, "", "merchant_unknown", 403},
		{"unknown order", `{"orderNo":"A3","channel":"mock","channelTxn":"T1","amountCents":9900}`, "", "attempt_unknown", 404},
		{"unknown channel", `{"orderNo":"A1","channel":"other","channelTxn":"T1","amountCents":9900}`, "", "attempt_unknown", 404},
		{"unknown attempt", `{"orderNo":"A1","outTradeNo":"A1-2","channel":"mock","channelTxn":"T1","amountCents":9900}`, "", "attempt_unknown", 404},
		{"another order's attempt", `{"orderNo":"A1","outTradeNo":"A2-1","channel":"mock","channelTxn":"T1","amountCents":9900}`, "", "attempt_unknown", 404},
		{"wrong amount", `{"orderNo":"A1","channel":"mock","channelTxn":"T1","amountCents":1}`, "", "amount_mismatch", 422},
		{"wrong currency", `{"orderNo":"A1","channel":"mock","channelTxn":"T1","amountCents":9900,"currency":"USD"}`, "", "amount_mismatch", 422},
		{"no transaction", `{"orderNo":"A1","channel":"mock","amountCents":9900}`, "", "channel_txn_invalid", 400},
		{"known transaction, other order", `{"orderNo":"A1","channel":"mock","channelTxn":"T9","amountCents":9900}`, "", "transaction_conflict", 409},
		{"the same again", `{"orderNo":"A1","channel":"mock","channelTxn":"T9","amountCents":9900}`, "", "transaction_conflict", 409},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.signed == "" && c.status != 401 {
				c.signed = sign(c.body)
			}
			status, body := f.signed(c.body, c.signed)
			require.Equal(t, c.status, status, body)
			require.Equal(t, c.code, code(t, body))
			require.Equal(t, before, f.facts())
		})
	}
	require.Equal(t, []string{"charge-refused mock/T1 1", "charge-refused mock/T9 9900"}, f.raised(),
		"what an authentic channel says against our books is told, once")
}

func TestFailedDatabaseIsNoAck(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	_, err := f.db.ExecContext(t.Context(), `CREATE TRIGGER full BEFORE INSERT ON order_status_log BEGIN SELECT raise(ABORT, 'full'); END`)
	require.NoError(t, err)
	before := f.dump()
	status, body := f.callback(paidA1)
	require.Equal(t, 500, status)
	require.Equal(t, "internal", code(t, body))
	require.Equal(t, before, f.dump())
}
