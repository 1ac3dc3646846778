package system

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// StatusEntry is one change of an order's status.
type StatusEntry struct {
	From    Status `json:"from,omitempty"` // empty: its creation
	To      Status `json:"to"`
	Cause   string `json:"cause"`
	TraceID string `json:"traceId"`
	AtMs    int64  `json:"atMs"`
}

// handleLog answers GET /orders/{no}/log with every change of the order's status, oldest first.
func (s *Shop) handleLog(w http.ResponseWriter, r *http.Request) error {
	orderNo, err := pathOrderNo(r)
	if err != nil {
		return err
	}
	entries, err := s.readStatusLog(r.Context(), orderNo)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return httpjson.Errorf(http.StatusNotFound, "order_unknown", "there is no order %s", orderNo)
	}
	httpjson.Write(w, http.StatusOK, map[string][]StatusEntry{"log": entries})
	return nil
}

const readStatusLog = `-- name: ReadStatusLog
SELECT from_status, to_status, cause, trace_id, at_ms FROM order_status_log
WHERE order_no = ?1
ORDER BY log_id`

func (s *Shop) readStatusLog(ctx context.Context, orderNo string) ([]StatusEntry, error) {
	entries, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (e StatusEntry, err error) {
		err = rows.Scan(&e.From, &e.To, &e.Cause, &e.TraceID, &e.AtMs)
		return e, err
	}, readStatusLog, orderNo)
	if err != nil {
		return nil, fmt.Errorf("read log of order %s: %w", orderNo, err)
	}
	return entries, nil
}

// OrderSummary is an order in a list.
type OrderSummary struct {
	OrderNo string `json:"orderNo"`
	Status  Status `json:"status"`
	Money
	CreatedMs int64 `json:"createdMs"`
}

// orderPage is a part of the orders, by number. Next is where to go on, empty when there is no more.
type orderPage struct {
	Orders []OrderSummary `json:"orders"`
	Next   string         `json:"next,omitempty"`
}

// handleList answers GET /orders?after=NO&limit=N with the orders whose numbers follow, at most 100.
func (s *Shop) handleList(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	limit := maxBatch
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxBatch {
			return httpjson.Errorf(http.StatusBadRequest, "limit_invalid", "limit must be 1 to %d", maxBatch)
		}
		limit = n
	}
	after := query.Get("after")
	if after != "" {
		if err := checkName("after", "after_invalid", after, maxOrderNo); err != nil {
			return err
		}
	}
	page, err := s.listOrders(r.Context(), after, limit)
	if err != nil {
		return err
	}
	httpjson.Write(w, http.StatusOK, page)
	return nil
}

const listOrders = `-- name: ListOrders
SELECT order_no, status, amount_cents, currency, created_ms FROM orders
WHERE order_no > ?1
ORDER BY order_no
LIMIT ?2`

func (s *Shop) listOrders(ctx context.Context, after string, limit int) (orderPage, error) {
	orders, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (o OrderSummary, err error) {
		err = rows.Scan(&o.OrderNo, &o.Status, &o.AmountCents, &o.Currency, &o.CreatedMs)
		return o, err
	}, listOrders, after, limit)
	if err != nil {
		return orderPage{}, fmt.Errorf("list orders: %w", err)
	}
	page := orderPage{Orders: orders}
	if len(orders) == limit {
		page.Next = orders[limit-1].OrderNo
	}
	return page, nil
}
