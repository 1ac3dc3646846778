package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/signature"
)

// charged posts a callback signed now.
func charged(shop *instance, order, txn string, cents int) (int, string, error) {
	body := fmt.Sprintf(`{"orderNo":%q,"channel":"mock","channelTxn":%q,"amountCents":%d}`, order, txn, cents)
	return post(shop.url+"/callback/pay", body, signature.Header, signature.Sign([]byte(developmentKey), []byte(body), time.Now()))
}

// 200 creates at once and then 200 callbacks at once, half of them at each instance: of 100 orders, each is created twice
// and charged twice at the same moment. One charge of each pays its order, the other goes back.
func TestTwoHundredAtOnceLeaveExactBooks(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shops := []*instance{serveOn(t, data), serveOn(t, data)}
	const orders = 100
	atOnce := func(request func(shop *instance, n, twin int) (int, string, error)) map[int]int {
		answers := make([]atomic.Int64, 600)
		var group sync.WaitGroup
		for n := range orders {
			for twin := range 2 {
				group.Go(func() {
					status, _, err := request(shops[twin], n, twin)
					if err == nil {
						answers[status].Add(1)
					}
				})
			}
		}
		group.Wait()
		counts := map[int]int{}
		for status := range answers {
			if count := answers[status].Load(); count > 0 {
				counts[status] = int(count)
			}
		}
		return counts
	}
	created := atOnce(func(shop *instance, n, _ int) (int, string, error) {
		return post(shop.url+"/orders", fmt.Sprintf(`{"orderNo":"A%d","amountCents":%d}`, n, 100+n))
	})
	require.Equal(t, map[int]int{201: orders, 200: orders}, created)
	paid := atOnce(func(shop *instance, n, twin int) (int, string, error) {
		return charged(shop, fmt.Sprint("A", n), fmt.Sprintf("T%d-%d", n, twin), 100+n)
	})
	require.Equal(t, map[int]int{200: 2 * orders}, paid)
	for _, shop := range shops {
		require.Zero(t, shop.end(syscall.SIGTERM))
	}

	db, err := openDB(t.Context(), data, "orders", system.Migrate)
	require.NoError(t, err)
	defer db.Close()
	require.Equal(t, map[string]string{
		"orders PAID":     "100 14950",
		"records applied": "100 14950",
		"records surplus": "100 14950",
		"refunds surplus": "100 14950",
		"log CREATED":     "100 0",
		"log PAID":        "100 0",
	}, pairs(t, db, `
SELECT 'orders ' || status, count(*) || ' ' || sum(amount_cents) FROM orders GROUP BY status
UNION ALL SELECT 'records ' || disposition, count(*) || ' ' || sum(amount_cents) FROM payment_records GROUP BY disposition
UNION ALL SELECT 'refunds ' || cause, count(*) || ' ' || sum(amount_cents) FROM refunds GROUP BY cause
UNION ALL SELECT 'log ' || to_status, count(*) || ' 0' FROM order_status_log GROUP BY to_status`))
	require.Empty(t, pairs(t, db, `
SELECT order_no, count(*) FROM payment_records GROUP BY order_no HAVING count(*) <> 2 OR sum(disposition = 'applied') <> 1
UNION ALL SELECT o.order_no, 'paid by another' FROM orders o JOIN payment_records r ON r.channel = o.paid_channel AND r.channel_txn = o.paid_txn
WHERE r.order_no <> o.order_no OR r.disposition <> 'applied'`))
}

func TestNumberAgainWithAnotherAmount(t *testing.T) {
	t.Parallel()
	shop := serveOn(t, t.TempDir())
	status, _, err := post(shop.url+"/orders", `{"orderNo":"A1","amountCents":9900}`)
	require.NoError(t, err)
	require.Equal(t, 201, status)
	_, before, err := get(shop.url + "/orders/A1")
	require.NoError(t, err)
	status, body, err := post(shop.url+"/orders", `{"orderNo":"A1","amountCents":9901}`)
	require.NoError(t, err)
	require.Equal(t, 409, status)
	require.Contains(t, body, `"order_conflict"`)
	_, after, err := get(shop.url + "/orders/A1")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A callback that comes after the close, again and again and at another instance: the order stays closed, and the money
// goes back once.
func TestClosedThenReplayedStaysClosed(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	args := []string{"--pay-window", "300ms", "--scan-every", "100ms", "--close", "local-only"}
	shops := []*instance{serveOn(t, data, args...), serveOn(t, data, args...)}
	status, _, err := post(shops[0].url+"/orders", `{"orderNo":"A1","amountCents":9900}`)
	require.NoError(t, err)
	require.Equal(t, 201, status)
	closed := func() bool {
		_, body, err := get(shops[1].url + "/orders/A1")
		return err == nil && strings.Contains(body, `"CLOSED"`)
	}
	require.Eventually(t, closed, 10*time.Second, 20*time.Millisecond)
	for n := range 6 {
		status, body, err := charged(shops[n%2], "A1", "T1", 9900)
		require.NoError(t, err)
		require.Equal(t, 200, status)
		require.Equal(t, `{"orderNo":"A1","status":"CLOSED","result":"success"}`+"\n", body)
	}
	require.True(t, closed())
	_, body, err := get(shops[0].url + "/orders/A1/refunds")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(body, `"refundNo"`), body)
	require.Contains(t, body, `"refundNo":"R-mock-T1"`)
	require.Contains(t, body, `"amountCents":9900`)
}
