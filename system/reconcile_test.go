package system_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
	"github.com/tillstorm/tillstorm/system/inventory"
)

// town is a shop with two real channels and a real stock service. Its bills are of days in Shanghai.
type town struct {
	*fixture
	banks map[string]*sql.DB // the channels' ledgers
	urls  map[string]string
	stock *sql.DB
}

var shanghai = time.FixedZone("Shanghai", 8*3600)

func newTown(t *testing.T, change ...func(*system.Config)) *town {
	clock := newClock()
	w := &town{
		fixture: &fixture{T: t, clock: clock, loops: &loops{}, db: openDB(t, clock, system.Migrate)},
		banks:   map[string]*sql.DB{}, urls: map[string]string{}, stock: openDB(t, clock, inventory.Migrate),
	}
	w.at("2023-11-15 09:00:00")
	store, err := inventory.New(inventory.Env{DB: w.stock, NewID: ids(), Log: quiet()})
	require.NoError(t, err)
	door := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.forward(rw, r) }))
	t.Cleanup(door.Close)
	w.cfg = system.Config{
		StockURL: serve(t, store.Handler()), NotifyURL: door.URL + "/callback/pay", MerchantID: "M1", SigningKey: signingKey,
	}
	for _, name := range []string{"mock", "second"} {
		w.openBank(name, channel.Mock())
	}
	for _, c := range change {
		c(&w.cfg)
	}
	w.url = w.start(w.cfg, nil, nil)
	w.post(w.cfg.StockURL+"/stock", `{"putNo":"D1","sku":"S1","quantity":100}`)
	return w
}

func serve(t *testing.T, handler http.Handler) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func (w *town) openBank(name string, personality channel.Personality) {
	personality.Zone = shanghai
	w.banks[name] = openDB(w.T, w.clock, channel.Migrate)
	bank, err := channel.New(channel.Config{Name: name, SigningKey: signingKey, Personality: personality}, channel.Env{
		Clock: w.clock, Loops: w.loops, DB: w.banks[name], HTTP: &http.Client{}, NewID: ids(), Log: quiet(),
	})
	require.NoError(w, err)
	w.urls[name] = serve(w.T, bank.Handler())
	w.cfg.Channels = append(w.cfg.Channels, system.ChannelConfig{Name: name, URL: w.urls[name], Zone: shanghai, AckBody: personality.AckBody})
}

// forward hands the channels' callbacks to the shop.
func (w *town) forward(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request, err := http.NewRequest(r.Method, w.url+r.URL.Path, bytes.NewReader(body))
	if err == nil {
		request.Header = r.Header
		var reply *http.Response
		if reply, err = http.DefaultClient.Do(request); err == nil {
			defer reply.Body.Close()
			rw.WriteHeader(reply.StatusCode)
			_, _ = io.Copy(rw, reply.Body)
		}
	}
	if err != nil {
		rw.WriteHeader(http.StatusBadGateway)
	}
}

