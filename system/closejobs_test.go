package system_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// post is a broker that a test delivers by hand.
type post struct {
	sent   []system.Message
	delays []time.Duration
	handle func(context.Context, system.Message) error
}

func (p *post) Publish(_ context.Context, topic, key string, body []byte, delay time.Duration) error {
	p.sent = append(p.sent, system.Message{ID: key, Topic: topic, Key: key, Body: body})
	p.delays = append(p.delays, delay)
	return nil
}

func (p *post) Subscribe(_ string, handle func(context.Context, system.Message) error) {
	p.handle = handle
}

// desk are leases that a test grants or not.
type desk struct {
	token    int64
	refuse   string // names that begin so are taken
	fails    bool
	hangs    bool
	asked    int
	released []string
	held     bool
	keys     []string
	expire   func(context.Context, string)
}

func (d *desk) Acquire(ctx context.Context, name, owner string, _ time.Duration) (system.Lease, bool, error) {
	d.asked++
	if d.hangs {
		<-ctx.Done()
		return system.Lease{}, false, ctx.Err()
	}
	if d.fails {
		return system.Lease{}, false, errors.New("no leases today")
	}
	d.token++
	return system.Lease{Name: name, Owner: owner, Token: d.token}, d.refuse == "" || !strings.HasPrefix(name, d.refuse), nil
}

func (d *desk) Release(_ context.Context, l system.Lease) error {
	d.released = append(d.released, l.Name)
	return nil
}

func (d *desk) Held(context.Context, system.Lease) (bool, error) { return d.held, nil }

func (d *desk) Expire(_ context.Context, key string, _ time.Duration) error {
	d.keys = append(d.keys, key)
	return nil
}

func (d *desk) OnExpire(_ string, handle func(context.Context, string)) { d.expire = handle }

func TestDelayedMessageCloses(t *testing.T) {
	f, broker := newFixture(t), &post{}
	f.cfg.CloseBy = []system.CloseBy{system.CloseByMessage}
	f.url = f.start(f.cfg, broker, nil)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.clock.advance(time.Second)
	f.relay()
	require.Equal(t, []time.Duration{15*time.Minute - time.Second}, broker.delays)

	f.clock.advance(14 * time.Minute) // early: it is sent once more for the rest
	require.NoError(t, broker.handle(t.Context(), broker.sent[0]))
	require.Equal(t, 59*time.Second, broker.delays[1])
	require.Equal(t, system.Created, f.order("A1").Status)

	f.clock.advance(59 * time.Second)
	f.bank.on("mock /query", refuse(500, "SYSTEM_ERROR"))
	require.Error(t, broker.handle(t.Context(), broker.sent[1]), "so that it is delivered again")
	f.bank.on("mock /query", nil)
	for range 2 {
		require.NoError(t, broker.handle(t.Context(), broker.sent[1]))
	}
	order := f.order("A1")
	require.Equal(t, system.Closed, order.Status)
	require.Equal(t, order.DeadlineMs, order.ClosedMs)
}

func TestExpiredKeyCloses(t *testing.T) {
	f, leases := newFixture(t), &desk{}
	f.cfg.CloseBy = []system.CloseBy{system.CloseByExpiry}
	f.url = f.start(f.cfg, nil, leases)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.relay()
	require.Equal(t, []string{"close/A1"}, leases.keys)
	leases.expire(t.Context(), "close/A1") // early: it changes nothing
	require.Equal(t, system.Created, f.order("A1").Status)
	f.clock.advance(15 * time.Minute)
	leases.expire(t.Context(), "close/A1")
	require.Equal(t, system.Closed, f.order("A1").Status)
	leases.expire(t.Context(), "close/none")
}

func TestScanWithLeases(t *testing.T) {
	for _, c := range []struct {
		name   string
		leases desk
		closed bool
	}{
		{"granted", desk{held: true}, true},
		{"service down", desk{fails: true}, true},
		{"task taken", desk{held: true, refuse: "close-scan"}, false},
		{"order taken", desk{held: true, refuse: "order/"}, false},
		{"lost in mid-job", desk{held: false}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.url = f.start(f.cfg, nil, &c.leases)
			f.create(`{"orderNo":"A1","amountCents":9900}`)
			f.clock.advance(15 * time.Minute)
			f.scan()
			require.Equal(t, c.closed, f.order("A1").Status == system.Closed)
			require.Len(t, c.leases.released, map[string]int{"granted": 2, "order taken": 1, "lost in mid-job": 1}[c.name])
		})
	}
}

// A lease service that hangs costs a scan three timeouts, not several for each order.
func TestHangingLeasesHoldUpNoScan(t *testing.T) {
	leases := &desk{hangs: true}
	f := newFixture(t, func(c *system.Config) {
		c.CallTimeout, c.CloseBy = 100*time.Millisecond, []system.CloseBy{system.CloseByScan}
	})
	f.url = f.start(f.cfg, nil, leases)
	for n := range 9 {
		f.create(fmt.Sprintf(`{"orderNo":"A%d","amountCents":9900}`, n))
	}
	f.clock.advance(15 * time.Minute)
	f.scan()
	require.Empty(t, f.column(`SELECT order_no FROM orders WHERE status <> 'CLOSED'`))
	require.Equal(t, 3, leases.asked)
}

// Who has lost the lease without knowing is stopped by the fence, at the write.
func TestStaleLeaseIsFenced(t *testing.T) {
	f, leases := newFixture(t), &desk{held: true}
	f.url = f.start(f.cfg, nil, leases)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.clock.advance(15 * time.Minute)
	_, err := f.db.ExecContext(t.Context(), `INSERT INTO job_fences VALUES ('close-scan', 99)`)
	require.NoError(t, err)
	f.scan()
	require.Equal(t, system.Created, f.order("A1").Status)
	leases.token = 99
	f.scan()
	require.Equal(t, system.Closed, f.order("A1").Status)
}

func TestList(t *testing.T) {
	f := newFixture(t)
	for _, no := range []string{"A1", "A2", "A3"} {
		f.create(`{"orderNo":"` + no + `","amountCents":100}`)
	}
	_, body := f.do("GET", "/orders?limit=2", "", nil)
	require.JSONEq(t, `{"orders":[
		{"orderNo":"A1","status":"CREATED","amountCents":100,"currency":"CNY","createdMs":1700000000000},
		{"orderNo":"A2","status":"CREATED","amountCents":100,"currency":"CNY","createdMs":1700000000000}],"next":"A2"}`, body)
	_, body = f.do("GET", "/orders?limit=2&after=A2", "", nil)
	require.NotContains(t, body, "next")
	for _, query := range []string{"limit=0", "limit=101", "limit=x", "after=a+b"} {
		status, _ := f.do("GET", "/orders?"+query, "", nil)
		require.Equal(t, 400, status, query)
	}
}
