package system_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

func TestCreateSameContentSameAnswer(t *testing.T) {
	f := newFixture(t)
	status, first := f.create(`{"orderNo":"A1","amountCents":9900}`)
	require.Equal(t, 201, status, first)
	require.JSONEq(t, `{"orderNo":"A1","status":"CREATED","amountCents":9900,"currency":"CNY","createdMs":1700000000000,
		"deadlineMs":1700000900000,"channel":"mock","outTradeNo":"A1-1","prepayToken":"P-A1-1"}`, first)

	f.clock.advance(time.Second)
	before := f.dump()
	status, again := f.create(`{"currency":"CNY","amountCents":9900,"orderNo":"A1"}`)
	require.Equal(t, 200, status)
	require.Equal(t, first, again)
	require.Equal(t, before, f.dump())
	require.Equal(t, 1, f.bank.count("mock /prepay"))

	for _, other := range []string{`{"orderNo":"A1","amountCents":9901}`, `{"orderNo":"A1","amountCents":9900,"currency":"USD"}`} {
		status, body := f.create(other)
		require.Equal(t, 409, status)
		require.Equal(t, "order_conflict", code(t, body))
	}
	require.Equal(t, before, f.dump())
}

func TestCreateAtOnce(t *testing.T) {
	f := newFixture(t)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			f.do("POST", "/orders", fmt.Sprintf(`{"orderNo":"A1","amountCents":%d}`, 100+n%2), http.Header{})
		})
	}
	group.Wait()
	require.Len(t, f.column(`SELECT order_no FROM orders`), 1)
	require.Equal(t, []string{"A1-1"}, f.column(`SELECT out_trade_no FROM payment_orders`))
	require.Equal(t, []string{"CREATED"}, f.column(`SELECT to_status FROM order_status_log`))
}

func TestCreateWhenPrepayFails(t *testing.T) {
	for name, channel := range map[string]http.HandlerFunc{
		"error":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"nonsense":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"other trade": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"outTradeNo":"X","prepayToken":"P"}`) },
		"no token":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"outTradeNo":"A1-1"}`) },
		"late":        func(http.ResponseWriter, *http.Request) { time.Sleep(200 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *system.Config) { c.CallTimeout = 50 * time.Millisecond })
			f.bank.on("mock /prepay", channel)
			status, body := f.create(`{"orderNo":"A1","amountCents":9900}`)
			require.Equal(t, 202, status, body)
			require.Equal(t, system.Created, f.order("A1").Status)
			require.Empty(t, f.order("A1").PrepayToken)

			f.bank.on("mock /prepay", nil)
			status, body = f.create(`{"orderNo":"A1","amountCents":9900}`)
			require.Equal(t, 200, status, body)
			require.Equal(t, "P-A1-1", f.order("A1").PrepayToken)
			require.Equal(t, []string{"A1-1"}, f.column(`SELECT out_trade_no FROM payment_orders`))
		})
	}
}

func TestBadInputChangesNothing(t *testing.T) {
	f := newFixture(t)
	before := f.dump()
	for _, c := range []struct {
		body, code string
		status     int
	}{
		{`{`, "body_invalid", 400},
		{`{"orderNo":"A1","amountCents":9900} x`, "body_invalid", 400},
		{`{"orderNo":"A1","amountCents":"9900"}`, "body_invalid", 400},
		{`{"orderNo":"A1","amountCents":99.5}`, "body_invalid", 400},
		{`{"orderNo":"A1","amountCents":9223372036854775808}`, "body_invalid", 400},
		{`{"orderNo":"A1"}`, "amount_invalid", 400},
		{`{"orderNo":"A1","amountCents":0}`, "amount_invalid", 400},
		{`{"orderNo":"A1","amountCents":-1}`, "amount_invalid", 400},
		{`{"orderNo":"A1","amountCents":9223372036854775807}`, "amount_invalid", 400},
		{`{"orderNo":"A1","amountCents":9900,"currency":"yuan"}`, "currency_invalid", 400},
		{`{"amountCents":9900}`, "order_no_invalid", 400},
		{`{"orderNo":"A 1","amountCents":9900}`, "order_no_invalid", 400},
		{`{"orderNo":"` + strings.Repeat("A", 65) + `","amountCents":9900}`, "order_no_invalid", 400},
		{`{"orderNo":"` + strings.Repeat("A", 70_000) + `","amountCents":9900}`, "body_too_large", 413},
	} {
		status, body := f.create(c.body)
		require.Equal(t, c.status, status, body)
		require.Equal(t, c.code, code(t, body), "%.80s", c.body)
	}
	status, body := f.do("GET", "/orders/A1", "", http.Header{})
	require.Equal(t, 404, status)
	require.Equal(t, "order_unknown", code(t, body))
	status, body = f.do("GET", "/nowhere", "", http.Header{})
	require.Equal(t, 404, status)
	require.Equal(t, "route_unknown", code(t, body))
	require.Equal(t, before, f.dump())

	status, _ = f.do("GET", "/healthz", "", http.Header{})
	require.Equal(t, 200, status)
}
