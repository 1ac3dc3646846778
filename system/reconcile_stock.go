package system

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// movement is a row of the stock service's journal. OrderNo is the order's number there, its stock number.
type movement struct {
	JournalID int64  `json:"journalId"`
	OrderNo   string `json:"orderNo"`
	Movement  string `json:"movement"` // put, freeze, release, deduct
	SKU       string `json:"sku"`
	Quantity  int64  `json:"quantity"`
	AtMs      int64  `json:"atMs"` // by the stock service's clock
}

type journalPage struct {
	Rows []movement `json:"rows"`
	Next int64      `json:"next"` // where to go on; 0 when nothing has come after this page
}

const (
	// journalPageRows keeps a page well below what a body may have.
	journalPageRows = 100
	// stockNumbers are so many that all their movements, four each, are one page.
	stockNumbers = journalPageRows / 4
)

// journal reads a part of the stock service's journal: after an id, or of some numbers.
func (c stockClient) journal(ctx context.Context, part url.Values) (journalPage, error) {
	var page journalPage
	ctx, cancel := c.env.Clock.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.cfg.StockURL+"/journal?"+part.Encode(), nil)
	if err != nil {
		return page, err
	}
	r.Header.Set(TraceHeader, traceID(ctx))
	reply, err := c.env.HTTP.Do(r)
	if err != nil {
		return page, err
	}
	defer reply.Body.Close()
	text, err := httpjson.ReadBody(reply.Body)
	if err != nil {
		return page, fmt.Errorf("read journal: %w", err)
	}
	if reply.StatusCode != http.StatusOK {
		return page, fmt.Errorf("the journal answered status %d: %.200s", reply.StatusCode, text)
	}
	return page, httpjson.Decode(text, &page)
}

// journalAfter reads the page of the journal that follows an id.
func (c stockClient) journalAfter(ctx context.Context, id int64) (journalPage, error) {
	page, err := c.journal(ctx, url.Values{"after": {fmt.Sprint(id)}, "limit": {fmt.Sprint(journalPageRows)}})
	if err == nil && page.Next != 0 && page.Next <= id {
		err = fmt.Errorf("the page after %d leads back to %d", id, page.Next)
	}
	return page, err
}

// stockMoves are the movements of one stock number. What hasn't happened is the zero movement.
type stockMoves struct {
	freeze, release, deduct movement
	lastMs                  int64
}

// dead reports whether nothing is kept or sold for this number.
func (m stockMoves) dead() bool {
	return m.deduct.Quantity == 0 && m.freeze.Quantity == m.release.Quantity
}

func (m stockMoves) with(row movement) stockMoves {
	switch row.Movement {
	case "freeze":
		m.freeze = row
	case "release":
		m.release = row
	case "deduct":
		m.deduct = row
	}
	m.lastMs = max(m.lastMs, row.AtMs)
	return m
}

// moves reads what the journal has of some numbers.
func (c stockClient) moves(ctx context.Context, numbers []string) (map[string]stockMoves, error) {
	page, err := c.journal(ctx, url.Values{"orderNo": numbers})
	if err != nil {
		return nil, err
	}
	moves := map[string]stockMoves{}
	for _, row := range page.Rows {
		moves[row.OrderNo] = moves[row.OrderNo].with(row)
	}
	return moves, nil
}

// stockBook is what our database says about a number of the stock service.
type stockBook struct {
	number   string
	orderNo  string // whose number it is or was, by its form
	hasOrder bool
	isOwn    bool // it is the number under which the order has its stock
	sku      string
	quantity int64
	Money
	status   Status
	settled  bool  // the order's status is final for its stock, and old enough
	inFlight bool  // a message about the number is on its way
	beforeMs int64 // what has moved later is too young to be judged
}

// A reinstated order's number has a dot, an order's own has none. Of a reinstated order with a dead first number only the
// second one is its own.
const listStockBooks = `-- name: ListStockBooks
SELECT n.value, n.order_no, o.order_no IS NOT NULL, coalesce(o.sku <> '' AND o.stock_no = n.value, false),
       coalesce(o.sku, ''), coalesce(o.quantity, 0), coalesce(o.amount_cents, 0), coalesce(o.currency, ''), coalesce(o.status, ''),
       coalesce(o.status <> 'CREATED' AND coalesce(o.paid_ms, o.closed_ms, o.created_ms) <= (SELECT db_now_ms()) - ` + messageGrace + `
           AND o.status = (SELECT l.to_status FROM order_status_log l WHERE l.order_no = o.order_no ORDER BY l.log_id DESC LIMIT 1), false),
       EXISTS (SELECT 1 FROM outbox m WHERE m.kind IN ('stock-release', 'stock-deduct')
               AND m.message_key = n.value AND m.state = 'PENDING')
           OR EXISTS (SELECT 1 FROM payment_records r JOIN outbox m ON m.kind = 'reinstate'
                      AND m.message_key = '` + automaticRefund + `' || r.channel || '-' || r.channel_txn
                      WHERE r.order_no = n.order_no AND m.state = 'PENDING'),
       (SELECT db_now_ms()) - ` + messageGrace + `
FROM (SELECT value, substr(value, 1, instr(value || '.', '.') - 1) AS order_no FROM json_each(?1)) n
LEFT JOIN orders o ON o.order_no = n.order_no`

