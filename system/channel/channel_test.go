package channel_test

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
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/channel"
	"github.com/tillstorm/tillstorm/system/signature"
)

var signingKey = []byte("a signing key for tests")

// world is the emulator's Clock and Loops, one after the other: a sleep moves the clock at once, and what Go is given
// waits until the test runs it.
type world struct {
	ms     atomic.Int64
	tasks  []func(context.Context)
	sleeps []time.Duration
}

func (w *world) Now() time.Time { return time.UnixMilli(w.ms.Load()) }

func (w *world) Sleep(ctx context.Context, d time.Duration) error {
	w.sleeps = append(w.sleeps, d)
	w.ms.Add(d.Milliseconds())
	return ctx.Err()
}

func (w *world) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (w *world) Go(_ string, run func(context.Context)) { w.tasks = append(w.tasks, run) }

func (w *world) run(ctx context.Context) {
	for len(w.tasks) > 0 {
		run := w.tasks[0]
		w.tasks = w.tasks[1:]
		run(ctx)
	}
}

type connector struct {
	driver *sqlite3.SQLiteDriver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// fixture is an emulator over a ledger, and a merchant that the test plays.
type fixture struct {
	*testing.T
	world    *world
	db       *sql.DB
	bank     *channel.Channel
	url      string
	notify   string
	received []string // bodies that reached the merchant
	answer   func(n int) int
}

func newFixture(t *testing.T, personality channel.Personality) *fixture {
	f := &fixture{T: t, world: &world{}, answer: func(int) int { return 200 }}
	f.world.ms.Store(1_700_000_000_000)
	hook := func(conn *sqlite3.SQLiteConn) error {
		return conn.RegisterFunc("db_now_ms", func() int64 { return f.world.ms.Load() }, false)
	}
	f.db = sql.OpenDB(connector{
		driver: &sqlite3.SQLiteDriver{ConnectHook: hook},
		dsn:    "file:" + filepath.Join(t.TempDir(), "ledger.db") + "?_txlock=immediate&_journal_mode=WAL&_busy_timeout=5000&_synchronous=OFF",
	})
	t.Cleanup(func() { require.NoError(t, f.db.Close()) })
	require.NoError(t, channel.Migrate(t.Context(), f.db))
	merchant := httptest.NewServer(http.HandlerFunc(f.merchant))
	t.Cleanup(merchant.Close)
	f.notify = merchant.URL
	f.bank = f.newBank(personality)
	server := httptest.NewServer(f.bank.Handler())
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fixture) newBank(personality channel.Personality) *channel.Channel {
	f.Helper()
	bank, err := channel.New(channel.Config{Personality: personality, SigningKey: signingKey}, channel.Env{
		Clock: f.world, Loops: f.world, DB: f.db, HTTP: &http.Client{},
		NewID: func() string { return "trace" }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(f, err)
	return bank
}

func (f *fixture) merchant(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if signature.Verify(signingKey, body, r.Header.Get(signature.Header), f.world.Now(), time.Second) != nil {
		w.WriteHeader(401)
		return
	}
	f.received = append(f.received, string(body))
	w.WriteHeader(f.answer(len(f.received)))
}

func (f *fixture) post(path, body string) (int, map[string]any) {
	f.Helper()
	reply, err := http.Post(f.url+path, "application/json", strings.NewReader(body))
	require.NoError(f, err)
	defer reply.Body.Close()
	var answer map[string]any
	require.NoError(f, json.NewDecoder(reply.Body).Decode(&answer))
	return reply.StatusCode, answer
}

func (f *fixture) prepay(amountCents int) (int, map[string]any) {
	f.Helper()
	return f.post("/prepay", fmt.Sprintf(`{"merchantId":"M1","outTradeNo":"A1-1","orderNo":"A1","amountCents":%d,
		"currency":"CNY","notifyUrl":%q}`, amountCents, f.notify))
}

func (f *fixture) count(query string) (n int) {
	f.Helper()
	require.NoError(f, f.db.QueryRowContext(f.Context(), query).Scan(&n))
	return n
}

func code(answer map[string]any) any {
	detail, _ := answer["error"].(map[string]any)
	return detail["code"]
}

const trade = `{"outTradeNo":"A1-1"}`

func TestPrepayBelongsToItsNumber(t *testing.T) {
	f := newFixture(t, channel.Mock())
	status, first := f.prepay(9900)
	require.Equal(t, 200, status)
	status, again := f.prepay(9900)
	require.Equal(t, 200, status)
	require.Equal(t, first, again)

	status, other := f.prepay(9901)
	require.Equal(t, 409, status)
	require.Equal(t, "OUT_TRADE_NO_USED", code(other))
	status, other = f.prepay(-1)
	require.Equal(t, 400, status)
	require.Equal(t, "PARAM_ERROR", code(other))
}

func TestPayTwiceChargesOnce(t *testing.T) {
	f := newFixture(t, channel.Mock())
	f.prepay(9900)
	status, first := f.post("/pay", trade)
	require.Equal(t, 200, status)
	require.Equal(t, "T-A1-1-1", first["channelTxn"])
	status, again := f.post("/pay", trade)
	require.Equal(t, 200, status)
	require.Equal(t, first, again)
	_, asked := f.post("/query", trade)
	require.Equal(t, first, asked)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM charges`))

	f.world.run(t.Context())
	require.Equal(t, []string{`{"orderNo":"A1","outTradeNo":"A1-1","channel":"mock","merchantId":"M1","channelTxn":"T-A1-1-1","state":"SUCCESS","amountCents":9900,"currency":"CNY"}`}, f.received)

	_, prepaid := f.prepay(9900)
	require.Equal(t, "ORDERPAID", code(prepaid))
}

func TestClosedTradeTakesNoMoney(t *testing.T) {
	f := newFixture(t, channel.Mock())
	status, unknown := f.post("/pay", trade)
	require.Equal(t, 404, status)
	require.Equal(t, "TRADE_NOT_EXIST", code(unknown))

	f.prepay(9900)
	status, closed := f.post("/close", trade)
	require.Equal(t, 200, status)
	require.Equal(t, "CLOSED", closed["state"])
	for _, path := range []string{"/close", "/pay"} {
		status, refused := f.post(path, trade)
		require.Equal(t, 409, status)
		require.Equal(t, "ORDER_CLOSED", code(refused))
	}
	require.Zero(t, f.count(`SELECT count(*) FROM charges`))
	require.Zero(t, f.count(`SELECT count(*) FROM notifications`))
}

func TestResendUntilAck(t *testing.T) {
	f := newFixture(t, channel.Mock())
	f.answer = func(n int) int { return map[bool]int{true: 200, false: 500}[n == 4] }
	f.prepay(9900)
	f.post("/pay", trade)
	f.world.run(t.Context())
	require.Len(t, f.received, 4)
	require.Equal(t, f.received[0], f.received[3])
	require.Equal(t, []time.Duration{200 * time.Millisecond, 2 * time.Second, 5 * time.Second, 15 * time.Second}, f.world.sleeps)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM notifications WHERE state = 'ACKED'`))
}

func TestGiveUpAfterTheSchedule(t *testing.T) {
	f := newFixture(t, channel.WechatLike())
	f.answer = func(int) int { return 404 }
	f.prepay(9900)
	f.post("/pay", trade)
	f.world.run(t.Context())
	const copies = 1
	require.Len(t, f.received, 1+len(channel.WechatLike().Resend)+copies)
	var total time.Duration
	for _, sleep := range f.world.sleeps[1 : len(f.world.sleeps)-copies] {
		total += sleep
	}
	require.Equal(t, 24*time.Hour+4*time.Minute, total)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM notifications WHERE state = 'GIVEN_UP'`))
}

func TestNotificationsSurviveACrash(t *testing.T) {
	f := newFixture(t, channel.Mock())
	f.prepay(9900)
	f.post("/pay", trade)
	f.world.tasks = nil // the emulator dies right after the charge's commit
	f.world.ms.Add(time.Minute.Milliseconds())

	f.newBank(channel.Mock()).Start()
	f.world.run(t.Context())
	require.Len(t, f.received, 1)
	require.Equal(t, []time.Duration{0}, f.world.sleeps)
}
