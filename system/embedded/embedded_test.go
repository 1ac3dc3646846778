package embedded_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/conformance"
	"github.com/tillstorm/tillstorm/system/embedded"
)

type connector struct {
	driver *sqlite3.SQLiteDriver
	dsn    string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

func openDB(t *testing.T, nowMs func() int64) *sql.DB {
	hook := func(conn *sqlite3.SQLiteConn) error { return conn.RegisterFunc("db_now_ms", nowMs, false) }
	db := sql.OpenDB(connector{
		driver: &sqlite3.SQLiteDriver{ConnectHook: hook},
		dsn:    "file:" + filepath.Join(t.TempDir(), "messages.db") + "?_txlock=immediate&_journal_mode=WAL&_busy_timeout=5000&_synchronous=OFF",
	})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, embedded.Migrate(t.Context(), db))
	return db
}

// realTime is a Clock and Loops in real time; wait ends the loops and waits for them.
type realTime struct {
	ctx     context.Context
	running sync.WaitGroup
}

func (*realTime) Now() time.Time { return time.Now() }

func (*realTime) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (*realTime) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (r *realTime) Go(_ string, run func(context.Context)) { r.running.Go(func() { run(r.ctx) }) }

func (r *realTime) Every(name string, interval time.Duration, run func(context.Context)) {
	r.Go(name, func(ctx context.Context) {
		for r.Sleep(ctx, interval) == nil {
			run(ctx)
		}
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	world := &realTime{ctx: ctx}
	env := embedded.Env{
		Loops: world, Log: slog.New(slog.DiscardHandler),
		DB: openDB(t, func() int64 { return time.Now().UnixMilli() }),
	}
	broker, err := embedded.NewBroker(env)
	require.NoError(t, err)
	leases, err := embedded.NewLeases(env)
	require.NoError(t, err)
	require.NoError(t, conformance.Check(t.Context(), conformance.Subject{
		Clock: world, Loops: world, Broker: broker, Leases: leases, Unit: 250 * time.Millisecond,
	}))
	cancel()
	world.running.Wait()
}

// steps keeps background work until a test runs it.
type steps struct{ every []func(context.Context) }

func (s *steps) Every(_ string, _ time.Duration, run func(context.Context)) {
	s.every = append(s.every, run)
}
func (s *steps) Go(string, func(context.Context)) {}

func (s *steps) run(ctx context.Context) {
	for _, run := range s.every {
		run(ctx)
	}
}

// instance is a broker as a process has it; several may share one database.
func instance(t *testing.T, db *sql.DB, handle func(context.Context, system.Message) error) (*embedded.Broker, *steps) {
	work := &steps{}
	broker, err := embedded.NewBroker(embedded.Env{Loops: work, DB: db, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	broker.Subscribe("close", handle)
	return broker, work
}

func TestMessagesSurviveARestartAndADeadHandler(t *testing.T) {
	var now atomic.Int64
	db := openDB(t, now.Load)
	var got []string
	handle := func(_ context.Context, m system.Message) error {
		got = append(got, m.Key)
		return nil
	}
	dies := func(context.Context, system.Message) error { panic("the process dies") }
	broker, doomed := instance(t, db, dies)
	require.NoError(t, broker.Publish(t.Context(), "close", "A", nil, time.Minute))
	now.Add(time.Minute.Milliseconds())
	require.Panics(t, func() { doomed.run(t.Context()) })

	_, other := instance(t, db, handle)
	other.run(t.Context())
	require.Empty(t, got) // the claim of the dead stands for a while
	now.Add((30 * time.Second).Milliseconds())
	other.run(t.Context())
	other.run(t.Context())
	require.Equal(t, []string{"A"}, got)
}

func TestFailedDeliveriesComeLaterAndLater(t *testing.T) {
	var now atomic.Int64
	db := openDB(t, now.Load)
	var at []int64
	broker, work := instance(t, db, func(context.Context, system.Message) error {
		at = append(at, now.Load()/1000)
		return errors.New("not now")
	})
	require.NoError(t, broker.Publish(t.Context(), "close", "A", []byte("x"), 0))
	for range 120 {
		work.run(t.Context())
		now.Add(time.Second.Milliseconds())
	}
	require.Equal(t, []int64{0, 1, 3, 7, 15, 31, 63}, at)
}

func TestTwoInstancesShareTheMessages(t *testing.T) {
	db := openDB(t, func() int64 { return 1 })
	var count atomic.Int64
	handle := func(context.Context, system.Message) error {
		count.Add(1)
		return nil
	}
	broker, one := instance(t, db, handle)
	_, two := instance(t, db, handle)
	for range 50 {
		require.NoError(t, broker.Publish(t.Context(), "close", "A", nil, 0))
	}
	var group sync.WaitGroup
	group.Go(func() { one.run(t.Context()) })
	group.Go(func() { two.run(t.Context()) })
	group.Wait()
	one.run(t.Context())
	require.EqualValues(t, 50, count.Load())
}

func TestTokensGrowOverRestarts(t *testing.T) {
	var now atomic.Int64
	db := openDB(t, now.Load)
	var last int64
	for range 3 {
		leases, err := embedded.NewLeases(embedded.Env{Loops: &steps{}, DB: db, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		lease, ok, err := leases.Acquire(t.Context(), "close-scan", "shop-1", time.Second)
		require.NoError(t, err)
		require.True(t, ok)
		require.Greater(t, lease.Token, last)
		last = lease.Token
		now.Add(1000)
	}
}

func TestEnvIsNeeded(t *testing.T) {
	_, err := embedded.NewBroker(embedded.Env{})
	require.ErrorContains(t, err, "must all be set")
	_, err = embedded.NewLeases(embedded.Env{})
	require.ErrorContains(t, err, "must all be set")
}
