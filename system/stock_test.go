package system_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/http"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

const stockA1 = `{"orderNo":"A1","amountCents":9900,"sku":"S1","quantity":2}`

func TestStockIsFrozenBeforeThePrepay(t *testing.T) {
	f := newFixture(t)
	f.bank.on("stock /freeze", refuse(500, "internal"))
	status, body := f.create(stockA1)
	require.Equal(t, 202, status, body)
	require.Zero(t, f.bank.count("mock /prepay"))

	f.bank.on("stock /freeze", nil)
	status, body = f.create(stockA1)
	require.Equal(t, 200, status, body)
	f.create(stockA1)
	require.Equal(t, 2, f.bank.count("stock /freeze A1"))
	require.Equal(t, 1, f.bank.count("mock /prepay"))

	status, body = f.create(`{"orderNo":"A1","amountCents":9900,"sku":"S1","quantity":3}`)
	require.Equal(t, 409, status)
	require.Equal(t, "order_conflict", code(t, body))
}

func TestOutOfStockClosesTheOrder(t *testing.T) {
	f := newFixture(t)
	f.bank.on("stock /freeze", refuse(409, "out_of_stock"))
	status, body := f.create(stockA1)
	require.Equal(t, 201, status, body)
	order := f.order("A1")
	require.Equal(t, system.Closed, order.Status)
	require.Equal(t, "out_of_stock", order.CloseReason)
	f.relay()
	require.Equal(t, []string{"stock-release A1 DELIVERED"}, f.outbox())
}

// A stock service that fails after the close gets its release later, and once.
func TestReleaseIsCarriedByTheOutbox(t *testing.T) {
	f := newFixture(t)
	f.create(stockA1)
	f.bank.on("stock /release", refuse(500, "internal"))
	f.clock.advance(15 * time.Minute)
	f.scan()
	require.Equal(t, system.Closed, f.order("A1").Status)
	f.relay()
	for range 3 {
		f.clock.advance(time.Minute)
		f.run("outbox-relay")
	}
	require.Equal(t, []string{"stock-release A1 PENDING"}, f.outbox())
	require.Equal(t, 4, f.bank.count("stock /release"))
	f.bank.on("stock /release", nil)
	f.clock.advance(time.Minute)
	f.run("outbox-relay")
	f.clock.advance(time.Hour)
	f.run("outbox-relay")
	require.Equal(t, []string{"stock-release A1 DELIVERED"}, f.outbox())
	require.Equal(t, 5, f.bank.count("stock /release"))
}

// A process that dies right after a commit leaves the message to the relay, of any instance.
func TestMessageSurvivesACrash(t *testing.T) {
	f := newFixture(t)
	f.create(stockA1)
	f.callback(paidA1)
	f.loops.forget()
	f.run("outbox-relay")
	require.Equal(t, []string{"stock-deduct A1 DELIVERED"}, f.outbox())
	require.Equal(t, 1, f.bank.count("stock /deduct A1"))
}

func TestMessageThatNeverSucceedsIsParked(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.OutboxTries = 4 })
	f.create(stockA1)
	f.bank.on("stock /deduct", refuse(409, "order_not_frozen"))
	f.callback(paidA1)
	f.relay()
	for range 10 {
		f.clock.advance(time.Hour)
		f.run("outbox-relay")
	}
	require.Equal(t, 4, f.bank.count("stock /deduct"))
	require.Equal(t, []string{"stock-deduct A1 PARKED"}, f.outbox())
	require.Equal(t, []string{"outbox-parked stock-deduct/A1"}, f.column(`SELECT kind || ' ' || subject FROM alerts`))
}

// What the stock service's journal forbids for ever is told at once.
func TestMessageThatIsRefusedForGoodIsParked(t *testing.T) {
	f := newFixture(t)
	f.create(stockA1)
	f.bank.on("stock /deduct", refuse(409, "order_released"))
	f.callback(paidA1)
	f.relay()
	require.Equal(t, []string{"stock-deduct A1 PARKED"}, f.outbox())
	require.Equal(t, []string{"outbox-parked stock-deduct/A1 0"}, f.raised())
}

// busyConn is a connection whose database has no time for one statement.
type busyConn struct {
	*sqlite3.SQLiteConn
	statement string
	times     *int
}

func (c busyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if nameOf(query) == c.statement && *c.times > 0 {
		*c.times--
		return nil, sqlite3.Error{Code: sqlite3.ErrBusy}
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

type busyConnector struct {
	connector
	statement string
	times     *int
}

func (c busyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return busyConn{conn.(*sqlite3.SQLiteConn), c.statement, c.times}, nil
}

// That our own database was busy parks nothing, however often.
func TestBusyDatabaseParksNothing(t *testing.T) {
	f, times := newFixture(t, func(c *system.Config) { c.OutboxTries = 1 }), 5
	db := sql.OpenDB(busyConnector{connectorTo(f.clock, f.path()), "MarkRefundAccepted", &times})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	f.url = f.startOver(db, &http.Client{})
	f.create(orderA1)
	f.bank.pay("mock", "A1-1", "T1")
	f.callback(paidA1)
	f.refund(`{"refundNo":"Q1"}`)
	f.relay()
	for range 4 {
		f.clock.advance(time.Hour)
		f.run("outbox-relay")
	}
	require.Zero(t, times)
	require.Equal(t, []string{"refund Q1 PENDING"}, f.outbox())
	f.clock.advance(time.Hour)
	f.run("outbox-relay")
	require.Equal(t, []string{"refund Q1 DELIVERED"}, f.outbox())
	require.Len(t, f.bank.refunds, 1)
	require.Empty(t, f.raised())
}

// Without the outbox, what follows from a fact is tried once; a crash loses it.
func TestLocalTransactionAlone(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.Consistency = []system.Consistency{system.ByLocalTransaction} })
	require.NotContains(t, f.loops.every, "outbox-relay")
	f.create(stockA1)
	f.callback(paidA1)
	f.relay()
	require.Equal(t, 1, f.bank.count("stock /deduct A1"))
	require.Empty(t, f.outbox())

	f.create(`{"orderNo":"A2","amountCents":9900,"sku":"S1"}`)
	f.callback(`{"orderNo":"A2","channel":"mock","channelTxn":"T2","amountCents":9900}`)
	f.loops.forget()
	f.relay()
	require.Zero(t, f.bank.count("stock /deduct A2"))
}

func TestShopWithoutStockService(t *testing.T) {
	f := newFixture(t, func(c *system.Config) { c.StockURL = "" })
	before := f.dump()
	for body, want := range map[string]string{
		stockA1: "sku_unsupported",
		`{"orderNo":"A1","amountCents":9900,"quantity":1}`:                        "quantity_invalid",
		`{"orderNo":"A1","amountCents":9900,"sku":"S1","quantity":-1}`:            "quantity_invalid",
		`{"orderNo":"A1","amountCents":9900,"channel":"none"}`:                    "channel_unknown",
		`{"orderNo":"A1","amountCents":9900,"sku":"S1","quantity":9000000000000}`: "quantity_invalid",
	} {
		status, answer := f.create(body)
		require.Equal(t, 400, status)
		require.Equal(t, want, code(t, answer), body)
	}
	require.Equal(t, before, f.dump())
}
