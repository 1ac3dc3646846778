package system_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// life is that of a process: it ends at the n-th point where the process touches the world, and then nothing that it
// does has an effect any more.
type life struct {
	mu   sync.Mutex
	left int
}

var errOver = errors.New("the process is dead")

// step passes one point, or dies there.
func (l *life) step() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left <= 0 {
		return errOver
	}
	return nil
}

// around does something between two points.
func around[T any](l *life, do func() (T, error)) (T, error) {
	var none T
	if err := l.step(); err != nil {
		return none, err
	}
	result, err := do()
	if dead := l.step(); dead != nil {
		return none, dead
	}
	return result, err
}

// RoundTrip makes life a transport.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	return around(l, func() (*http.Response, error) { return http.DefaultTransport.RoundTrip(r) })
}

// lifeConn is a connection of a life.
type lifeConn struct {
	*sqlite3.SQLiteConn
	life *life
}

func (c lifeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return around(c.life, func() (driver.Result, error) { return c.SQLiteConn.ExecContext(ctx, query, args) })
}

func (c lifeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.life.step(); err != nil { // reading leaves nothing behind: one point is enough
		return nil, err
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

func (c lifeConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.life.step(); err != nil {
		return nil, err
	}
	tx, err := c.SQLiteConn.BeginTx(ctx, options)
	return lifeTx{tx, c.life}, err
}

type lifeTx struct {
	driver.Tx
	life *life
}

// Commit of a dead process doesn't happen. One that dies right after it has committed.
func (t lifeTx) Commit() error {
	if err := t.life.step(); err != nil {
		return errors.Join(err, t.Rollback())
	}
	err := t.Tx.Commit()
	if dead := t.life.step(); dead != nil {
		return dead
	}
	return err
}

type lifeConnector struct {
	connector
	life *life
}

func (c lifeConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return lifeConn{conn.(*sqlite3.SQLiteConn), c.life}, nil
}

// live starts an instance that dies at its n-th point.
func (f *fixture) live(n int) *life {
	f.Helper()
	l := &life{left: n}
	var path string
	require.NoError(f, f.db.QueryRowContext(f.Context(), `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path))
	db := sql.OpenDB(lifeConnector{connectorTo(f.clock, path), l})
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	shop, err := system.New(f.cfg, system.Env{
		Clock: f.clock, Loops: f.loops, DB: db, HTTP: &http.Client{Transport: l}, NewID: ids(), Log: quiet(),
	})
	require.NoError(f, err)
	shop.Start()
	server := httptest.NewServer(shop.Handler())
	f.Cleanup(server.Close)
	f.url = server.URL
	return l
}

// buy pays a trade if the buyer can.
func (f *fixture) buy(channel, outTradeNo, txn string) {
	if f.bank.has(channel, outTradeNo) {
		f.bank.pay(channel, outTradeNo, txn)
	}
}

// settle lets six hours pass.
func (f *fixture) settle() {
	for range 12 {
		f.relay()
		for _, job := range []string{"close-scan", "pending-query", "refund-query", "outbox-relay"} {
			f.run(job)
		}
		f.bank.endRefunds()
		f.clock.advance(30 * time.Minute)
	}
}

// crashScripts are what people do, and how it ends, wherever the process dies meanwhile.
var crashScripts = []struct {
	name   string
	change func(*system.Config)
	run    func(f *fixture)
	status string
	refund []string
	stock  string // the one movement besides freezing
}{
	{"paid and refunded", nil, func(f *fixture) {
		f.create(stockA1)
		f.buy("mock", "A1-1", "T1")
		f.callback(paidA1)
		f.relay()
		f.refund(`{"refundNo":"Q1"}`)
		f.relay()
	}, "REFUNDED", []string{"Q1 9900 request SUCCEEDED"}, "deduct"},
	{"unpaid", nil, func(f *fixture) {
		f.create(stockA1)
		f.clock.advance(15 * time.Minute)
		f.scan()
		f.relay()
	}, "CLOSED", nil, "release"},
	{"callback lost", nil, func(f *fixture) {
		f.create(stockA1)
		f.buy("mock", "A1-1", "T1")
		f.clock.advance(time.Minute)
		f.run("pending-query")
		f.relay()
	}, "PAID", nil, "deduct"},
	{"paid before the scan", nil, func(f *fixture) {
		f.create(stockA1)
		if !f.bank.has("mock", "A1-1") {
			return // the buyer comes again
		}
		f.bank.pay("mock", "A1-1", "T1")
		f.clock.advance(15 * time.Minute)
		f.scan()
		f.relay()
	}, "PAID", nil, "deduct"},
	{"late", func(c *system.Config) { c.ClosePolicy = system.CloseLocalOnly }, func(f *fixture) {
		f.create(stockA1)
		f.buy("mock", "A1-1", "T1")
		f.clock.advance(15 * time.Minute)
		f.scan()
		f.callback(paidA1)
		f.relay()
	}, "CLOSED", []string{"R-mock-T1 9900 late SUCCEEDED"}, "release"},
	{"reinstated", reinstates, func(f *fixture) {
		f.create(`{"orderNo":"A1","amountCents":9900}`)
		f.buy("mock", "A1-1", "T1")
		f.clock.advance(15 * time.Minute)
		f.scan()
		f.callback(paidA1)
		f.relay()
	}, "PAID", nil, ""},
	{"two channels", nil, func(f *fixture) {
		f.create(stockA1)
		f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil)
		f.buy("mock", "A1-1", "T1")
		f.callback(paidA1)
		f.relay()
		f.callback(`{"orderNo":"A1","channel":"mock","channelTxn":"T2","amountCents":9900}`)
		f.relay()
	}, "PAID", []string{"R-mock-T2 9900 surplus SUCCEEDED"}, "deduct"},
}

// A process may die at any point where it touches the world: what its successor makes of it is always the same.
func TestCrashAnywhere(t *testing.T) {
	for _, script := range crashScripts {
		t.Run(script.name, func(t *testing.T) {
			t.Parallel()
			for n, died := 1, true; died; n++ {
				f := newFixture(t, func(c *system.Config) {
					if script.change != nil {
						script.change(c)
					}
				})
				process := f.live(n)
				script.run(f)
				died = process.left <= 0
				f.loops.forget()
				f.url = f.start(f.cfg, nil, nil)
				script.run(f)
				f.settle()

				at := fmt.Sprintf("died at point %d", n)
				require.Equal(t, []string{script.status}, f.column(`SELECT status FROM orders`), at)
				require.Equal(t, script.refund, f.refunds(), at)
				require.Len(t, f.bank.refunds, len(script.refund), at)
				require.Empty(t, f.column(`SELECT kind || message_key FROM outbox WHERE state <> 'DELIVERED'`), at)
				require.Empty(t, f.column(`SELECT out_trade_no FROM payment_orders WHERE state = 'OPEN' OR next_query_ms IS NOT NULL`), at)
				require.Equal(t, f.column(`SELECT status FROM orders`), f.column(`SELECT to_status FROM order_status_log ORDER BY log_id DESC LIMIT 1`), at)
				require.Empty(t, f.column(`SELECT kind || subject || detail FROM alerts`), at)
				for _, movement := range []string{"deduct", "release"} {
					moved := f.bank.count("stock /"+movement) > 0
					require.Equal(t, movement == script.stock, moved, "%s: %s", at, movement)
				}
				require.True(t, slices.IsSorted(f.column(`SELECT at_ms FROM order_status_log ORDER BY log_id`)), at)
			}
		})
	}
}