func scanStockBook(rows *sql.Rows) (stockBook, error) {
	var b stockBook
	err := rows.Scan(&b.number, &b.orderNo, &b.hasOrder, &b.isOwn, &b.sku, &b.quantity, &b.AmountCents, &b.Currency, &b.status,
		&b.settled, &b.inFlight, &b.beforeMs)
	return b, err
}

// gap compares a number with its movements, when nothing about it is on its way.
func (b stockBook) gap(m stockMoves) (alert, bool) {
	switch {
	case b.inFlight:
		return alert{}, false
	case b.isOwn:
		return b.gapOfOrder(m)
	}
	return b.gapOfStranger(m)
}

// gapOfOrder compares a settled order with its movements: sold when paid, given back when closed.
func (b stockBook) gapOfOrder(m stockMoves) (alert, bool) {
	wrong := ""
	switch b.status {
	case Closed:
		if !m.dead() {
			wrong = "its stock isn't given back"
		}
	default:
		asked := func(m movement) bool { return m.SKU == b.sku && m.Quantity == b.quantity }
		if !asked(m.freeze) || !asked(m.deduct) || m.release.JournalID != 0 {
			wrong = "its stock isn't sold as it was ordered"
		}
	}
	return gapOf(stockMismatch, b.orderNo, b.Money, "the order is %s, but by the stock journal %s: frozen %d, released %d, sold %d",
		b.status, wrong, m.freeze.Quantity, m.release.Quantity, m.deduct.Quantity), b.settled && wrong != ""
}

// gapOfStranger finds stock that is kept or sold under a number that no order has now. What is young may be still on its
// way to its order, or back.
func (b stockBook) gapOfStranger(m stockMoves) (alert, bool) {
	kind := orderMissing
	if b.hasOrder {
		kind = stockMismatch
	}
	return gapOf(kind, b.orderNo, Money{}, "stock is kept under the number %s, which no order has: frozen %d, released %d, sold %d",
		b.number, m.freeze.Quantity, m.release.Quantity, m.deduct.Quantity), !m.dead() && m.lastMs <= b.beforeMs
}

// lookAtStock compares some numbers. It reads the orders first and the journal then: what was settled by the orders' word
// is in the journal.
func (s *Shop) lookAtStock(ctx context.Context, numbers []string) ([]alert, error) {
	text, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	books, err := readRows(ctx, s.env.DB, scanStockBook, listStockBooks, string(text))
	if err != nil {
		return nil, fmt.Errorf("orders: %w", err)
	}
	moves, err := s.stock.moves(ctx, numbers)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var gaps []alert
	for _, b := range books {
		if gap, found := b.gap(moves[b.number]); found {
			gaps = append(gaps, gap)
		}
	}
	return gaps, nil
}

// compareStock reports what is wrong with some numbers. Orders and journal are in different databases and never of one
// instant, so a difference counts only if a second look, at both anew, finds it too.
func (s *Shop) compareStock(ctx context.Context, numbers []string) error {
	first, err := s.lookAtStock(ctx, numbers)
	if err != nil {
		return err
	}
	if first, err = s.withoutKnown(ctx, first); err != nil || len(first) == 0 {
		return err
	}
	second, err := s.lookAtStock(ctx, numbers)
	if err != nil {
		return err
	}
	return s.report(ctx, slices.DeleteFunc(first, func(gap alert) bool { return !slices.Contains(second, gap) }))
}

const findAlert = `-- name: FindAlert
SELECT EXISTS (SELECT 1 FROM alerts WHERE kind = ?1 AND subject = ?2)`

// withoutKnown leaves out what was reported before.
func (s *Shop) withoutKnown(ctx context.Context, gaps []alert) (unknown []alert, err error) {
	for _, gap := range gaps {
		var known bool
		if err := s.env.DB.QueryRowContext(ctx, findAlert, gap.kind, gap.subject).Scan(&known); err != nil {
			return nil, fmt.Errorf("find alert: %w", err)
		}
		if !known {
			unknown = append(unknown, gap)
		}
	}
	return unknown, nil
}

