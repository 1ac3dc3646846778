package system_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/signature"
)

var signingKey = []byte("a signing key for tests")

// clock stands still until a test moves it; the databases of a test read it too. Timeouts are real.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_700_000_000_000)
	return c
}

func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func (c *clock) Now() time.Time { return time.UnixMilli(c.ms.Load()) }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.advance(d)
	return ctx.Err()
}

func (c *clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// loops keeps background work until a test runs it.
type loops struct {
	mu    sync.Mutex
	every map[string]func(context.Context)
	once  []func(context.Context)
}

func (l *loops) Every(name string, _ time.Duration, run func(context.Context)) {
	if l.every == nil {
		l.every = map[string]func(context.Context){}
	}
	l.every[name] = run
}

func (l *loops) Go(_ string, run func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once = append(l.once, run)
}

// runOnce runs what Go was given, and what that gives it in turn.
func (l *loops) runOnce(ctx context.Context) {
	for {
		run := l.next()
		if run == nil {
			return
		}
		run(ctx)
	}
}

func (l *loops) next() func(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.once) == 0 {
		return nil
	}
	run := l.once[0]
	l.once = l.once[1:]
	return run
}

// waiting is how much Go was given that hasn't run.
func (l *loops) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.once)
}

// forget loses what Go was given, as a crash does.
func (l *loops) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.once = nil
}

// connector opens a database file with the functions and the locking that the system asks for.
type connector struct {
	driver *sqlite3.SQLiteDriver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

func connectorTo(clock *clock, path string) connector {
	hook := func(conn *sqlite3.SQLiteConn) error {
		return conn.RegisterFunc("db_now_ms", func() int64 { return clock.ms.Load() }, false)
	}
	return connector{
		driver: &sqlite3.SQLiteDriver{ConnectHook: hook},
		dsn:    "file:" + path + "?_txlock=immediate&_journal_mode=WAL&_busy_timeout=5000&_synchronous=OFF&_stmt_cache_size=50",
	}
}

// fresh are empty databases of each schema, by the function that migrates them. Hundreds of tests begin with a copy.
var fresh sync.Map

type migration func(context.Context, *sql.DB) error

// image is the file of an empty database.
func (m migration) image(t *testing.T) []byte {
	t.Helper()
	key := reflect.ValueOf(m).Pointer()
	if image, ok := fresh.Load(key); ok {
		return image.([]byte)
	}
	path := filepath.Join(t.TempDir(), "fresh.db")
	db := sql.OpenDB(connectorTo(newClock(), path))
	require.NoError(t, m(t.Context(), db))
	require.NoError(t, db.Close())
	image, err := os.ReadFile(path)
	require.NoError(t, err)
	fresh.Store(key, image)
	return image
}

func openDB(t *testing.T, clock *clock, migrate migration) *sql.DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	require.NoError(t, os.WriteFile(path, migrate.image(t), 0o600))
	db := sql.OpenDB(connectorTo(clock, path))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// ids counts; a test needs no better.
func ids() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id-%d", n.Add(1)) }
}

// fixture is one shop over its own database, with two channels and a stock service that the test plays.
type fixture struct {
	*testing.T
	clock *clock
	loops *loops
	db    *sql.DB
	bank  *bank
	cfg   system.Config
	url   string
}

func newFixture(t *testing.T, change ...func(*system.Config)) *fixture {
	f := &fixture{T: t, clock: newClock(), loops: &loops{}, bank: newBank()}
	f.db = openDB(t, f.clock, system.Migrate)
	others := httptest.NewServer(f.bank)
	t.Cleanup(others.Close)
	f.cfg = system.Config{
		Channels:  []system.ChannelConfig{{Name: "mock", URL: others.URL + "/mock"}, {Name: "second", URL: others.URL + "/second", AckBody: "success"}},
		StockURL:  others.URL + "/stock",
		NotifyURL: "http://shop/callback/pay", MerchantID: "M1", SigningKey: signingKey,
	}
	for _, c := range change {
		c(&f.cfg)
	}
	f.url = f.start(f.cfg, nil, nil)
	return f
}

