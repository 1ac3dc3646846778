package system_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// keyed posts under an idempotency key.
func (f *fixture) keyed(path, key, body string) (int, string) {
	f.Helper()
	return f.do("POST", path, body, http.Header{system.KeyHeader: {key}})
}

func TestSameKeySameAnswer(t *testing.T) {
	f := newFixture(t)
	const body = `{"orderNo":"A1","amountCents":9900}`
	status, first := f.keyed("/orders", "K", body)
	require.Equal(t, 201, status, first)
	f.clock.advance(time.Hour)
	f.scan() // the order moves on, the answer stays
	before := f.dump()
	for range 3 {
		status, again := f.keyed("/orders", "K", body)
		require.Equal(t, 201, status)
		require.Equal(t, first, again)
	}
	require.Equal(t, before, f.dump())
}

func TestKeyedRefusals(t *testing.T) {
	f := newFixture(t)
	f.keyed("/orders", "K", `{"orderNo":"A1","amountCents":9900}`)
	f.keyed("/orders", "K2", `{"orderNo":"A2","amountCents":9900}`)
	f.keyed("/orders/A1/cancel", "K", `{}`)
	before := f.dump()
	for _, c := range []struct {
		name, path, key, body, code string
		status                      int
	}{
		{"other content", "/orders", "K", `{"orderNo":"A1","amountCents":9901}`, "idempotency_key_reused", 422},
		{"other bytes", "/orders", "K", `{"orderNo":"A1", "amountCents":9900}`, "idempotency_key_reused", 422},
		{"other order in the path", "/orders/A2/cancel", "K", `{}`, "idempotency_key_reused", 422},
		{"no key", "/orders", "", `{"orderNo":"A1","amountCents":9900}`, "idempotency_key_invalid", 400},
		{"long key", "/orders", strings.Repeat("K", 256), `{"orderNo":"A1","amountCents":9900}`, "idempotency_key_invalid", 400},
		{"key with a space", "/orders", "K 1", `{"orderNo":"A1","amountCents":9900}`, "idempotency_key_invalid", 400},
		{"malformed", "/orders", "N", `{"orderNo":"A1"`, "body_invalid", 400},
		{"no amount", "/orders", "N", `{"orderNo":"A1"}`, "amount_invalid", 400},
		{"large", "/orders", "N", strings.Repeat(" ", 70_000), "body_too_large", 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := f.keyed(c.path, c.key, c.body)
			require.Equal(t, c.status, status, body)
			require.Equal(t, c.code, code(t, body))
			require.Equal(t, before, f.dump())
		})
	}
	status, body := f.do("POST", "/orders", `{}`, http.Header{system.KeyHeader: {"K"}, system.CallerHeader: {"a b"}})
	require.Equal(t, 400, status)
	require.Equal(t, "caller_invalid", code(t, body))
}

func TestKeysOfCallersAndOperationsAreApart(t *testing.T) {
	f := newFixture(t)
	for _, caller := range []string{"", "web", "app"} {
		header := http.Header{system.KeyHeader: {"K"}}
		if caller != "" {
			header.Set(system.CallerHeader, caller)
		}
		status, body := f.do("POST", "/orders", fmt.Sprintf(`{"orderNo":"A%s","amountCents":1}`, caller), header)
		require.Equal(t, 201, status, body)
	}
	status, body := f.keyed("/orders/A/cancel", "K", ``)
	require.Equal(t, 200, status, body)
	require.Equal(t, []string{"anonymous create", "anonymous cancel", "app create", "web create"},
		f.column(`SELECT caller || ' ' || operation FROM idempotency_keys ORDER BY caller, operation DESC`))
}

// A refusal by the order's state is an answer like any other.
func TestRefusalIsKept(t *testing.T) {
	f := newFixture(t)
	status, first := f.keyed("/orders/A1/cancel", "K", ``)
	require.Equal(t, 404, status, first)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	status, again := f.keyed("/orders/A1/cancel", "K", ``)
	require.Equal(t, 404, status)
	require.Equal(t, first, again)
	require.Equal(t, system.Created, f.order("A1").Status)
}