const (
	// wholeStockEvery is how often all orders are compared, and the journal from its first row on: what an operator's hand
	// has changed may be old. In the hours between, only what is new is read.
	wholeStockEvery = 24 // hours
	// newStockFor is how long an order is new: from one whole comparison to the next, and an hour that was missed.
	newStockFor = (wholeStockEvery + 1) * time.Hour
)

// stockReading is what a run has to read.
type stockReading struct {
	place    int64 // id of the journal's row after which it begins
	sinceMs  int64 // when the first order was decided that it looks at
	wholeDue bool
	beforeMs int64 // what is written in the journal later is too young to be judged for good
}

const readStockReading = `-- name: ReadStockReading
SELECT place, db_now_ms() - ?3, hour <= db_now_ms() / ?1 - ?2, db_now_ms() - ` + messageGrace + `
FROM reconcile_jobs WHERE job = 'stock'`

// reconcileStock compares orders with the stock journal, in both directions: all of them when asked to or once a day, and
// else the new orders and what the journal has got since the last run.
func (s *Shop) reconcileStock(ctx context.Context, whole bool) error {
	if s.cfg.StockURL == "" {
		return nil
	}
	var r stockReading
	err := s.env.DB.QueryRowContext(ctx, readStockReading, reconcileEvery.Milliseconds(), wholeStockEvery, newStockFor.Milliseconds()).
		Scan(&r.place, &r.sinceMs, &r.wholeDue, &r.beforeMs)
	if err != nil {
		return fmt.Errorf("read place in the stock journal: %w", err)
	}
	was := r.place
	if whole = whole || r.wholeDue; whole {
		r.place, r.sinceMs = 0, 0
	}
	if err := s.compareOrders(ctx, r.sinceMs); err != nil {
		return err
	}
	place, err := s.compareJournal(ctx, r.place, r.beforeMs)
	if err != nil {
		return err
	}
	return s.moveStockPlace(ctx, was, place, whole)
}

const listStockOrders = `-- name: ListStockOrders
SELECT order_no, stock_no FROM orders
WHERE order_no > ?1 AND sku <> '' AND coalesce(paid_ms, closed_ms, created_ms) >= ?2
ORDER BY order_no LIMIT ?3`

// compareOrders compares the orders whose fate was decided since then.
func (s *Shop) compareOrders(ctx context.Context, sinceMs int64) error {
	type order struct{ orderNo, stockNo string }
	var last order
	for {
		page, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (o order, err error) {
			err = rows.Scan(&o.orderNo, &o.stockNo)
			return o, err
		}, listStockOrders, last.orderNo, sinceMs, stockNumbers)
		if err != nil || len(page) == 0 {
			return err
		}
		var numbers []string
		for _, o := range page {
			numbers = append(numbers, o.stockNo)
		}
		if err := s.compareStock(ctx, numbers); err != nil {
			return err
		}
		last = page[len(page)-1]
	}
}

// compareJournal compares the numbers that have moved after a place in the journal, and returns the place up to which
// nothing needs to be compared again.
func (s *Shop) compareJournal(ctx context.Context, after, beforeMs int64) (place int64, err error) {
	place, young := after, false
	for {
		page, err := s.stock.journalAfter(ctx, after)
		if err != nil {
			return 0, fmt.Errorf("journal: %w", err)
		}
		var numbers []string
		for _, row := range page.Rows {
			numbers = append(numbers, row.OrderNo)
			if young = young || row.AtMs > beforeMs; !young {
				place = row.JournalID
			}
		}
		slices.Sort(numbers)
		for some := range slices.Chunk(slices.Compact(numbers), stockNumbers) {
			if err := s.compareStock(ctx, some); err != nil {
				return 0, err
			}
		}
		if after = page.Next; after == 0 {
			return place, nil
		}
	}
}

const moveStockPlace = `-- name: MoveStockPlace
UPDATE reconcile_jobs SET place = ?2, hour = CASE WHEN ?3 THEN db_now_ms() / ?4 ELSE hour END
WHERE job = 'stock' AND place = ?1`

// moveStockPlace writes down how far a run has come. If another run was faster, its word stands.
func (s *Shop) moveStockPlace(ctx context.Context, from, to int64, whole bool) error {
	_, err := sqldb.Changed(ctx, s.env.DB, moveStockPlace, from, to, whole, reconcileEvery.Milliseconds())
	if err != nil {
		return fmt.Errorf("move place in the stock journal: %w", err)
	}
	return nil
}
