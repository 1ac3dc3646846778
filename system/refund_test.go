package system_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/signature"
)

// paidOrder is a fixture with the order A1, paid by T1 with 9900.
func paidOrder(t *testing.T, change ...func(*system.Config)) *fixture {
	f := newFixture(t, change...)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.bank.pay("mock", "A1-1", "T1")
	f.callback(paidA1)
	return f
}

func (f *fixture) refund(body string) (int, string) {
	f.Helper()
	return f.do("POST", "/orders/A1/refunds", body, http.Header{})
}

func (f *fixture) refundCallback(body string) (int, string) {
	f.Helper()
	return f.do("POST", "/callback/refund", body, http.Header{signature.Header: {signature.Sign(signingKey, []byte(body), f.clock.Now())}})
}

func TestFullRefund(t *testing.T) {
	f := paidOrder(t)
	status, body := f.refund(`{"refundNo":"Q1"}`)
	require.Equal(t, 202, status, body)
	require.Equal(t, system.Refunding, f.order("A1").Status)
	for range 2 {
		status, again := f.refund(`{"refundNo":"Q1","amountCents":9900,"currency":"CNY"}`)
		require.Equal(t, 202, status)
		require.Equal(t, body, again)
	}
	f.relay()
	require.Equal(t, []string{"Q1 9900 request ACCEPTED"}, f.refunds(), "accepted is not done")
	require.Equal(t, system.Refunding, f.order("A1").Status)

	notice := `{"refundNo":"Q1","outTradeNo":"A1-1","orderNo":"A1","channel":"mock","merchantId":"M1","state":"SUCCESS","amountCents":9900,"currency":"CNY"}`
	for range 2 {
		status, body := f.refundCallback(notice)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"refundNo":"Q1","result":"success"}`, body)
	}
	status, body = f.refundCallback(`{"refundNo":"Q1","channel":"mock","state":"SUCCESS","amountCents":9900}`)
	require.Equal(t, 200, status, "who names no currency means ours, as in a pay callback: %s", body)
	require.Empty(t, f.raised())
	order := f.order("A1")
	require.Equal(t, system.Refunded, order.Status)
	require.EqualValues(t, 9900, order.RefundedCents)
	require.Equal(t, []string{"CREATED", "PAID", "REFUNDING", "REFUNDED"}, f.column(`SELECT to_status FROM order_status_log ORDER BY log_id`))
	status, _ = f.refund(`{"refundNo":"Q1"}`)
	require.Equal(t, 200, status)
	status, body = f.refund(`{"refundNo":"Q2"}`)
	require.Equal(t, 422, status)
	require.Equal(t, "refund_exceeds_paid", code(t, body))
}

func TestPartialRefunds(t *testing.T) {
	f := paidOrder(t)
	f.refund(`{"refundNo":"Q1","amountCents":4000}`)
	f.relay()
	f.bank.refundEnds("Q1", "SUCCESS")
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, system.Paid, f.order("A1").Status)
	require.EqualValues(t, 4000, f.order("A1").RefundedCents)

	f.refund(`{"refundNo":"Q2","amountCents":5900}`)
	require.Equal(t, system.Refunding, f.order("A1").Status)
	f.relay()
	f.bank.refundEnds("Q2", "SUCCESS")
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, system.Refunded, f.order("A1").Status)
	_, body := f.do("GET", "/orders/A1/refunds", "", nil)
	require.Contains(t, body, `"refundNo":"Q1"`)
	require.Contains(t, body, `"refundNo":"Q2"`)
}

// Two refunds of 60 out of 100 at the same moment.
func TestRefundsAtOnceAreBounded(t *testing.T) {
	f := paidOrder(t)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() { f.refund(fmt.Sprintf(`{"refundNo":"Q%d","amountCents":6000}`, n)) })
	}
	group.Wait()
	require.Len(t, f.refunds(), 1)
}

// The same idempotency key is the same refund, also when all that is known of it is the row.
func TestRefundNumberFollowsFromTheKey(t *testing.T) {
	f := paidOrder(t)
	key := http.Header{"Idempotency-Key": {"K1"}}
	for range 3 {
		status, body := f.do("POST", "/orders/A1/refunds", `{"amountCents":1000}`, key)
		require.Equal(t, 202, status, body)
	}
	require.Len(t, f.refunds(), 1)
	f.refund(`{"amountCents":1000}`)
	f.refund(`{"amountCents":1000}`)
	require.Len(t, f.refunds(), 3)
}

// The channel has executed the refund, but its reply was lost: the retry keeps the number.
func TestRefundReplyLost(t *testing.T) {
	f := paidOrder(t)
	lost := func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }
	f.bank.on("mock /refund", lost)
	f.refund(`{"refundNo":"Q1","amountCents":4000}`)
	f.relay()
	f.bank.on("mock /refund", nil)
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, []string{"Q1 4000 request REQUESTED"}, f.refunds(), "unknown to the channel is not failed")
	f.run("outbox-relay")
	require.Equal(t, []string{"Q1 4000 request ACCEPTED"}, f.refunds())
	require.Equal(t, 2, f.bank.count("mock /refund Q1"))
	require.Len(t, f.bank.refunds, 1)
}

func TestFailedRefund(t *testing.T) {
	f := paidOrder(t)
	f.refund(`{"refundNo":"Q1"}`)
	f.relay()
	f.bank.refundEnds("Q1", "ABNORMAL")
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, []string{"Q1 9900 request FAILED"}, f.refunds())
	require.Equal(t, []string{"refund-failed mock/Q1 9900"}, f.column(`SELECT kind || ' ' || subject || ' ' || amount_cents FROM alerts`))
	status, body := f.refund(`{"refundNo":"Q2"}`)
	require.Equal(t, 422, status, "the money may still arrive: %s", body)

	f.bank.refundEnds("Q1", "CLOSED")
	f.clock.advance(6 * time.Hour)
	f.run("refund-query")
	status, _ = f.refund(`{"refundNo":"Q2"}`)
	require.Equal(t, 202, status)
	f.relay()
	f.bank.refundEnds("Q2", "SUCCESS")
	f.clock.advance(time.Minute)
	f.run("refund-query")
	require.Equal(t, system.Refunded, f.order("A1").Status)
	require.Empty(t, f.column(`SELECT refund_no FROM refunds WHERE next_query_ms IS NOT NULL`))
}

func TestAbnormalRefundMaySucceed(t *testing.T) {
	f := paidOrder(t)
	f.refund(`{"refundNo":"Q1"}`)
	f.relay()
	for _, state := range []string{"ABNORMAL", "PROCESSING", "SUCCESS", "ABNORMAL", "CLOSED"} { // in no order
		status, body := f.refundCallback(`{"refundNo":"Q1","channel":"mock","state":"` + state + `","amountCents":9900,"currency":"CNY"}`)
		require.Equal(t, 200, status, body)
	}
	require.Equal(t, []string{"Q1 9900 request SUCCEEDED"}, f.refunds())
	require.Equal(t, system.Refunded, f.order("A1").Status)
}

func TestRefusedRefundChangesNothing(t *testing.T) {
	f := paidOrder(t)
	f.create(`{"orderNo":"A2","amountCents":100}`)
	f.refund(`{"refundNo":"Q1","amountCents":4000}`)
	before := f.facts()
	for _, c := range []struct {
		path, body, code string
		status           int
	}{
		{"/orders/A2/refunds", `{}`, "order_not_refundable", 409},
		{"/orders/A3/refunds", `{}`, "order_unknown", 404},
		{"/orders/A1/refunds", `{"amountCents":5901}`, "refund_exceeds_paid", 422},
		{"/orders/A1/refunds", `{"amountCents":-1}`, "amount_invalid", 400},
		{"/orders/A1/refunds", `{"amountCents":0}`, "amount_invalid", 400},
		{"/orders/A1/refunds", `{"amountCent":100}`, "field_unknown", 400},
		{"/orders/A1/refunds", `{"amountCents":9223372036854775807}`, "amount_invalid", 400},
		{"/orders/A1/refunds", `{"amountCents":1,"currency":"USD"}`, "currency_mismatch", 422},
		{"/orders/A1/refunds", `{"refundNo":"Q1","amountCents":4001}`, "refund_conflict", 409},
		{"/orders/A2/refunds", `{"refundNo":"Q1","amountCents":1}`, "refund_conflict", 409},
		{"/orders/A1/refunds", `{"refundNo":"R-mock-T9","amountCents":1}`, "refund_no_invalid", 400},
		{"/orders/A1/refunds", `{"refundNo":"no good","amountCents":1}`, "refund_no_invalid", 400},
	} {
		status, body := f.do("POST", c.path, c.body, http.Header{})
		require.Equal(t, c.status, status, body)
		require.Equal(t, c.code, code(t, body), c.body)
	}
	for _, c := range []struct {
		body, code string
		status     int
	}{
		{`{"refundNo":"Q9","channel":"mock","state":"SUCCESS","amountCents":4000,"currency":"CNY"}`, "refund_unknown", 404},
		{`{"refundNo":"Q1","channel":"second","state":"SUCCESS","amountCents":4000,"currency":"CNY"}`, "refund_unknown", 404},
		{`{"refundNo":"Q1","channel":"mock","state":"SUCCESS","amountCents":1,"currency":"CNY"}`, "amount_mismatch", 422},
		{`{"refundNo":"Q1","channel":"mock","state":"DONE","amountCents":4000,"currency":"CNY"}`, "refund_state_invalid", 400},
		{`{"refundNo":"Q1","channel":"mock","state":"SUCCESS"}`, "amount_invalid", 400},
		{`{"refundNo":"Q1","channel":"mock","state":"SUCCESS","amountCents":4000,"currency":"cny"}`, "currency_invalid", 400},
		{`{"refundNo":"Q1","channel":"mock","merchantId":"M2","state":"SUCCESS","amountCents":4000,"currency":"CNY"}`, "merchant_unknown", 403},
	} {
		status, body := f.refundCallback(c.body)
		require.Equal(t, c.status, status, body)
		require.Equal(t, c.code, code(t, body), c.body)
	}
	status, body := f.do("POST", "/callback/refund", `{}`, http.Header{})
	require.Equal(t, 401, status)
	require.Equal(t, "signature_missing", code(t, body))
	require.Equal(t, before, f.facts())
	require.Equal(t, []string{"refund-mismatch mock/Q1 1"}, f.raised())
}

// A no that nothing will change ends a refund at once; anything else leaves it owed, under the same number.
func TestRefusedRefundEnds(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		ends   bool
	}{
		{409, "TRADE_NOT_PAID", true},
		{409, "REFUND_TOO_MUCH", true},
		{409, "REFUND_TOO_MANY", true},
		{409, "REFUND_NO_USED", true},
		{400, "PARAM_ERROR", true},
		{404, "TRADE_NOT_EXIST", false}, // not yet
		{500, "SYSTEM_ERROR", false},
		{502, "TRADE_NOT_PAID", false}, // whoever says so isn't the channel
		{429, "FREQUENCY_LIMITED", false},
		{403, "NOT_ENOUGH", false}, // of our own money, at the channel
		{401, "SIGN_ERROR", false},
		{409, "IDEMPOTENCY_IN_FLIGHT", false},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.code), func(t *testing.T) {
			f := paidOrder(t)
			f.bank.on("mock /refund", refuse(c.status, c.code))
			f.refund(`{"refundNo":"Q1"}`)
			f.relay()
			if c.ends {
				require.Equal(t, []string{"Q1 9900 request FAILED"}, f.refunds())
				require.Equal(t, []string{"refund Q1 DELIVERED"}, f.outbox())
				require.Equal(t, []string{"refund-failed mock/Q1 9900 the channel says " + c.code + " of refund Q1 of 9900 cents CNY for order A1"},
					f.column(`SELECT kind || ' ' || subject || ' ' || amount_cents || ' ' || detail FROM alerts`))
			} else {
				require.Equal(t, []string{"Q1 9900 request REQUESTED"}, f.refunds())
				require.Empty(t, f.raised())
			}

			// Nothing is lost: either the refund goes through at last, or its money can be asked for again.
			require.Equal(t, system.Refunding, f.order("A1").Status)
			f.bank.on("mock /refund", nil)
			if c.ends {
				status, body := f.refund(`{"refundNo":"Q2"}`)
				require.Equal(t, 202, status, body)
			}
			f.clock.advance(time.Minute)
			f.run("outbox-relay")
			f.bank.endRefunds()
			f.clock.advance(time.Minute)
			f.run("refund-query")
			require.Equal(t, system.Refunded, f.order("A1").Status)
			require.Len(t, f.bank.refunds, 1)
		})
	}
}

// A trade that its channel has charged and doesn't know is a lag, for a while.
func TestRefundOfUnknownTrade(t *testing.T) {
	f := paidOrder(t)
	f.bank.on("mock /refund", refuse(404, "TRADE_NOT_EXIST"))
	f.refund(`{"refundNo":"Q1"}`)
	f.relay()
	f.clock.advance(59 * time.Second)
	f.run("outbox-relay")
	require.Equal(t, []string{"Q1 9900 request REQUESTED"}, f.refunds())
	f.clock.advance(time.Minute)
	f.run("outbox-relay")
	require.Equal(t, []string{"Q1 9900 request FAILED"}, f.refunds())
	require.Equal(t, []string{"refund-failed mock/Q1 9900"}, f.raised())
}

// The first try was executed and its answer lost; the channel refuses the second. The refund's own number tells.
func TestRefusalAfterLostReply(t *testing.T) {
	f := paidOrder(t)
	f.refund(`{"refundNo":"Q1"}`)
	f.bank.on("mock /refund", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	f.relay()
	f.bank.refunds["Q1"] = &bankRefund{RefundNo: "Q1", State: "PROCESSING"}
	f.bank.on("mock /refund", refuse(409, "REFUND_TOO_MUCH"))
	f.bank.on("mock /refund/query", refuse(500, "SYSTEM_ERROR"))
	f.clock.advance(10 * time.Second)
	f.run("outbox-relay")
	require.Equal(t, []string{"Q1 9900 request REQUESTED"}, f.refunds(), "nobody knows")
	f.bank.on("mock /refund/query", nil)
	f.clock.advance(10 * time.Second)
	f.run("outbox-relay")
	require.Equal(t, []string{"Q1 9900 request ACCEPTED"}, f.refunds())
	require.Empty(t, f.raised())
}

// Somebody else's refund under our number isn't ours.
func TestRefundNumberUsedByAnother(t *testing.T) {
	f := paidOrder(t)
	f.bank.on("mock /refund", refuse(409, "REFUND_NO_USED"))
	f.bank.on("mock /refund/query", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"refundNo":"Q1","state":"SUCCESS","amountCents":1,"currency":"CNY"}`)
	})
	f.refund(`{"refundNo":"Q1"}`)
	f.relay()
	require.Equal(t, []string{"Q1 9900 request FAILED"}, f.refunds())
	require.Equal(t, system.Refunding, f.order("A1").Status)
	f.clock.advance(time.Hour)
	f.run("refund-query")
	require.Equal(t, []string{"Q1 9900 request FAILED"}, f.refunds())
}
