package system_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// watch sees every statement of a database that is opened by it.
type watch struct {
	connector
	*seen
}

type seen struct {
	mu   sync.Mutex
	most map[string]int // rows that one run of a statement has returned at most
}

func (s *seen) note(query string, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most[query] = max(s.most[query], rows)
}

func (w watch) Connect(context.Context) (driver.Conn, error) {
	conn, err := w.driver.Open(w.dsn)
	if err != nil {
		return nil, err
	}
	return watchedConn{conn.(*sqlite3.SQLiteConn), w.seen}, nil
}

type watchedConn struct {
	*sqlite3.SQLiteConn
	*seen
}

func (c watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.note(query, 0)
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

func (c watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.note(query, 0)
	rows, err := c.SQLiteConn.QueryContext(ctx, query, args)
	return &watchedRows{rows, c.seen, query, 0}, err
}

type watchedRows struct {
	driver.Rows
	*seen
	query string
	count int
}

func (r *watchedRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if err == nil {
		r.count++
		r.note(r.query, r.count)
	}
	return err
}

// watched starts an instance over the fixture's database whose every statement is seen.
func (f *fixture) watched(client *http.Client) *seen {
	f.Helper()
	s := &seen{most: map[string]int{}}
	db := sql.OpenDB(watch{connectorTo(f.clock, f.path()), s})
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	f.url = f.startOver(db, client)
	return s
}

// plan is how SQLite would run a statement, and parameters is the highest number of its ?1, ?2, ...
func (f *fixture) plan(statement string) string {
	f.Helper()
	rows, err := f.db.QueryContext(f.Context(), "EXPLAIN QUERY PLAN "+statement, make([]any, parameters(statement))...)
	require.NoError(f, err, statement)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(f, rows.Scan(&id, &parent, &unused, &detail))
		plan.WriteString(detail + "\n")
	}
	require.NoError(f, rows.Err())
	return plan.String()
}

func parameters(statement string) (highest int) {
	for n := 1; strings.Contains(statement, fmt.Sprintf("?%d", n)); n++ {
		highest = n
	}
	return highest
}

// nameOf is the statement's own name.
func nameOf(statement string) string {
	first, _, _ := strings.Cut(statement, "\n")
	return strings.TrimPrefix(first, "-- name: ")
}

// Whatever a day with every fate of an order asks of the database is served by indexes: no statement reads or sorts a
// table, however large it has grown.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	t.Parallel()
	w := newTown(t, func(c *system.Config) { c.LateSuccess, c.ClosePolicy = system.LateReinstate, system.CloseLocalOnly })
	seen := w.watched(&http.Client{})
	w.livelyDay()
	w.do("POST", "/orders", `{"orderNo":"KEYED","amountCents":1}`, http.Header{"Idempotency-Key": {"K1"}})
	for _, path := range []string{"/orders", "/orders/PAID", "/orders/PAID/log", "/orders/PARTLY/refunds", "/alerts", "/metrics"} {
		w.do("GET", path, "", http.Header{})
	}
	exec(t, w.stock, `DELETE FROM stock_journal WHERE order_no = 'PAID' AND movement = 'deduct'`)
	w.post(w.cfg.StockURL+"/freeze", `{"orderNo":"NOBODY","sku":"S1","quantity":1}`)
	w.daysUntil("2023-11-17 12:00:00")
	w.run("housekeeping")

	names := map[string]bool{}
	for statement := range seen.most {
		name := nameOf(statement)
		names[name] = true
		for _, line := range strings.Split(w.plan(statement), "\n") {
			if slow.MatchString(line) && !slices.Contains(meant[name], line) {
				t.Errorf("%s: %s", line, statement)
			}
		}
	}
	for _, must := range []string{
		"ListDueOrders", "ListDueMessages", "ListDueAttempts", "ListDueRefunds", // the jobs that run every few seconds
		"ListOrderBooks", "ListRecordBooks", "ListRefundBooks", "ListAttemptBooks", "ListStockBooks", "ListBilledBooks",
		"ListUnbilledRecords", "ListUnbilledRefunds", "HasBillsUntil", "FindAlert", "ListStockOrders", "ClaimReconcileHour",
		"PurgeIdempotencyKeys", "PurgeDeliveredMessages",
		"InsertPaymentRecord", "MarkOrderPaid", "MarkOrderClosed", "MarkOrderReinstated", "ClaimMessage", "ReadOrder", "InsertAttempt",
	} {
		require.True(t, names[must], "the day has no %s", must)
	}
}

// slow is a line of a plan that reads the whole of a table or of an index, or sorts.
var slow = regexp.MustCompile(`SCAN [a-z]\w*( USING|$)|SEARCH \w+$|TEMP B-TREE`)

// meant are the lines that are as they should be.
var meant = map[string][]string{
	"CountAlerts":     {"SCAN alerts USING COVERING INDEX sqlite_autoindex_alerts_1"},   // there are few
	"InsertOrder":     {"SCAN clock"},                                                   // no table: one row of one reading
	"ReadBacklog":     {"SCAN clock", "SCAN outbox USING COVERING INDEX outbox_by_due"}, // of what is pending alone
	"ListRefunds":     {"USE TEMP B-TREE FOR ORDER BY"},                                 // those of one order
	"ListNewChannels": {"SEARCH p", "USE TEMP B-TREE FOR ORDER BY"},                     // once in a channel's life
}
