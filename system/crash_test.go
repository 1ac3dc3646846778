package system_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// life is that of a process: it ends after so many effects on the world, and then nothing that it does has an effect any
// more. An effect is a statement outside a transaction, a commit, or a request sent. A death anywhere else, before a
// read or within a transaction, leaves the same world as the one after the effect before it.
type life struct {
	mu   sync.Mutex
	left int
}

var errOver = errors.New("the process is dead")

func (l *life) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left <= 0 {
		return errOver
	}
	return nil
}

// effect does something that others can see, if the process is alive, and learns what came of it if it still is then.
func effect[T any](l *life, do func() (T, error)) (T, error) {
	var none T
	if err := l.over(); err != nil {
		return none, err
	}
	result, err := do()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left--; l.left <= 0 {
		return none, errOver
	}
	return result, err
}

// RoundTrip makes life a transport.
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	return effect(l, func() (*http.Response, error) { return http.DefaultTransport.RoundTrip(r) })
}

// lifeConn is a connection of a life.
type lifeConn struct {
	*sqlite3.SQLiteConn
	life   *life
	inside bool // a transaction
}

func (c *lifeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	do := func() (driver.Result, error) { return c.SQLiteConn.ExecContext(ctx, query, args) }
	if c.inside {
		return do() // what it leaves is decided by the commit
	}
	return effect(c.life, do)
}

func (c *lifeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.life.over(); err != nil {
		return nil, err
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

func (c *lifeConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if err := c.life.over(); err != nil {
		return nil, err
	}
	tx, err := c.SQLiteConn.BeginTx(ctx, options)
	c.inside = err == nil
	return lifeTx{tx, c}, err
}

type lifeTx struct {
	driver.Tx
	conn *lifeConn
}

// Commit of a dead process doesn't happen. One that dies right after it has committed.
func (t lifeTx) Commit() error {
	t.conn.inside = false
	if err := t.conn.life.over(); err != nil {
		return errors.Join(err, t.Tx.Rollback())
	}
	_, err := effect(t.conn.life, func() (struct{}, error) { return struct{}{}, t.Tx.Commit() })
	return err
}

func (t lifeTx) Rollback() error {
	t.conn.inside = false
	return t.Tx.Rollback()
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
	return &lifeConn{SQLiteConn: conn.(*sqlite3.SQLiteConn), life: c.life}, nil
}

// live starts an instance that dies after its n-th effect.
func (f *fixture) live(n int) *life {
	f.Helper()
	l := &life{left: n}
	db := sql.OpenDB(lifeConnector{connectorTo(f.clock, f.path()), l})
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	f.url = f.startOver(db, &http.Client{Transport: l})
	return l
}

// dieAnywhere lets try run once for each point at which a process may die, and once more for a process that lives: try
// starts one by live(n) and reports whether it died.
func dieAnywhere(try func(n int) (died bool)) {
	for n := 1; try(n); n++ {
	}
}

// buy pays a trade if the buyer can.
func (f *fixture) buy(channel, outTradeNo, txn string) {
	if f.bank.has(channel, outTradeNo) {
		f.bank.pay(channel, outTradeNo, txn)
	}
}

// settle lets time pass, six hours at most, until nothing is to be done any more.
func (f *fixture) settle() {
	for n := 0; n < 12 && len(f.column(unsettled)) > 0; n++ {
		f.relay()
		for _, job := range []string{"close-scan", "pending-query", "refund-query", "outbox-relay"} {
			f.run(job)
		}
		f.bank.endRefunds()
		f.clock.advance(30 * time.Minute)
	}
}

const unsettled = `
SELECT 'order ' || order_no FROM orders WHERE status IN ('CREATED', 'REFUNDING')
UNION ALL SELECT 'attempt ' || out_trade_no FROM payment_orders WHERE state = 'OPEN' OR next_query_ms IS NOT NULL
UNION ALL SELECT 'refund ' || refund_no FROM refunds WHERE next_query_ms IS NOT NULL
UNION ALL SELECT kind || ' ' || message_key FROM outbox WHERE state <> 'DELIVERED'`

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

// A process may die at any point: what its successor makes of it is always the same.
func TestCrashAnywhere(t *testing.T) {
	for _, script := range crashScripts {
		t.Run(script.name, func(t *testing.T) {
			t.Parallel()
			dieAnywhere(func(n int) bool {
				f := newFixture(t, func(c *system.Config) {
					if script.change != nil {
						script.change(c)
					}
				})
				process := f.live(n)
				script.run(f)
				died := process.over() != nil
				f.loops.forget()
				f.url = f.start(f.cfg, nil, nil)
				script.run(f)
				f.settle()

				at := fmt.Sprintf("died after effect %d", n)
				require.Equal(t, []string{script.status}, f.column(`SELECT status FROM orders`), at)
				require.Equal(t, script.refund, f.refunds(), at)
				require.Len(t, f.bank.refunds, len(script.refund), at)
				require.Empty(t, f.column(unsettled), at)
				require.Equal(t, f.column(`SELECT status FROM orders`), f.column(`SELECT to_status FROM order_status_log ORDER BY log_id DESC LIMIT 1`), at)
				require.Empty(t, f.column(`SELECT kind || subject || detail FROM alerts`), at)
				for _, movement := range []string{"deduct", "release"} {
					moved := f.bank.count("stock /"+movement) > 0
					require.Equal(t, movement == script.stock, moved, "%s: %s", at, movement)
				}
				require.True(t, slices.IsSorted(f.column(`SELECT at_ms FROM order_status_log ORDER BY log_id`)), at)
				return died
			})
		})
	}
}

// Wherever a run of reconciliation dies, the next ones tell the same differences, each once, and nothing else.
func TestReconcileDiesAnywhere(t *testing.T) {
	t.Parallel()
	dieAnywhere(func(n int) bool {
		w := newTown(t)
		w.buy("A")
		w.buy("B")
		w.refund("B", "F1", 500)
		w.post(w.urls["mock"]+"/operator/bill-row", `{"action":"hide","reference":"T-B-1-1"}`)
		w.byHand(`DELETE FROM payment_records WHERE order_no = 'A'`)
		w.byHand(`DELETE FROM refunds`)
		exec(t, w.stock, `DELETE FROM stock_journal WHERE order_no = 'B' AND movement = 'deduct'`)

		w.at("2023-11-16 11:00:00")
		healthy := w.loops.every["reconcile"]
		process := w.live(n)
		w.run("reconcile")
		died := process.over() != nil
		w.loops.every["reconcile"] = healthy
		for _, later := range []string{"2023-11-16 12:00:00", "2023-11-17 03:00:00"} {
			w.at(later)
			w.run("reconcile")
		}
		w.url = w.start(w.cfg, nil, nil)
		require.ElementsMatch(t, []string{
			"record-missing mock/T-A-1-1 9900", "record-unbilled mock/T-B-1-1 9900",
			"refund-missing mock/F1 500", "stock-mismatch B 9900",
		}, w.alerts(), "died after effect %d", n)
		require.Equal(t, []string{"CHECKED"}, w.column(`SELECT state FROM bill_days WHERE channel = 'mock' AND bill_day = '2023-11-15'`))
		return died
	})
}