func (w *town) post(url, body string) string {
	w.Helper()
	reply, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(w, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(w, err)
	require.Less(w, reply.StatusCode, 300, "%s: %s", url, text)
	return string(text)
}

// at sets the clock, in Shanghai.
func (w *town) at(local string) {
	w.Helper()
	at, err := time.ParseInLocation(time.DateTime, local, shanghai)
	require.NoError(w, err)
	require.GreaterOrEqual(w, at.UnixMilli(), w.clock.ms.Load(), "time goes on")
	w.clock.ms.Store(at.UnixMilli())
}

func (w *town) order1(orderNo string) {
	w.Helper()
	status, body := w.create(fmt.Sprintf(`{"orderNo":%q,"amountCents":9900,"sku":"S1","quantity":2}`, orderNo))
	require.Equal(w, 201, status, body)
}

// charge lets the buyer pay; nobody has heard of it until work is done.
func (w *town) charge(bank, outTradeNo string) {
	w.Helper()
	w.post(w.urls[bank]+"/pay", fmt.Sprintf(`{"outTradeNo":%q}`, outTradeNo))
}

// buy is a whole purchase.
func (w *town) buy(orderNo string) {
	w.Helper()
	w.order1(orderNo)
	w.charge("mock", orderNo+"-1")
	w.work()
	require.Equal(w, system.Paid, w.order(orderNo).Status)
}

func (w *town) refund(orderNo, refundNo string, cents int) {
	w.Helper()
	status, body := w.do("POST", "/orders/"+orderNo+"/refunds", fmt.Sprintf(`{"refundNo":%q,"amountCents":%d}`, refundNo, cents), http.Header{})
	require.Less(w, status, 300, body)
	w.work()
}

// work runs all that isn't reconciliation.
func (w *town) work() {
	w.relay()
	for _, job := range []string{"close-scan", "outbox-relay", "pending-query", "refund-query", "housekeeping"} {
		w.run(job)
	}
	w.relay()
}

// until lets time pass until the given one, in Shanghai, with everything running every hour.
func (w *town) until(local string) { w.Helper(); w.pass(time.Hour, local) }

// daysUntil does so every five hours: where many days pass, each hour of the day has its turn.
func (w *town) daysUntil(local string) { w.Helper(); w.pass(5*time.Hour, local) }

func (w *town) pass(step time.Duration, local string) {
	w.Helper()
	end, err := time.ParseInLocation(time.DateTime, local, shanghai)
	require.NoError(w, err)
	for w.clock.Now().Before(end) {
		next := w.clock.Now().Truncate(time.Hour).Add(step)
		w.clock.ms.Store(min(next.UnixMilli(), end.UnixMilli()))
		w.work()
		w.run("reconcile")
	}
}

func exec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	result, err := db.ExecContext(context.Background(), query)
	require.NoError(t, err)
	rows, err := result.RowsAffected()
	require.NoError(t, err)
	require.NotZero(t, rows, "the operator changes something: %s", query)
}

func (w *town) byHand(query string) { w.Helper(); exec(w.T, w.db, query) }

// alerts tells every alert as kind, subject and cents.
func (w *town) alerts() []string {
	w.Helper()
	var page struct{ Alerts []system.Alert }
	status, body := w.do("GET", "/alerts", "", http.Header{})
	require.Equal(w, 200, status)
	require.NoError(w, json.Unmarshal([]byte(body), &page))
	told := []string{}
	for _, a := range page.Alerts {
		told = append(told, fmt.Sprintf("%s %s %d", a.Kind, a.Subject, a.AmountCents))
	}
	return told
}

// A town with everything that can rightly happen: nothing is reported, on any of its days.
func TestNothingToReport(t *testing.T) {
	t.Parallel()
	for _, policy := range []system.LateSuccess{system.LateRefund, system.LateReinstate} {
		t.Run(string(policy), func(t *testing.T) {
			w := newTown(t, func(c *system.Config) { c.LateSuccess, c.ClosePolicy = policy, system.CloseLocalOnly })
			w.livelyDay()
			w.daysUntil("2023-11-19 12:00:00")
			require.Empty(t, w.alerts())
			require.Equal(t, []string{"2023-11-15 CHECKED", "2023-11-16 CHECKED", "2023-11-17 CHECKED", "2023-11-18 FETCHED", "2023-11-19 WAITING"},
				w.column(`SELECT bill_day || ' ' || state FROM bill_days WHERE channel = 'mock' ORDER BY bill_day`))
		})
	}
}

// livelyDay has an order of every fate.
func (w *town) livelyDay() {
	w.Helper()
	w.buy("PAID")
	w.buy("PARTLY")
	w.refund("PARTLY", "F1", 100)
	w.refund("PARTLY", "F2", 200)
	w.buy("BACK")
	w.refund("BACK", "F3", 9900)
	w.order1("SURPLUS") // paid on both channels
	w.do("POST", "/orders/SURPLUS/pay", `{"channel":"second"}`, http.Header{})
	w.charge("mock", "SURPLUS-1")
	w.charge("second", "SURPLUS-2")
	w.work()
	w.order1("CLOSED")
	w.order1("CANCELLED")
	w.do("POST", "/orders/CANCELLED/cancel", `{}`, http.Header{})
	w.create(`{"orderNo":"SOLDOUT","amountCents":1,"sku":"S1","quantity":1000}`)
	w.post(w.urls["mock"]+"/operator/trade", `{"outTradeNo":"LATE-1","silent":true}`)
	w.order1("LATE")
	w.clock.advance(15*time.Minute - time.Second)
	w.charge("mock", "LATE-1")
	w.clock.advance(time.Second)
	w.run("close-scan")
	w.work()
}