// What is unfinished is taken up again under the same key.
func TestUnfinishedIsTakenUpAgain(t *testing.T) {
	f := newFixture(t)
	f.bank.on("mock /prepay", refuse(503, "SYSTEM_ERROR"))
	const body = `{"orderNo":"A1","amountCents":9900}`
	status, _ := f.keyed("/orders", "K", body)
	require.Equal(t, 202, status)
	f.bank.on("mock /prepay", nil)
	status, first := f.keyed("/orders", "K", body)
	require.Equal(t, 200, status, first)
	require.Contains(t, first, "prepayToken")
	status, again := f.keyed("/orders", "K", body)
	require.Equal(t, 200, status)
	require.Equal(t, first, again)
}

func TestInFlightAndTakeover(t *testing.T) {
	f := newFixture(t)
	const body = `{"orderNo":"A1","amountCents":9900}`
	entered, leave := make(chan bool), make(chan bool)
	f.bank.on("mock /prepay", func(w http.ResponseWriter, r *http.Request) {
		entered <- true
		<-leave
		refuse(503, "SYSTEM_ERROR")(w, r)
	})
	slow := make(chan string)
	go func() {
		_, text := f.keyed("/orders", "K", body)
		slow <- text
	}()
	<-entered
	status, text := f.keyed("/orders", "K", body)
	require.Equal(t, 409, status)
	require.Equal(t, "idempotency_in_flight", code(t, text))

	f.clock.advance(time.Minute) // the first is as good as dead
	f.bank.on("mock /prepay", nil)
	status, first := f.keyed("/orders", "K", body)
	require.Equal(t, 200, status, first)
	leave <- true
	<-slow
	status, again := f.keyed("/orders", "K", body)
	require.Equal(t, 200, status)
	require.Equal(t, first, again, "the one who took over has the answer")
}

// One key is one refund, though each request without a number is a refund of its own: also when a request died after its
// effect, before its answer was kept.
func TestKeyNamesTheEffect(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	status, text := f.callback(`{"orderNo":"A1","channel":"mock","channelTxn":"T1","amountCents":9900}`)
	require.Equal(t, 200, status, text)
	_, err := f.db.Exec(`CREATE TRIGGER broken BEFORE UPDATE ON idempotency_keys BEGIN SELECT raise(ABORT, 'broken'); END`)
	require.NoError(t, err)
	f.keyed("/orders/A1/refunds", "K", `{"amountCents":1000}`)
	_, err = f.db.Exec(`DROP TRIGGER broken`)
	require.NoError(t, err)
	status, text = f.keyed("/orders/A1/refunds", "K", `{"amountCents":1000}`)
	require.Equal(t, 409, status, text)

	f.clock.advance(time.Minute)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { f.keyed("/orders/A1/refunds", "K", `{"amountCents":1000}`) })
	}
	group.Wait()
	require.Equal(t, []string{"1000"}, f.column(`SELECT amount_cents FROM refunds`))
	f.keyed("/orders/A1/refunds", "K2", `{"amountCents":1000}`)
	require.Equal(t, []string{"1000", "1000"}, f.column(`SELECT amount_cents FROM refunds`))
}

func TestKeyedAtOnce(t *testing.T) {
	f := newFixture(t)
	answers := make([]string, 16)
	var group sync.WaitGroup
	for n := range answers {
		group.Go(func() {
			status, text := f.keyed("/orders", "K", fmt.Sprintf(`{"orderNo":"A%d","amountCents":9900}`, n%2))
			answers[n] = fmt.Sprint(status, text)
		})
	}
	group.Wait()
	require.Len(t, f.column(`SELECT order_no FROM orders`), 1)
	won := map[string]bool{}
	for _, answer := range answers {
		if strings.HasPrefix(answer, "201") {
			won[answer] = true
			continue
		}
		require.Regexp(t, `^(409.*idempotency_in_flight|422.*idempotency_key_reused)`, answer)
	}
	require.Len(t, won, 1, "every answer is the same answer")
}
