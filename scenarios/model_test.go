package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
)

// modelOrder is what an order must be, by a model that knows nothing of tables,
// channels or messages: small enough to be right by looking at it.
type modelOrder struct {
	cents    int64
	status   string // "" before it is made
	deadline time.Duration
	attempts []string // channels
	charges  int      // what the channels have taken, one after the other
	surplus  int      // of those, how many must go back by themselves
	refunds  map[string]int64
	refunded int64
}

// machine drives the real system in a simulated world, one action at a time, and
// the model beside it. It is a generator of its own, independent of the sweep's: no
// faults, but every order of actions.
type machine struct {
	*world
	orders  map[string]*modelOrder
	clients int
}

// settling is how long things take to come to rest after an action, refunds that a
// channel takes one a minute apart.
const settling = 3 * time.Minute

func newMachine(t *rapid.T, arena *sim.Arena) *machine {
	policy := Policy{
		Close:       rapid.SampledFrom([]system.ClosePolicy{system.CloseAskFirst, system.CloseLocalOnly}).Draw(t, "close"),
		LateSuccess: system.LateRefund,
	}
	m := &machine{orders: map[string]*modelOrder{}}
	workload := Workload{Orders: map[string]*Order{}}
	for _, name := range []string{"A", "B"} {
		workload.Orders[name] = &Order{}
		m.orders[name] = &modelOrder{refunds: map[string]int64{}}
	}
	w, err := build(&Case{Workload: workload, Policy: policy}, arena, nil)
	require.NoError(t, err)
	m.world = w
	m.World.Run(time.Second)
	return m
}

// call sends a request from a client of its own and returns the answer.
func (m *machine) call(t *rapid.T, method, url, body string) (status int, answer map[string]any) {
	m.clients++
	done := false
	m.Node(fmt.Sprint("client-", m.clients), func(p *sim.Process) {
		r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
		require.NoError(t, err)
		resp, err := p.HTTPClient().Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		status = resp.StatusCode
		_ = json.NewDecoder(resp.Body).Decode(&answer)
		done = true
	})
	m.RunUntil(m.Now()+time.Minute, func() bool { return done })
	require.True(t, done, "%s %s was never answered", method, url)
	return status, answer
}

// rest lets everything come to rest, and lets deadlines pass that are near: what the
// model says of them would depend on milliseconds.
func (m *machine) rest() {
	m.World.Run(m.Now() + settling)
	for _, o := range m.orders {
		if near := o.deadline - m.Now(); o.status == "CREATED" && -time.Minute < near && near < time.Minute {
			m.World.Run(m.Now() + 2*time.Minute)
		}
	}
	for _, o := range m.orders {
		if o.status == "CREATED" && m.Now() > o.deadline {
			o.status = "CLOSED"
		}
	}
}

func (m *machine) pick(t *rapid.T) (string, *modelOrder) {
	name := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "order")
	return name, m.orders[name]
}

func (m *machine) create(t *rapid.T) {
	name, o := m.pick(t)
	cents := rapid.Int64Range(1, 3).Draw(t, "hundreds") * 100
	channel := rapid.SampledFrom(usualChannels).Draw(t, "channel")
	status, _ := m.call(t, "POST", "http://shop/orders", fmt.Sprintf(`{"orderNo":%q,"amountCents":%d,"channel":%q}`, name, cents, channel))
	switch {
	case o.status == "":
		require.Equal(t, 201, status)
		o.cents, o.status, o.attempts, o.deadline = cents, "CREATED", []string{channel}, m.Now()+payWindow
	case cents == o.cents && channel == o.attempts[0]:
		require.Equal(t, 200, status)
	default:
		require.Equal(t, 409, status, "other content under a known number")
	}
}

func (m *machine) attempt(t *rapid.T) {
	name, o := m.pick(t)
	channel := rapid.SampledFrom(usualChannels).Draw(t, "channel")
	status, _ := m.call(t, "POST", "http://shop/orders/"+name+"/pay", fmt.Sprintf(`{"channel":%q}`, channel))
	known := false
	for _, c := range o.attempts {
		known = known || c == channel
	}
	switch {
	case o.status == "":
		require.Equal(t, 404, status)
	case o.status != "CREATED":
		require.GreaterOrEqual(t, status, 200)
	default:
		require.Less(t, status, 300)
		if !known {
			o.attempts = append(o.attempts, channel)
		}
	}
}