// Each difference is told once, however often one looks, and nothing else is.
func TestEveryDifferenceIsTold(t *testing.T) {
	t.Parallel()
	addRow := func(w *town, kind, reference string, cents int, trade, order string) {
		w.post(w.urls["mock"]+"/operator/bill-row", fmt.Sprintf(
			`{"action":"add","reference":%q,"kind":%q,"outTradeNo":%q,"orderNo":%q,"amountCents":%d,"currency":"CNY","atMs":%d}`,
			reference, kind, trade, order, cents, w.clock.ms.Load()))
	}
	editRow := func(w *town, action, reference string) {
		w.post(w.urls["mock"]+"/operator/bill-row", fmt.Sprintf(`{"action":%q,"reference":%q,"amountCents":1}`, action, reference))
	}
	for _, c := range []struct {
		name  string
		wrong func(w *town)
		told  []string
	}{
		{"record deleted", func(w *town) {
			w.byHand(`DELETE FROM payment_records WHERE order_no = 'PAID'`)
		}, []string{"record-missing mock/T-PAID-1-1 9900"}},
		{"record's amount edited", func(w *town) {
			w.byHand(`UPDATE payment_records SET amount_cents = 990 WHERE order_no = 'PAID'`)
		}, []string{"record-mismatch mock/T-PAID-1-1 9900"}},
		{"record moved to another order", func(w *town) {
			w.byHand(`UPDATE payment_records SET order_no = 'BACK' WHERE order_no = 'PAID'`)
		}, []string{"record-mismatch mock/T-PAID-1-1 9900", "record-surplus mock/T-PAID-1-1 9900"}},
		{"record of a surplus charge deleted", func(w *town) {
			w.byHand(`DELETE FROM payment_records WHERE channel = 'second'`)
		}, []string{"record-missing second/T-SURPLUS-2-1 9900"}},
		{"record made up", func(w *town) {
			w.byHand(`INSERT INTO payment_records SELECT channel, 'T-X', order_no, out_trade_no, amount_cents, currency,
				disposition, order_status, recorded_ms FROM payment_records WHERE order_no = 'PAID'`)
		}, []string{"record-surplus mock/T-X 9900", "record-unbilled mock/T-X 9900"}},
		{"order deleted", func(w *town) {
			w.byHand(`DELETE FROM orders WHERE order_no = 'PAID'`)
		}, []string{"order-missing PAID 9900"}},
		{"order's amount edited", func(w *town) {
			w.byHand(`UPDATE orders SET amount_cents = 1 WHERE order_no = 'PAID'`)
		}, []string{"record-mismatch mock/T-PAID-1-1 1"}},
		{"paid order closed by hand", func(w *town) {
			w.byHand(`UPDATE orders SET status = 'CLOSED' WHERE order_no = 'PAID'`)
		}, []string{"status-mismatch PAID 9900"}},
		{"closed order paid by hand", func(w *town) {
			w.byHand(`UPDATE orders SET status = 'PAID' WHERE order_no = 'CLOSED'`)
		}, []string{"status-mismatch CLOSED 9900"}},
		{"attempt's state edited", func(w *town) {
			w.byHand(`UPDATE payment_orders SET state = 'CLOSED' WHERE order_no = 'PAID'`)
		}, []string{"attempt-mismatch PAID-1 9900"}},
		{"partial refund deleted", func(w *town) {
			w.byHand(`DELETE FROM refunds WHERE refund_no = 'F1'`)
		}, []string{"refund-missing mock/F1 100"}},
		{"full refund deleted", func(w *town) {
			w.byHand(`DELETE FROM refunds WHERE refund_no = 'F3'`)
		}, []string{"refund-missing BACK 9900"}},
		{"surplus charge's refund deleted", func(w *town) {
			w.byHand(`DELETE FROM refunds WHERE refund_no = 'R-second-T-SURPLUS-2-1'`)
		}, []string{"refund-missing second/R-second-T-SURPLUS-2-1 9900"}},
		{"refund's amount edited", func(w *town) {
			w.byHand(`UPDATE refunds SET amount_cents = 1 WHERE refund_no = 'F1'`)
		}, []string{"refund-mismatch mock/F1 100"}},
		{"stock frozen for a closed order", func(w *town) {
			exec(w.T, w.stock, `DELETE FROM stock_journal WHERE order_no = 'CLOSED' AND movement = 'release'`)
		}, []string{"stock-mismatch CLOSED 9900"}},
		{"stock not sold for a paid order", func(w *town) {
			exec(w.T, w.stock, `DELETE FROM stock_journal WHERE order_no = 'PAID' AND movement = 'deduct'`)
		}, []string{"stock-mismatch PAID 9900"}},
		{"stock sold in another quantity", func(w *town) {
			exec(w.T, w.stock, `UPDATE stock_journal SET quantity = 1 WHERE order_no = 'PAID' AND movement = 'deduct'`)
		}, []string{"stock-mismatch PAID 9900"}},
		{"stock kept for nobody", func(w *town) {
			w.post(w.cfg.StockURL+"/freeze", `{"orderNo":"NOBODY","sku":"S1","quantity":1}`)
		}, []string{"order-missing NOBODY 0"}},
		{"charge missing in the bill", func(w *town) { editRow(w, "hide", "T-PAID-1-1") },
			[]string{"record-unbilled mock/T-PAID-1-1 9900"}},
		{"charge with another amount in the bill", func(w *town) { editRow(w, "change", "T-PAID-1-1") },
			[]string{"record-mismatch mock/T-PAID-1-1 1"}},
		{"charge of nothing in the bill", func(w *town) { addRow(w, "charge", "T-X", 500, "X-1", "X") },
			[]string{"record-missing mock/T-X 500"}},
		{"another charge for our order in the bill", func(w *town) { addRow(w, "charge", "T-X", 9900, "PAID-1", "PAID") },
			[]string{"record-missing mock/T-X 9900"}},
		{"another channel's number in the bill", func(w *town) { addRow(w, "charge", "T-SURPLUS-2-1", 9900, "SURPLUS-2", "SURPLUS") },
			[]string{"record-missing mock/T-SURPLUS-2-1 9900"}},
		{"charge twice in the bill", func(w *town) {
			w.clock.advance(time.Minute)
			addRow(w, "charge", "T-PAID-1-1", 9900, "PAID-1", "PAID")
			exec(w.T, w.banks["mock"], `UPDATE bill_edits SET reference = reference, action = 'add'`)
		}, []string{"bill-duplicate mock/charge/T-PAID-1-1 9900"}},
		{"refund missing in the bill", func(w *town) { editRow(w, "hide", "F1") },
			[]string{"refund-unbilled mock/F1 100"}},
		{"refund with another amount in the bill", func(w *town) { editRow(w, "change", "F3") },
			[]string{"refund-mismatch mock/F3 1"}},
		{"charge of a wrong amount, told and billed", func(w *town) {
			w.order1("ODD")
			w.callback(`{"orderNo":"ODD","channel":"mock","channelTxn":"T-X","amountCents":1}`)
			addRow(w, "charge", "T-X", 1, "ODD-1", "ODD")
		}, []string{"charge-refused mock/T-X 1"}},
		{"charge told for another order too", func(w *town) {
			w.callback(`{"orderNo":"BACK","channel":"mock","channelTxn":"T-PAID-1-1","amountCents":9900}`)
		}, []string{"charge-refused mock/T-PAID-1-1 9900"}},
		{"charge told for another order too, and billed with another amount", func(w *town) {
			w.callback(`{"orderNo":"BACK","channel":"mock","channelTxn":"T-PAID-1-1","amountCents":9900}`)
			editRow(w, "change", "T-PAID-1-1")
		}, []string{"charge-refused mock/T-PAID-1-1 9900", "record-mismatch mock/T-PAID-1-1 1"}},
		{"refund with another amount, told and billed", func(w *town) {
			w.refundCallback(`{"refundNo":"F3","channel":"mock","state":"SUCCESS","amountCents":1,"currency":"CNY"}`)
			editRow(w, "change", "F3")
		}, []string{"refund-mismatch mock/F3 1"}},
		{"refund that the channel refuses", func(w *town) {
			w.buy("MORE")
			exec(w.T, w.banks["mock"], `UPDATE trades SET state = 'CLOSED' WHERE order_no = 'MORE'`)
			w.refund("MORE", "F4", 9900)
		}, []string{"refund-failed mock/F4 9900"}},
		{"refund of nothing in the bill", func(w *town) { addRow(w, "refund", "F9", 500, "PAID-1", "PAID") },
			[]string{"refund-missing mock/F9 500"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTown(t)
			w.livelyDay()
			w.daysUntil("2023-11-15 18:00:00") // all is settled, and looked at
			require.Empty(t, w.alerts())
			c.wrong(w)
			w.daysUntil("2023-11-19 12:00:00")
			require.ElementsMatch(t, c.told, w.alerts())
		})
	}
}

