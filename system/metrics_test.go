package system_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMetrics(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A0","amountCents":9900,"sku":"S1","quantity":1}`)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.create(`{"orderNo":"A2","amountCents":9900}`)
	f.callback(`{"orderNo":"A0","channel":"mock","channelTxn":"T1","amountCents":9900}`)
	f.callback(`{"orderNo":"A0","channel":"mock","channelTxn":"T2","amountCents":1}`)
	f.signed(`{}`, "")
	f.clock.advance(15*time.Minute + 2500*time.Millisecond)
	status, text := f.do("GET", "/metrics", "", http.Header{})
	require.Equal(t, 200, status, text)
	for _, line := range []string{
		`till_orders_pending 2`,
		`till_orders_overdue 2`,
		`till_orders_overdue_seconds 2.5`,
		`till_outbox_depth 1`,
		`till_callbacks_total{channel="mock"} 1`,
		`till_callback_failures_total{code="amount_mismatch"} 1`,
		`till_callback_failures_total{code="signature_missing"} 1`,
	} {
		require.Contains(t, text, "\n"+line+"\n")
	}
	f.relay()
	f.scan()
	f.relay()
	_, text = f.do("GET", "/metrics", "", http.Header{})
	require.Contains(t, text, "\ntill_orders_pending 0\n")
	require.Contains(t, text, "\ntill_outbox_depth 0\n")
	require.Contains(t, text, "\ntill_close_lag_seconds_count 2\n")
	require.Contains(t, text, "\ntill_close_lag_seconds_sum 5\n")
}

func TestAlertsAreListedPageByPage(t *testing.T) {
	f := newFixture(t)
	_, err := f.db.Exec(`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 101)
		INSERT INTO alerts SELECT n, 'record-missing', 'mock/T' || n, 9900, 'CNY', 'detail', 'trace', 5 FROM n`)
	require.NoError(t, err)
	_, text := f.do("GET", "/alerts", "", http.Header{})
	require.Contains(t, text, `{"alertId":1,"kind":"record-missing","subject":"mock/T1","amountCents":9900,"currency":"CNY","detail":"detail","traceId":"trace","raisedMs":5}`)
	require.Contains(t, text, `"next":100`)
	_, text = f.do("GET", "/alerts?after=100", "", http.Header{})
	require.Contains(t, text, `"subject":"mock/T101"`)
	require.Contains(t, text, `"next":0`)
	status, text := f.do("GET", "/alerts?after=x", "", http.Header{})
	require.Equal(t, 400, status)
	require.Equal(t, "after_invalid", code(t, text))
	_, text = f.do("GET", "/metrics", "", http.Header{})
	require.Contains(t, text, `till_alerts{kind="record-missing"} 101`)
}
