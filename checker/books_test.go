package checker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// rows are the books as they stand when a run has settled, each row as DATABASE.TABLE
// COLUMN=VALUE ...; amounts are in cents, the currency is CNY.
const (
	paidOrder    = "shop.orders order_no=A status=PAID amount_cents=19800 paid_channel=wechat paid_txn=T1"
	waitingOrder = "shop.orders order_no=A status=CREATED amount_cents=19800 deadline_ms=900000"
	closedOrder  = "shop.orders order_no=A status=CLOSED amount_cents=19800"
	charge       = "wechat.charges channel_txn=T1 order_no=A amount_cents=19800"
	applied      = "shop.payment_records channel=wechat channel_txn=T1 order_no=A amount_cents=19800 disposition=applied"
	late         = "shop.payment_records channel=wechat channel_txn=T1 order_no=A amount_cents=19800 disposition=late"
	ourRefund    = "shop.refunds channel=wechat refund_no=R1 channel_txn=T1 order_no=A amount_cents=19800 state=SUCCEEDED"
	theirRefund  = "wechat.refunds refund_no=R1 channel_txn=T1 order_no=A amount_cents=19800 state=SUCCESS"
)

// TestBooks has the twins of the properties that compare whole books.
func TestBooks(t *testing.T) {
	for _, twin := range []struct {
		name, rows string
		breaks     string // property, "" for a legal twin
		tells      string
	}{
		{"an order that was paid", lines(paidOrder, charge, applied), "", ""},
		{"an order whose money went back", lines(paidOrder, charge, applied, theirRefund, ourRefund, strings.Replace(paidOrder, "PAID", "REFUNDED", 1)), "", ""},
		{"a late charge that went back", lines(closedOrder, charge, late, theirRefund, ourRefund), "", ""},
		{"nothing happened", "", "", ""},
		{"a refund in two parts", lines(closedOrder, charge, late,
			strings.ReplaceAll(theirRefund, "19800", "9800"), strings.ReplaceAll(ourRefund, "19800", "9800"),
			strings.ReplaceAll(strings.ReplaceAll(theirRefund, "19800", "10000"), "R1", "R2"),
			strings.ReplaceAll(strings.ReplaceAll(ourRefund, "19800", "10000"), "R1", "R2")), "", ""},
		{"a refund that the channel closed", lines(paidOrder, charge, applied,
			strings.Replace(theirRefund, "SUCCESS", "CLOSED", 1), strings.Replace(ourRefund, "SUCCEEDED", "FAILED channel_state=CLOSED", 1)), "", ""},

		{"a late charge whose refund the channel closed", lines(closedOrder, charge, late,
			strings.Replace(theirRefund, "SUCCESS", "CLOSED", 1), strings.Replace(ourRefund, "SUCCEEDED", "FAILED channel_state=CLOSED cause=late", 1)), "", ""},
		{"a late charge whose refund failed for us alone", lines(closedOrder, charge, late,
			strings.Replace(theirRefund, "SUCCESS", "ABNORMAL", 1), strings.Replace(ourRefund, "SUCCEEDED", "FAILED channel_state=CLOSED cause=late", 1)),
			"no-orphan-money", "nothing of it went back"},

		{"a late charge that is kept", lines(closedOrder, charge, late), "no-orphan-money", "nothing of it went back"},
		{"a late charge, half of which went back", lines(closedOrder, charge, late,
			strings.ReplaceAll(theirRefund, "19800", "9900"), strings.ReplaceAll(ourRefund, "19800", "9900")), "no-orphan-money", "99.00 CNY of it went back"},
		{"a late charge that went back twice", lines(closedOrder, charge, late, ourRefund, theirRefund,
			strings.Replace(theirRefund, "R1", "R2", 1), strings.Replace(ourRefund, "R1", "R2", 1)), "no-orphan-money", "396.00 CNY of it went back"},
		{"a surplus charge that is kept", lines(paidOrder, charge, applied,
			strings.Replace(charge, "T1", "T2", 1), strings.Replace(strings.Replace(applied, "T1", "T2", 1), "applied", "surplus", 1)), "no-orphan-money", "did not pay it"},

		{"an order that counts as refunded before its money is back", lines(paidOrder, charge, applied, strings.Replace(paidOrder, "PAID", "REFUNDED", 1), theirRefund, ourRefund),
			"books-match-channel", "wechat has given back 0.00 CNY of it"},
		{"an order that counts as refunded, and half of its money went back", lines(strings.Replace(paidOrder, "PAID", "REFUNDED", 1), charge, applied,
			strings.ReplaceAll(theirRefund, "19800", "9900"), strings.ReplaceAll(ourRefund, "19800", "9900")), "no-orphan-money", "99.00 CNY of it went back"},
		{"an order that counts as paid, and its money went back", lines(paidOrder, charge, applied, theirRefund, ourRefund), "no-orphan-money", "198.00 CNY of it went back"},

		{"a charge that we never booked", lines(paidOrder, charge), "books-match-channel", "is not in our books"},
		{"a charge that no channel knows", lines(paidOrder, applied), "books-match-channel", "no channel knows it"},
		{"a charge with another amount", lines(paidOrder, charge, strings.ReplaceAll(applied, "19800", "19799")), "books-match-channel", "197.99 CNY in our books"},
		{"a paying charge booked as surplus", lines(paidOrder, charge, strings.Replace(applied, "applied", "surplus", 1)), "books-match-channel", "is booked as surplus"},
		{"a late charge booked as applied", lines(closedOrder, charge, applied, theirRefund, ourRefund), "books-match-channel", "is booked as applied"},
		{"a refund that we don't know of", lines(closedOrder, charge, late, theirRefund), "books-match-channel", "our books don't have it"},
		{"a refund that the channel has closed, and we take for one under way", lines(paidOrder, charge, applied,
			strings.Replace(theirRefund, "SUCCESS", "CLOSED", 1), strings.Replace(ourRefund, "SUCCEEDED", "FAILED channel_state=ABNORMAL", 1)),
			"books-match-channel", "is CLOSED for the channel, and FAILED ABNORMAL in our books"},
		{"a refund that never was", lines(paidOrder, charge, applied, ourRefund), "books-match-channel", "the channel says nothing of it"},
		{"a refund that is only accepted", lines(closedOrder, charge, late,
			strings.Replace(theirRefund, "SUCCESS", "PROCESSING", 1), ourRefund, theirRefund), "books-match-channel", "the channel says PROCESSING"},

		{"a trade on our terms", lines(waitingOrder, "wechat.trades out_trade_no=A-1 order_no=A amount_cents=19800 time_expire_ms=900000", closedOrder), "", ""},
		{"a trade of another amount", lines(waitingOrder, "wechat.trades out_trade_no=A-1 order_no=A amount_cents=1980 time_expire_ms=900000"),
			"books-match-channel", "trade A-1 of wechat is of 19.80 CNY, and the order is for 198.00 CNY"},
		{"a trade that ends before its order", lines(waitingOrder, "wechat.trades out_trade_no=A-1 order_no=A amount_cents=19800 time_expire_ms=900"),
			"books-match-channel", "198.00 CNY until 00:00:00.900000, and the order waits until 00:15:00.000000"},

		{"an order that waits for ever", "shop.orders order_no=A status=CREATED amount_cents=19800", "finally-terminal", "still CREATED"},
		{"a refund that is never done", lines(paidOrder, charge, applied, strings.Replace(ourRefund, "SUCCEEDED", "ACCEPTED", 1)), "finally-terminal", "still ACCEPTED"},
		{"a message that is never delivered", "shop.outbox kind=refund message_key=R1 state=PENDING", "finally-terminal", "refund R1: shop.outbox is still PENDING"},

		{"closed at its deadline", "shop.orders order_no=A status=CLOSED close_reason=deadline amount_cents=19800 deadline_ms=0", "", ""},
		{"closed too early", "shop.orders order_no=A status=CLOSED close_reason=deadline amount_cents=19800 deadline_ms=1", "close-on-time", "1 ms before its deadline"},
		{"closed much too late", "shop.orders order_no=A status=CLOSED close_reason=deadline amount_cents=19800 deadline_ms=-1800001", "close-on-time", "1800 s after its deadline"},
		{"made just now", "shop.orders order_no=A status=CREATED amount_cents=19800 created_ms=0 deadline_ms=900000\n" +
			"shop.orders order_no=A status=CLOSED close_reason=cancelled amount_cents=19800 created_ms=0 deadline_ms=900000", "", ""},
		{"made by a clock that is ahead", "shop.orders order_no=A status=CREATED amount_cents=19800 created_ms=1000 deadline_ms=901000", "close-on-time", "created_ms is 1000 ms ahead of true time"},
		{"made with another deadline", "shop.orders order_no=A status=CREATED amount_cents=19800 created_ms=-1000 deadline_ms=900000", "close-on-time", "it waits 15m1s for its money, not 15m0s"},
		{"paid by a clock that is ahead", "shop.orders order_no=A status=PAID amount_cents=19800 paid_ms=3", "close-on-time", "paid_ms is 3 ms ahead of true time"},
		{"cancelled early", "shop.orders order_no=A status=CLOSED close_reason=cancelled amount_cents=19800 deadline_ms=1", "", ""},
	} {
		t.Run(twin.name, func(t *testing.T) {
			trace := &sim.Trace{Start: time.UnixMilli(0).UTC()}
			evidence := checker.New(trace).Judge("no-orphan-money", "books-match-channel", "finally-terminal", "close-on-time")
			evidence.OrdersWait(15 * time.Minute)
			for i, row := range strings.Split(twin.rows, "\n") {
				if row != "" {
					trace.Append(sim.Record{Event: sim.EventRow, Node: "shop-1", Task: "close-scan@14:15:00.000", Change: parseRow(t, int64(i+1), row)})
				}
			}
			failures, _ := evidence.Finish()
			if twin.breaks == "" {
				require.Empty(t, failures)
				return
			}
			require.NotEmpty(t, failures)
			found := false
			for _, f := range failures {
				if f.Stake.Cents > 0 {
					assertTells(t, f)
				}
				if f.Property == twin.breaks {
					found = true
					assert.Contains(t, f.Error(), sentences[twin.breaks])
					assert.Contains(t, f.Message, twin.tells)
				}
			}
			assert.True(t, found, "%v", failures)
		})
	}
}

func lines(rows ...string) string { return strings.Join(rows, "\n") }

// parseRow reads a row of books.
func parseRow(t *testing.T, id int64, text string) *sim.Change {
	words := strings.Fields(text)
	database, table, _ := strings.Cut(words[0], ".")
	c := &sim.Change{Database: database, Table: table, RowID: id}
	for _, word := range append(words[1:], "currency=CNY") {
		name, value, ok := strings.Cut(word, "=")
		require.True(t, ok, word)
		c.Columns = append(c.Columns, name)
		if strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_cents") {
			d, err := time.ParseDuration(value + "ns")
			require.NoError(t, err)
			c.Values = append(c.Values, int64(d))
		} else {
			c.Values = append(c.Values, value)
		}
	}
	return c
}