// What our own books show is told within the hour.
func TestDeletedRecordIsToldByTheNextRun(t *testing.T) {
	w := newTown(t)
	w.buy("A")
	w.until("2023-11-15 12:00:00")
	w.byHand(`DELETE FROM payment_records`)
	w.until("2023-11-15 13:00:00")
	require.Equal(t, []string{"record-missing mock/T-A-1-1 9900"}, w.alerts())
}

// A charge belongs to the channel's day, whatever day the order was made or its callback came.
func TestMidnight(t *testing.T) {
	w := newTown(t)
	w.at("2023-11-15 23:50:00")
	w.order1("EARLY")
	w.order1("LATE")
	w.at("2023-11-15 23:59:59")
	w.clock.advance(900 * time.Millisecond)
	w.charge("mock", "EARLY-1") // its callback comes the next day
	w.clock.advance(50 * time.Millisecond)
	w.work()
	require.Equal(t, system.Paid, w.order("EARLY").Status)
	w.at("2023-11-16 00:03:00")
	w.charge("mock", "LATE-1")
	w.work()
	w.until("2023-11-18 12:00:00")
	require.Empty(t, w.alerts())
	require.Equal(t, []string{"2023-11-15 T-EARLY-1-1", "2023-11-16 T-LATE-1-1"},
		w.column(`SELECT bill_day || ' ' || number FROM bill_rows ORDER BY bill_day`))
}

