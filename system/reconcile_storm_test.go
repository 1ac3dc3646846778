package system_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// flaky loses requests, and answers of requests that were carried out.
type flaky struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

var errLost = errors.New("lost")

func (f *flaky) loses() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.calm && f.random.IntN(5) == 0
}

func (f *flaky) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.loses() {
		return nil, errLost
	}
	reply, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && f.loses() {
		return nil, errors.Join(errLost, reply.Body.Close())
	}
	return reply, err
}

// storm is a town whose services hear each other badly, and where anything may be asked for at any time.
type storm struct {
	*town
	random *rand.Rand
	flaky  *flaky
	jobs   []string
	steps  int
}

func newStorm(t *testing.T, seed uint64) *storm {
	random := rand.New(rand.NewPCG(seed, 1))
	s := &storm{
		random: random, flaky: &flaky{random: rand.New(rand.NewPCG(seed, 2))},
		jobs: []string{"close-scan", "outbox-relay", "pending-query", "refund-query", "reconcile"},
	}
	s.town = newTown(t, func(c *system.Config) {
		if seed%2 == 1 {
			c.ClosePolicy = system.CloseLocalOnly
		}
		if seed%4 > 1 {
			c.LateSuccess = system.LateReinstate
		}
	})
	s.url = s.startOver(s.db, &http.Client{Transport: s.flaky})
	return s
}

// step is one thing that somebody does.
func (s *storm) step() {
	s.steps++
	orderNo := fmt.Sprintf("A%d", s.steps/25+s.random.IntN(3))
	switch s.random.IntN(12) {
	case 0, 1:
		s.create(fmt.Sprintf(`{"orderNo":%q,"amountCents":9900,"sku":"S1","quantity":%d}`, orderNo, 2))
	case 2, 3:
		s.do("POST", "/orders/"+orderNo+"/pay", `{"channel":"second"}`, http.Header{})
	case 4, 5, 6:
		s.tell(s.urls["mock"]+"/pay", fmt.Sprintf(`{"outTradeNo":"%s-1"}`, orderNo))
		s.tell(s.urls["second"]+"/pay", fmt.Sprintf(`{"outTradeNo":"%s-2"}`, orderNo))
	case 7:
		body := fmt.Sprintf(`{"refundNo":"F%d","amountCents":%d}`, s.random.IntN(20), 1+s.random.IntN(9900))
		s.do("POST", "/orders/"+orderNo+"/refunds", body, http.Header{})
	case 8:
		s.do("POST", "/orders/"+orderNo+"/cancel", `{}`, http.Header{})
	case 9:
		if s.random.IntN(3) == 0 {
			s.loops.forget() // everything that was about to be done
		} else {
			s.relay()
		}
	default:
		s.run(s.jobs[s.random.IntN(len(s.jobs))])
	}
	s.clock.advance(time.Duration(s.random.Int64N(int64([]time.Duration{time.Second, 10 * time.Second, 20 * time.Minute}[s.random.IntN(3)]))))
}

func (s *storm) tell(url, body string) {
	s.Helper()
	reply, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(s, err)
	require.NoError(s, reply.Body.Close())
}

// However badly services hear each other, and whenever reconciliation looks: where nothing is wrong in the end, nothing
// is told.
func TestStormWithoutFalseAlerts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newStorm(t, seed)
			for range 300 {
				s.step()
			}
			s.flaky.calm = true
			s.daysUntil(s.clock.Now().In(shanghai).AddDate(0, 0, 4).Format(time.DateTime))
			require.Empty(t, s.alerts())
			require.NotEmpty(t, s.column(`SELECT 1 FROM payment_records`))
		})
	}
}