// pay pays one of the order's trades, if it has any.
func (m *machine) pay(t *rapid.T) {
	name, o := m.pick(t)
	if len(o.attempts) == 0 {
		t.Skip("no trade")
	}
	i := rapid.IntRange(1, len(o.attempts)).Draw(t, "attempt")
	before := m.charged(t, name)
	m.call(t, "POST", "http://"+o.attempts[i-1]+"/pay", fmt.Sprintf(`{"outTradeNo":"%s-%d"}`, name, i))
	if m.charged(t, name) == before {
		return // paid already, or the channel has closed the trade
	}
	o.charges++
	if o.status == "CREATED" {
		o.status = "PAID"
	} else {
		o.surplus++
	}
}

func (m *machine) cancel(t *rapid.T) {
	name, o := m.pick(t)
	status, _ := m.call(t, "POST", "http://shop/orders/"+name+"/cancel", "{}")
	switch o.status {
	case "":
		require.Equal(t, 404, status)
	case "CREATED", "CLOSED":
		require.Equal(t, 200, status)
		o.status = "CLOSED"
	default:
		require.Equal(t, 409, status)
	}
}

func (m *machine) refund(t *rapid.T) {
	name, o := m.pick(t)
	cents := rapid.Int64Range(1, 4).Draw(t, "hundreds") * 100
	no := fmt.Sprintf("%s-r%d", name, rapid.IntRange(1, 3).Draw(t, "number"))
	status, _ := m.call(t, "POST", "http://shop/orders/"+name+"/refunds", fmt.Sprintf(`{"refundNo":%q,"amountCents":%d}`, no, cents))
	known, repeated := o.refunds[no]
	switch {
	case o.status == "":
		require.Equal(t, 404, status)
	case repeated && known == cents:
		require.Less(t, status, 300, "the same refund again")
	case repeated:
		require.Equal(t, 409, status, "the number belongs to another refund")
	case o.status == "CREATED" || o.status == "CLOSED":
		require.Equal(t, 409, status)
	case o.refunded+cents > o.cents:
		require.Equal(t, 422, status, "more than was paid")
	default:
		require.Less(t, status, 300)
		o.refunds[no] = cents
		o.refunded += cents
		if o.refunded == o.cents {
			o.status = "REFUNDED"
		}
	}
	m.rest()
	m.rest()
}

// resend lets the channel tell of a charge once more.
func (m *machine) resend(t *rapid.T) {
	name, o := m.pick(t)
	if o.charges == 0 {
		t.Skip("no charge")
	}
	for i, channel := range o.attempts {
		m.call(t, "POST", "http://"+channel+"/operator/resend", fmt.Sprintf(`{"outTradeNo":"%s-%d"}`, name, i+1))
	}
}

func (m *machine) wait(t *rapid.T) {
	m.World.Run(m.Now() + time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes"))*time.Minute)
	m.rest()
}

// check compares the rows and the ledgers with the model.
func (m *machine) check(t *rapid.T) {
	m.rest()
	for name, o := range m.orders {
		require.Equal(t, o.status, m.row(t, name), "order %s", name)
		back := m.sum(t, "SELECT sum(amount_cents) FROM refunds WHERE state = 'SUCCESS' AND order_no = ?", name)
		require.Equal(t, int64(o.surplus)*o.cents+o.refunded, back, "what the channels gave back of order %s", name)
		require.Equal(t, int64(o.charges)*o.cents, m.charged(t, name), "what the channels took for order %s", name)
	}
}

func (m *machine) row(t *rapid.T, name string) string {
	_, rows, err := m.world.orders.Query("SELECT status FROM orders WHERE order_no = ?", name)
	require.NoError(t, err)
	if len(rows) == 0 {
		return ""
	}
	return rows[0][0].(string)
}

func (m *machine) charged(t *rapid.T, name string) int64 {
	return m.sum(t, "SELECT sum(amount_cents) FROM charges WHERE order_no = ?", name)
}

// sum adds up over all ledgers.
func (m *machine) sum(t *rapid.T, query, name string) (total int64) {
	for _, channel := range usualChannels {
		_, rows, err := m.ledgers[channel].Query(query, name)
		require.NoError(t, err)
		cents, _ := rows[0][0].(int64)
		total += cents
	}
	return total
}

// TestSystemFollowsTheModel lets rapid look for a sequence of actions after which
// the real system and the model differ.
func TestSystemFollowsTheModel(t *testing.T) {
	arena := sim.NewArena()
	defer arena.Close()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, arena)
		defer m.Close()
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create, "attempt": m.attempt, "pay": m.pay, "cancel": m.cancel, "refund": m.refund,
			"resend": m.resend, "wait": m.wait, "": m.check,
		})
		m.RunUntil(m.Now()+settleLimit, m.evidence.Settled)
		failures, unknown := m.evidence.Finish()
		require.Empty(t, failures)
		require.False(t, unknown)
	})
}