func TestLateBill(t *testing.T) {
	w := newTown(t)
	w.post(w.urls["mock"]+"/operator/bill", fmt.Sprintf(`{"date":"2023-11-15","delayMs":%d}`, (5*time.Hour).Milliseconds()))
	w.buy("A")
	w.post(w.urls["mock"]+"/operator/bill-row", `{"action":"hide","reference":"T-A-1-1"}`)
	w.until("2023-11-16 10:59:00")
	require.Empty(t, w.alerts(), "it isn't late yet")
	w.until("2023-11-16 14:59:00")
	require.Equal(t, []string{"bill-not-ready mock/2023-11-15 0"}, w.alerts(), "told once, and not read as empty")
	w.until("2023-11-16 15:00:00")
	require.Equal(t, []string{"bill-not-ready mock/2023-11-15 0", "record-unbilled mock/T-A-1-1 9900"}, w.alerts())
}

// Bills go on at the page where they stopped, whoever goes on; nothing is skipped, nothing read twice.
func TestBillOfManyPages(t *testing.T) {
	w := newTown(t, func(c *system.Config) { c.ScanBatch = 7 })
	w.buy("A")
	insert := `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 250)
		INSERT INTO bill_edits SELECT printf('T-%03d', n), 'add', 'charge', 'X', 'X', n, 'CNY', ` + fmt.Sprint(w.clock.ms.Load()) + ` FROM n`
	exec(t, w.banks["mock"], insert)
	w.until("2023-11-16 10:30:00")
	require.Empty(t, w.alerts())

	_, err := w.db.Exec(`CREATE TRIGGER broken BEFORE INSERT ON bill_rows WHEN new.position = 201 BEGIN SELECT raise(ABORT, 'broken'); END`)
	require.NoError(t, err)
	w.until("2023-11-16 11:00:00")
	require.Equal(t, []string{"196"}, w.column(`SELECT count(*) FROM bill_rows`), "28 whole pages of 7")
	require.Equal(t, []string{"WAITING 196"}, w.column(`SELECT state || ' ' || place FROM bill_days WHERE bill_day = '2023-11-15' AND channel = 'mock'`))
	_, err = w.db.Exec(`DROP TRIGGER broken`)
	require.NoError(t, err)

	w.until("2023-11-16 12:00:00")
	require.Equal(t, []string{"251"}, w.column(`SELECT count(DISTINCT number) FROM bill_rows`))
	require.Equal(t, []string{"250"}, w.column(`SELECT count(*) FROM alerts`))
}

