package system

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/system/httpjson"
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

// journalPageRows keeps a page well below what a body may have.
const journalPageRows = 100

// journal reads a page of the stock service's journal, from after that id on.
func (c stockClient) journal(ctx context.Context, after int64) (journalPage, error) {
	var page journalPage
	ctx, cancel := c.env.Clock.WithTimeout(ctx, c.cfg.CallTimeout)
	defer cancel()
	url := fmt.Sprintf("%s/journal?after=%d&limit=%d", c.cfg.StockURL, after, journalPageRows)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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

// stockMoves are the movements of one stock number. What hasn't happened is the zero movement.
type stockMoves struct {
	freeze, release, deduct movement
	lastMs                  int64
}

// dead reports whether nothing is kept or sold for this number.
func (m stockMoves) dead() bool {
	return m.deduct.Quantity == 0 && m.freeze.Quantity == m.release.Quantity
}

// stockBook is an order that wants stock.
type stockBook struct {
	orderNo, stockNo, sku string
	quantity              int64
	Money
	status  Status
	settled bool // nothing about its stock is on its way
}

// An order's stock is settled when its status is final for stock, old enough, and no message about it is pending. Of a
// reinstated order with a dead first number only the second one counts.
const listStockBooks = `-- name: ListStockBooks
SELECT o.order_no, o.stock_no, o.sku, o.quantity, o.amount_cents, o.currency, o.status,
       o.status <> 'CREATED' AND coalesce(o.paid_ms, o.closed_ms, o.created_ms) <= (SELECT db_now_ms()) - ` + messageGrace + `
       AND o.status = (SELECT l.to_status FROM order_status_log l WHERE l.order_no = o.order_no ORDER BY l.log_id DESC LIMIT 1)
       AND NOT EXISTS (SELECT 1 FROM outbox m WHERE m.kind IN ('stock-release', 'stock-deduct')
                       AND m.message_key = o.stock_no AND m.state = 'PENDING')
FROM orders o WHERE o.order_no > ?1 AND o.sku <> ''
ORDER BY o.order_no LIMIT ?2`

func scanStockBook(rows *sql.Rows) (stockBook, error) {
	var b stockBook
	err := rows.Scan(&b.orderNo, &b.stockNo, &b.sku, &b.quantity, &b.AmountCents, &b.Currency, &b.status, &b.settled)
	return b, err
}

// gap compares a settled order with its movements: sold when paid, given back when closed.
func (b stockBook) gap(m stockMoves) (alert, bool) {
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
		b.status, wrong, m.freeze.Quantity, m.release.Quantity, m.deduct.Quantity), wrong != ""
}

// reconcileStock compares orders with the stock journal. The two are in different databases and never of one instant, so
// a difference counts only if a second look, at both anew, finds it too.
func (s *Shop) reconcileStock(ctx context.Context) error {
	if s.cfg.StockURL == "" {
		return nil
	}
	first, err := s.lookAtStock(ctx)
	if err != nil {
		return err
	}
	if first, err = s.withoutKnown(ctx, first); err != nil || len(first) == 0 {
		return err
	}
	second, err := s.lookAtStock(ctx)
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

// lookAtStock reads the orders first and the journal then: what was settled by the orders' word is in the journal.
func (s *Shop) lookAtStock(ctx context.Context) ([]alert, error) {
	orders, err := s.readStockBooks(ctx)
	if err != nil {
		return nil, fmt.Errorf("orders: %w", err)
	}
	journal, err := s.readJournal(ctx)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var gaps []alert
	known := map[string]bool{}
	for _, b := range orders {
		if gap, found := b.gap(journal[b.stockNo]); b.settled && found {
			gaps = append(gaps, gap)
		}
		known[b.orderNo] = true
		delete(journal, b.stockNo)
	}
	maps.DeleteFunc(journal, func(_ string, m stockMoves) bool { return m.dead() })
	if len(journal) == 0 {
		return gaps, nil
	}
	strangers, err := s.judgeStrangers(ctx, journal, known)
	return append(gaps, strangers...), err
}

func (s *Shop) readStockBooks(ctx context.Context) ([]stockBook, error) {
	var orders []stockBook
	for place := ""; ; place = orders[len(orders)-1].orderNo {
		page, err := readRows(ctx, s.env.DB, scanStockBook, listStockBooks, place, s.cfg.ScanBatch)
		if err != nil {
			return nil, err
		}
		orders = append(orders, page...)
		if len(page) < s.cfg.ScanBatch {
			return orders, nil
		}
	}
}

func (s *Shop) readJournal(ctx context.Context) (map[string]stockMoves, error) {
	journal := map[string]stockMoves{}
	for after := int64(0); ; {
		page, err := s.stock.journal(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, row := range page.Rows {
			journal[row.OrderNo] = journal[row.OrderNo].with(row)
		}
		if page.Next == 0 {
			return journal, nil
		}
		if page.Next <= after {
			return nil, fmt.Errorf("the page after %d leads back to %d", after, page.Next)
		}
		after = page.Next
	}
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

const listStockInFlight = `-- name: ListStockInFlight
SELECT CASE kind WHEN 'reinstate' THEN body ->> '$.orderNo' ELSE message_key END
FROM outbox WHERE state = 'PENDING' AND kind IN ('stock-release', 'stock-deduct', 'reinstate')`

const readStockClock = `-- name: ReadStockClock
SELECT db_now_ms() - ` + messageGrace

// judgeStrangers reports stock that is kept or sold under numbers that no order has now. What is young, or has a message
// pending, may be still on its way to its order, or back.
func (s *Shop) judgeStrangers(ctx context.Context, journal map[string]stockMoves, known map[string]bool) ([]alert, error) {
	inFlight, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (number string, err error) {
		err = rows.Scan(&number)
		return number, err
	}, listStockInFlight)
	if err != nil {
		return nil, fmt.Errorf("list messages about stock: %w", err)
	}
	var beforeMs int64
	if err := s.env.DB.QueryRowContext(ctx, readStockClock).Scan(&beforeMs); err != nil {
		return nil, fmt.Errorf("read clock: %w", err)
	}
	var gaps []alert
	for _, stockNo := range slices.Sorted(maps.Keys(journal)) {
		m := journal[stockNo]
		orderNo, _, _ := strings.Cut(stockNo, ".") // a reinstated order's number has a dot, an order's own has none
		if m.lastMs > beforeMs || slices.Contains(inFlight, stockNo) || slices.Contains(inFlight, orderNo) {
			continue
		}
		kind := orderMissing
		if known[orderNo] {
			kind = stockMismatch
		}
		gaps = append(gaps, gapOf(kind, orderNo, Money{},
			"stock is kept under the number %s, which no order has: frozen %d, released %d, sold %d",
			stockNo, m.freeze.Quantity, m.release.Quantity, m.deduct.Quantity))
	}
	return gaps, nil
}
