package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/signature"
)

// storm is two instances on one directory, and buyers who go on whichever of them lives.
type storm struct {
	t       *testing.T
	data    string
	shops   [2]atomic.Pointer[instance]
	stop    atomic.Bool
	mu      sync.Mutex
	created []string // orders whose creation was acknowledged
	paid    []string // orders whose callback was acknowledged
}

// buy creates orders and pays them, asking each time an instance that answers.
func (s *storm) buy(buyer int) {
	for n := 0; !s.stop.Load(); n++ {
		order := fmt.Sprintf("B%d-%d", buyer, n)
		if !s.insist(buyer+n, "/orders", fmt.Sprintf(`{"orderNo":%q,"amountCents":100}`, order)) {
			return
		}
		s.note(&s.created, order)
		if !s.insist(buyer+n+1, "/callback/pay", fmt.Sprintf(`{"orderNo":%q,"channel":"mock","channelTxn":"T-%s","amountCents":100}`, order, order)) {
			return
		}
		s.note(&s.paid, order)
	}
}

func (s *storm) note(list *[]string, order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, order)
}

// insist posts until it is acknowledged; false when the storm is over first.
func (s *storm) insist(start int, path, body string) bool {
	for try := start; !s.stop.Load(); try++ {
		signed := signature.Sign([]byte(developmentKey), []byte(body), time.Now())
		status, _, err := post(s.shops[try%2].Load().url+path, body, signature.Header, signed)
		if err == nil && status >= 200 && status < 300 {
			return true
		}
	}
	return false
}

// kills is how many processes the test kills: a few, or KILLS=50 for the long form
//
//	KILLS=50 go test ./cmd/till -run TestKillUnderLoad -v
func kills(t *testing.T) int {
	text := os.Getenv("KILLS")
	if text == "" {
		return 4
	}
	kills, err := strconv.Atoi(text)
	require.NoError(t, err, "KILLS")
	return kills
}

func TestKillUnderLoadLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	s := &storm{t: t, data: t.TempDir()}
	for n := range s.shops {
		s.shops[n].Store(serveOn(t, s.data))
	}
	var buyers sync.WaitGroup
	for buyer := range 8 {
		buyers.Go(func() { s.buy(buyer) })
	}
	for round := range kills(t) {
		// Not in step with anything that the process does at regular times.
		time.Sleep(150*time.Millisecond + time.Duration(round*37%100)*time.Millisecond)
		require.Equal(t, -1, s.shops[round%2].Load().end(syscall.SIGKILL))
		s.shops[round%2].Store(serveOn(t, s.data))
	}
	time.Sleep(300 * time.Millisecond)
	s.stop.Store(true)
	buyers.Wait()
	for n := range s.shops {
		require.Zero(t, s.shops[n].Load().end(syscall.SIGTERM))
	}
	s.check()
	out, errors, code := output(t, "reconcile", "--data", s.data)
	require.Zero(t, code, out+errors)
}

// check compares what was acknowledged with what the database has.
func (s *storm) check() {
	db, err := openDB(context.Background(), s.data, "orders", system.Migrate)
	require.NoError(s.t, err)
	defer db.Close()
	require.NotEmpty(s.t, s.paid)
	s.t.Logf("acknowledged: %d created, %d paid", len(s.created), len(s.paid))
	statuses := pairs(s.t, db, `SELECT order_no, status FROM orders`)
	records := pairs(s.t, db, `SELECT order_no, count(*) || disposition FROM payment_records GROUP BY order_no, disposition`)
	for _, order := range s.created {
		require.NotEmpty(s.t, statuses[order], "order %s was acknowledged and is lost", order)
	}
	for _, order := range s.paid {
		require.Equal(s.t, "PAID", statuses[order], "order %s", order)
		require.Equal(s.t, "1applied", records[order], "order %s", order)
	}
	changes := pairs(s.t, db, `SELECT order_no, group_concat(to_status, ' ') FROM (SELECT * FROM order_status_log ORDER BY log_id) GROUP BY order_no`)
	for order, status := range statuses {
		require.Equal(s.t, strings.TrimSuffix("CREATED "+status, " CREATED"), changes[order], "order %s", order)
	}
	require.Equal(s.t, map[string]string{"ok": ""}, pairs(s.t, db, `SELECT integrity_check, '' FROM pragma_integrity_check`))
}

// pairs reads a query of two columns.
func pairs(t *testing.T, db *sql.DB, query string) map[string]string {
	t.Helper()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	pairs := map[string]string{}
	for rows.Next() {
		var key, value string
		require.NoError(t, rows.Scan(&key, &value))
		pairs[key] = value
	}
	require.NoError(t, rows.Err())
	return pairs
}