// Days on which nobody ran are made up for, and a charge that nobody told us of meanwhile is found by asking, not told.
func TestMissedDays(t *testing.T) {
	w := newTown(t)
	w.buy("A")
	w.post(w.urls["mock"]+"/operator/trade", `{"outTradeNo":"B-1","silent":true}`)
	w.order1("B")
	w.until("2023-11-15 09:05:00")
	w.charge("mock", "B-1")
	w.post(w.urls["mock"]+"/operator/bill-row", `{"action":"hide","reference":"T-A-1-1"}`)
	w.at("2023-11-20 11:00:00")
	w.run("reconcile") // before anything else has run
	require.Equal(t, []string{"record-unbilled mock/T-A-1-1 9900"}, w.alerts())
	require.Equal(t, []string{"2023-11-15 FETCHED", "2023-11-16 CHECKED", "2023-11-17 CHECKED", "2023-11-18 CHECKED", "2023-11-19 FETCHED", "2023-11-20 WAITING"},
		w.column(`SELECT bill_day || ' ' || state FROM bill_days WHERE channel = 'mock' ORDER BY bill_day`))
	w.until("2023-11-20 14:00:00")
	require.Equal(t, system.Paid, w.order("B").Status)
	require.Len(t, w.alerts(), 1)
	require.Equal(t, []string{"CHECKED"}, w.column(`SELECT state FROM bill_days WHERE channel = 'mock' AND bill_day = '2023-11-15'`))
}

// While a message about an order's stock is pending, or its callback on the way, nothing is told; what then never comes
// is.
func TestInFlightIsNoDifference(t *testing.T) {
	w := newTown(t)
	w.order1("A")
	w.charge("mock", "A-1")
	hold := func(kind string) {
		_, err := w.db.Exec(`UPDATE outbox SET state = 'PENDING', next_ms = 1e15 WHERE kind = '` + kind + `'`)
		require.NoError(t, err)
	}
	w.loops.forget() // the notifier dies with the channel's process
	w.until("2023-11-15 09:01:00")
	require.Equal(t, system.Paid, w.order("A").Status, "by the query")
	exec(t, w.stock, `DELETE FROM stock_journal WHERE movement = 'deduct'`)
	hold("stock-deduct")
	w.run("reconcile")
	w.until("2023-11-15 14:00:00")
	require.Empty(t, w.alerts())
	w.byHand(`UPDATE outbox SET state = 'PARKED' WHERE kind = 'stock-deduct'`)
	w.until("2023-11-15 15:00:00")
	require.Equal(t, []string{"stock-mismatch A 9900"}, w.alerts())
}