// start starts an instance over the fixture's database and returns where it listens.
func (f *fixture) start(cfg system.Config, broker system.Broker, leases system.Leases) string {
	f.Helper()
	return f.startWith(cfg, system.Env{DB: f.db, HTTP: &http.Client{}, Broker: broker, Leases: leases})
}

// startOver starts an instance that reaches the database and the others in its own way.
func (f *fixture) startOver(db *sql.DB, client *http.Client) string {
	f.Helper()
	return f.startWith(f.cfg, system.Env{DB: db, HTTP: client})
}

func (f *fixture) startWith(cfg system.Config, env system.Env) string {
	f.Helper()
	env.Clock, env.Loops, env.NewID, env.Log = f.clock, f.loops, ids(), quiet()
	shop, err := system.New(cfg, env)
	require.NoError(f, err)
	shop.Start()
	return serve(f.T, shop.Handler())
}

// path is the file of the fixture's database.
func (f *fixture) path() (path string) {
	f.Helper()
	require.NoError(f, f.db.QueryRowContext(f.Context(), `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path))
	return path
}

func (f *fixture) do(method, path, body string, header http.Header) (int, string) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.url+path, strings.NewReader(body))
	require.NoError(f, err)
	r.Header = header
	reply, err := http.DefaultClient.Do(r)
	require.NoError(f, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(f, err)
	return reply.StatusCode, string(text)
}

func (f *fixture) create(body string) (int, string) {
	f.Helper()
	return f.do("POST", "/orders", body, http.Header{})
}

// callback posts a callback signed now.
func (f *fixture) callback(body string) (int, string) {
	f.Helper()
	return f.signed(body, signature.Sign(signingKey, []byte(body), f.clock.Now()))
}

func (f *fixture) signed(body, signed string) (int, string) {
	f.Helper()
	return f.do("POST", "/callback/pay", body, http.Header{signature.Header: {signed}})
}

func (f *fixture) order(orderNo string) (order system.Order) {
	f.Helper()
	status, body := f.do("GET", "/orders/"+orderNo, "", http.Header{})
	require.Equal(f, 200, status, body)
	require.NoError(f, json.Unmarshal([]byte(body), &order))
	return order
}

func (f *fixture) scan() { f.run("close-scan") }

// run is one run of a periodic job.
func (f *fixture) run(job string) { f.loops.every[job](f.Context()) }

// relay delivers what was sent, and what follows from that.
func (f *fixture) relay() { f.loops.runOnce(f.Context()) }

// column returns the first column of a query as text, row by row.
func (f *fixture) column(query string, args ...any) []string {
	f.Helper()
	rows, err := f.db.QueryContext(f.Context(), query, args...)
	require.NoError(f, err)
	defer rows.Close()
	var values []string
	for rows.Next() {
		var value string
		require.NoError(f, rows.Scan(&value))
		values = append(values, value)
	}
	require.NoError(f, rows.Err())
	return values
}

// dump is every row of every table, as text.
func (f *fixture) dump() string {
	f.Helper()
	return f.dumpOf(f.column(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`))
}

// facts is a dump of what isn't an alert.
func (f *fixture) facts() string {
	f.Helper()
	return f.dumpOf(f.column(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'alerts' ORDER BY name`))
}

// raised tells the alerts, "charge-refused mock/T1 9900".
func (f *fixture) raised() []string {
	f.Helper()
	return f.column(`SELECT kind || ' ' || subject || ' ' || amount_cents FROM alerts ORDER BY alert_id`)
}

func (f *fixture) dumpOf(tables []string) string {
	f.Helper()
	var dump strings.Builder
	for _, table := range tables {
		columns := f.column(`SELECT 'quote(' || name || ')' FROM pragma_table_info(?)`, table)
		rows := f.column(`SELECT ` + strings.Join(columns, ` || ',' || `) + ` FROM ` + table + ` ORDER BY rowid`)
		fmt.Fprintf(&dump, "%s\n%s\n", table, strings.Join(rows, "\n"))
	}
	return dump.String()
}

// code is the stable code of an error's body.
func code(t *testing.T, body string) string {
	t.Helper()
	var answer struct{ Error struct{ Code string } }
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	return answer.Error.Code
}
