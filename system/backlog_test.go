package system_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// direct hands requests to a handler without a network between.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// backlog is a shop with 5,000 unpaid orders that have just become due, each with stock and with its trade open at one
// of the two channels.
func backlog(t *testing.T) (*fixture, *seen) {
	f := newFixture(t, func(c *system.Config) { c.CallTimeout = 300 * time.Millisecond })
	seen := f.watched(&http.Client{Transport: direct{f.bank}})
	for _, query := range []string{`
INSERT INTO orders (order_no, amount_cents, currency, channel, sku, quantity, stock_no, status, created_ms, deadline_ms)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
SELECT printf('A%04d', i), 100, 'CNY', iif(i % 2, 'mock', 'second'), 'S1', 1, printf('A%04d', i), 'CREATED',
       db_now_ms() - 900000, db_now_ms() - i % 7 FROM n`, `
INSERT INTO payment_orders (out_trade_no, order_no, channel, attempt, state, prepay_token, created_ms, next_query_ms)
SELECT order_no || '-1', order_no, channel, 1, 'OPEN', 'P', created_ms, db_now_ms() + 600000 FROM orders`,
	} {
		_, err := f.db.ExecContext(t.Context(), query)
		require.NoError(t, err)
	}
	for _, text := range f.column(`SELECT json_object('outTradeNo', out_trade_no, 'orderNo', order_no, 'channel', channel) FROM payment_orders`) {
		trade := bankTrade{State: "NOTPAY", AmountCents: 100, Currency: "CNY"}
		var of struct{ Channel string }
		require.NoError(t, json.Unmarshal([]byte(text), &trade))
		require.NoError(t, json.Unmarshal([]byte(text), &of))
		f.bank.trades[of.Channel+" "+trade.OutTradeNo] = &trade
	}
	return f, seen
}

// hangs answers nothing until the caller gives up.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// One scan closes what is due of 5,000 orders in batches, and holds neither all of them nor all their messages in memory.
// A channel and a stock service that hang keep nothing else waiting; when they answer again, the rest is done at once.
func TestBacklogIsClosedInBatches(t *testing.T) {
	t.Parallel()
	f, seen := backlog(t)
	f.bank.on("second /query", hangs)
	f.bank.on("stock /release", hangs)
	started := time.Now()
	f.scan()
	require.Equal(t, []string{"CLOSED mock 2500", "CREATED second 2500"},
		f.column(`SELECT status || ' ' || channel || ' ' || count(*) FROM orders GROUP BY status, channel ORDER BY 1`))
	require.Less(t, f.bank.count("second /query"), 10)
	require.LessOrEqual(t, f.loops.waiting(), 64, "messages in memory")
	f.run("outbox-relay")
	require.Less(t, f.bank.count("stock /release"), 10)
	require.Len(t, f.column(`SELECT 1 FROM outbox WHERE state = 'PENDING'`), 2500)

	f.bank.on("second /query", nil)
	f.bank.on("stock /release", nil)
	f.clock.advance(time.Minute)
	f.scan()
	f.run("outbox-relay")
	t.Logf("two scans and two relays took %v", time.Since(started).Round(time.Millisecond))
	require.Equal(t, []string{"CLOSED 5000"}, f.column(`SELECT status || ' ' || count(*) FROM orders GROUP BY status`))
	require.Equal(t, []string{"DELIVERED 5000"}, f.column(`SELECT state || ' ' || count(*) FROM outbox GROUP BY state`))
	require.Equal(t, []string{"5000 5000"}, f.column(`SELECT count(*) || ' ' || count(DISTINCT order_no) FROM order_status_log`))
	require.Equal(t, 5000, f.bank.count("stock /release")-3, "each once, but for the three that hung")
	for statement, rows := range seen.most {
		require.LessOrEqual(t, rows, 100, nameOf(statement))
		if nameOf(statement) == "ListDueOrders" {
			require.Equal(t, 100, rows)
		}
	}
}
