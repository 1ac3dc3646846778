package inventory_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/system/inventory"
)

type connector struct {
	driver *sqlite3.SQLiteDriver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// fixture is a stock service over its own database.
type fixture struct {
	t       *testing.T
	db      *sql.DB
	handler http.Handler
}

func newFixture(t *testing.T) *fixture {
	var now atomic.Int64
	now.Store(1_700_000_000_000)
	hook := func(conn *sqlite3.SQLiteConn) error {
		return conn.RegisterFunc("db_now_ms", func() int64 { return now.Load() }, false)
	}
	db := sql.OpenDB(connector{
		driver: &sqlite3.SQLiteDriver{ConnectHook: hook},
		dsn:    "file:" + filepath.Join(t.TempDir(), "stock.db") + "?_txlock=immediate&_journal_mode=WAL&_busy_timeout=5000&_synchronous=OFF",
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, inventory.Migrate(t.Context(), db))
	var ids atomic.Int64
	service, err := inventory.New(inventory.Env{
		DB: db, NewID: func() string { return fmt.Sprintf("id-%d", ids.Add(1)) }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return &fixture{t: t, db: db, handler: service.Handler()}
}

// do returns the status, and the body or an error's code.
func (f *fixture) do(method, path, body string) (int, string) {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	var failure struct{ Error struct{ Code string } }
	require.NoError(f.t, json.Unmarshal(w.Body.Bytes(), &failure))
	if failure.Error.Code != "" {
		return w.Code, failure.Error.Code
	}
	return w.Code, strings.TrimSpace(w.Body.String())
}

func (f *fixture) freeze(order string, quantity int) (int, string) {
	f.t.Helper()
	return f.do("POST", "/freeze", fmt.Sprintf(`{"orderNo":%q,"sku":"S1","quantity":%d}`, order, quantity))
}

func (f *fixture) move(movement, order string) (int, string) {
	f.t.Helper()
	return f.do("POST", "/"+movement, fmt.Sprintf(`{"orderNo":%q}`, order))
}

func (f *fixture) expectStock(available, frozen, sold int) {
	f.t.Helper()
	_, stock := f.do("GET", "/stock/S1", "")
	require.JSONEq(f.t, fmt.Sprintf(`{"sku":"S1","available":%d,"frozen":%d,"sold":%d}`, available, frozen, sold), stock)
}

func TestEachMovementOnce(t *testing.T) {
	f := newFixture(t)
	for range 2 {
		status, _ := f.do("POST", "/stock", `{"putNo":"D1","sku":"S1","quantity":5}`)
		require.Equal(t, 200, status)
	}
	f.expectStock(5, 0, 0)
	_, first := f.freeze("A", 2)
	status, again := f.freeze("A", 2)
	require.Equal(t, 200, status)
	require.Equal(t, first, again)
	f.expectStock(3, 2, 0)
	f.freeze("B", 1)
	for range 2 {
		status, _ = f.move("deduct", "A")
		require.Equal(t, 200, status)
		status, _ = f.move("release", "B")
		require.Equal(t, 200, status)
	}
	f.expectStock(3, 0, 2)
}

func TestRefusalsChangeNothing(t *testing.T) {
	f := newFixture(t)
	f.do("POST", "/stock", `{"putNo":"D1","sku":"S1","quantity":3}`)
	f.freeze("A", 1)
	f.freeze("B", 1)
	f.move("deduct", "A")
	f.move("release", "B")
	for _, c := range []struct {
		path, body, code string
		status           int
	}{
		{"/freeze", `{"orderNo":"C","sku":"S1","quantity":3}`, "out_of_stock", 409},
		{"/freeze", `{"orderNo":"C","sku":"S9","quantity":1}`, "out_of_stock", 409},
		{"/freeze", `{"orderNo":"A","sku":"S1","quantity":2}`, "freeze_conflict", 409},
		{"/freeze", `{"orderNo":"B","sku":"S1","quantity":1}`, "order_released", 409},
		{"/deduct", `{"orderNo":"B"}`, "order_released", 409},
		{"/deduct", `{"orderNo":"C"}`, "order_not_frozen", 409},
		{"/release", `{"orderNo":"A"}`, "order_deducted", 409},
		{"/stock", `{"putNo":"D1","sku":"S1","quantity":4}`, "put_conflict", 409},
		{"/freeze", `{"orderNo":"C","sku":"S1","quantity":0}`, "quantity_invalid", 400},
		{"/freeze", `{"orderNo":"C","sku":"S1","quantity":-1}`, "quantity_invalid", 400},
		{"/stock", `{"sku":"S1","quantity":9223372036854775807}`, "quantity_invalid", 400},
		{"/freeze", `{"orderNo":"","sku":"S1","quantity":1}`, "orderNo_invalid", 400},
		{"/release", `[]`, "body_invalid", 400},
	} {
		status, code := f.do("POST", c.path, c.body)
		require.Equal(t, c.code, code, "%s %s", c.path, c.body)
		require.Equal(t, c.status, status)
	}
	f.expectStock(2, 0, 1)
	_, code := f.do("GET", "/journal?limit=x", "")
	require.Equal(t, "limit_invalid", code)
	_, code = f.do("GET", "/stock/S9", "")
	require.Equal(t, "sku_unknown", code)
}

func TestReleaseBeforeItsFreeze(t *testing.T) {
	f := newFixture(t)
	f.do("POST", "/stock", `{"sku":"S1","quantity":1}`)
	for range 2 {
		status, _ := f.move("release", "A")
		require.Equal(t, 200, status)
	}
	status, code := f.freeze("A", 1)
	require.Equal(t, 409, status)
	require.Equal(t, "order_released", code)
	f.expectStock(1, 0, 0)
}

func TestJournalIsReadPageByPage(t *testing.T) {
	f := newFixture(t)
	f.do("POST", "/stock", `{"putNo":"D1","sku":"S1","quantity":9}`)
	f.freeze("A", 2)
	f.move("release", "A")
	var moves []string
	for after := int64(0); ; {
		_, text := f.do("GET", fmt.Sprintf("/journal?after=%d&limit=2", after), "")
		var page struct {
			Rows []inventory.Movement
			Next int64
		}
		require.NoError(t, json.Unmarshal([]byte(text), &page))
		for _, m := range page.Rows {
			moves = append(moves, fmt.Sprintf("%s %s %d %s", m.OrderNo, m.Movement, m.Quantity, m.SKU))
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	require.Equal(t, []string{"D1 put 9 S1", "A freeze 2 S1", "A release 2 S1"}, moves)
}

func TestJournalOfSomeOrders(t *testing.T) {
	f := newFixture(t)
	f.do("POST", "/stock", `{"putNo":"D1","sku":"S1","quantity":9}`)
	for _, order := range []string{"A", "B", "C"} {
		f.freeze(order, 2)
	}
	f.move("release", "C")
	status, text := f.do("GET", "/journal?orderNo=A&orderNo=C&orderNo=NONE", "")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"next":0,"rows":[
		{"journalId":2,"orderNo":"A","movement":"freeze","sku":"S1","quantity":2,"atMs":1700000000000},
		{"journalId":4,"orderNo":"C","movement":"freeze","sku":"S1","quantity":2,"atMs":1700000000000},
		{"journalId":5,"orderNo":"C","movement":"release","sku":"S1","quantity":2,"atMs":1700000000000}]}`, text)
	_, text = f.do("GET", "/journal?orderNo=NONE", "")
	require.JSONEq(t, `{"next":0,"rows":[]}`, text)
	status, code := f.do("GET", "/journal?after=0"+strings.Repeat("&orderNo=A", 26), "")
	require.Equal(t, 400, status)
	require.Equal(t, "orderNo_invalid", code)
}

func TestLastUnitIsSoldOnce(t *testing.T) {
	f := newFixture(t)
	f.do("POST", "/stock", `{"sku":"S1","quantity":1}`)
	var frozen atomic.Int64
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			w := httptest.NewRecorder()
			body := fmt.Sprintf(`{"orderNo":"A%d","sku":"S1","quantity":1}`, n)
			f.handler.ServeHTTP(w, httptest.NewRequest("POST", "/freeze", strings.NewReader(body)))
			if w.Code == 200 {
				frozen.Add(1)
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 1, frozen.Load())
	f.expectStock(0, 1, 0)
}

// Whatever is asked in whatever order: the counts add up, and the journal explains them.
func TestStockIsConserved(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		f := newFixture(t)
		f.do("POST", "/stock", `{"putNo":"D1","sku":"S1","quantity":5}`)
		for range rapid.IntRange(1, 20).Draw(r, "length") {
			order := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(r, "order")
			switch move := rapid.SampledFrom([]string{"freeze", "release", "deduct"}).Draw(r, "move"); move {
			case "freeze":
				f.freeze(order, rapid.IntRange(1, 3).Draw(r, "quantity"))
			default:
				f.move(move, order)
			}
		}
		var wrong int
		require.NoError(t, f.db.QueryRow(`
SELECT count(*) FROM stock s WHERE available + frozen + sold <> 5
OR sold   <> (SELECT coalesce(sum(quantity), 0) FROM stock_journal WHERE movement = 'deduct')
OR frozen <> (SELECT coalesce(sum(quantity), 0) FROM stock_journal j WHERE movement = 'freeze' AND NOT EXISTS
              (SELECT 1 FROM stock_journal k WHERE k.order_no = j.order_no AND k.movement IN ('deduct', 'release')))`).Scan(&wrong))
		require.Zero(t, wrong)
	})
}