// counter counts what is asked of the stock service's journal.
type counter struct{ pages, numbers int }

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	switch query := r.URL.Query(); {
	case query.Has("after"):
		c.pages++
	case query.Has("orderNo"):
		c.numbers += len(query["orderNo"])
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Every hour only what is new is read of the stock journal, and every day all of it, in pages: what was changed by hand
// long after is found too.
func TestStockJournalIsReadOnce(t *testing.T) {
	w, seen := newTown(t), &counter{}
	statements := w.watched(&http.Client{Transport: seen})
	exec(t, w.stock, `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 150)
		INSERT INTO stock_journal (order_no, movement, sku, quantity, at_ms)
		SELECT 'OLD' || n, movement, 'S1', 1, 0 FROM n, (SELECT 'freeze' AS movement UNION SELECT 'release') ORDER BY n`)
	w.buy("A")
	w.until("2023-11-15 10:00:00") // the first run ever
	require.Equal(t, 4, seen.pages)
	require.InDelta(t, 150, seen.numbers, 10)
	*seen = counter{}
	w.until("2023-11-15 11:00:00")
	require.Equal(t, counter{pages: 1, numbers: 1}, *seen, "the order is new still")
	w.until("2023-11-16 10:00:00")
	*seen = counter{}
	w.until("2023-11-16 15:00:00")
	require.Equal(t, counter{pages: 5}, *seen, "of a whole day nothing is new")

	exec(t, w.stock, `DELETE FROM stock_journal WHERE order_no = 'OLD7' AND movement = 'release'`)
	exec(t, w.stock, `DELETE FROM stock_journal WHERE order_no = 'A' AND movement = 'deduct'`)
	w.until("2023-11-17 09:00:00")
	require.Empty(t, w.alerts())
	w.until("2023-11-17 10:00:00")
	require.ElementsMatch(t, []string{"order-missing OLD7 0", "stock-mismatch A 9900"}, w.alerts())
	for statement, rows := range statements.most {
		require.LessOrEqual(t, rows, 100, nameOf(statement))
	}
}

// Two instances share the hour; each thing is done by one of them.
func TestReconcileOnTwoInstances(t *testing.T) {
	w := newTown(t)
	w.buy("A")
	first := w.loops.every["reconcile"]
	second := w.start(w.cfg, nil, nil)
	require.NotEmpty(t, second)
	w.byHand(`DELETE FROM payment_records`)
	w.at("2023-11-16 11:00:00")
	done := make(chan bool)
	for _, run := range []func(context.Context){first, w.loops.every["reconcile"]} {
		go func() { run(context.Background()); done <- true }()
	}
	<-done
	<-done
	require.Equal(t, []string{"record-missing mock/T-A-1-1 9900"}, w.alerts())
	require.Equal(t, []string{"1"}, w.column(`SELECT count(*) FROM bill_rows`))
}

func TestReconciliationIsAPolicy(t *testing.T) {
	w := newTown(t, func(c *system.Config) {
		c.Consistency = []system.Consistency{system.ByLocalTransaction, system.ByOutbox}
	})
	require.NotContains(t, w.loops.every, "reconcile")
}

// Two channels may give one number to two charges; each is compared with its own channel's bill.
func TestOneNumberOnTwoChannels(t *testing.T) {
	w := newTown(t)
	w.buy("A")
	w.post(w.urls["second"]+"/operator/trade", `{"outTradeNo":"B-1","channelTxn":"T-A-1-1"}`)
	status, body := w.create(`{"orderNo":"B","amountCents":500,"channel":"second"}`)
	require.Equal(t, 201, status, body)
	w.charge("second", "B-1")
	w.work()
	require.Equal(t, []string{"mock A", "second B"},
		w.column(`SELECT channel || ' ' || order_no FROM payment_records WHERE channel_txn = 'T-A-1-1' ORDER BY channel`))
	w.until("2023-11-16 10:00:00")
	require.Empty(t, w.alerts())
	w.byHand(`DELETE FROM payment_records WHERE channel = 'second'`)
	w.until("2023-11-18 12:00:00")
	require.Equal(t, []string{"record-missing second/T-A-1-1 500"}, w.alerts())
}
