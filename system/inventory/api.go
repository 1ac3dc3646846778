package inventory

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

const (
	maxQuantity = 1_000_000   // of one movement; far below what sums could overflow
	maxName     = 128         // bytes of a SKU, an order number, a delivery number
	maxPage     = 100         // rows; keeps a page within what a client reads of a body
	maxOrders   = maxPage / 4 // at once: each has four movements at most
)

// traceHeader carries a request's trace id into the log.
const traceHeader = "X-Trace-Id"

// Routes lists what the service can be asked for.
func Routes() []httpjson.Route { return new(Service).routes().Routes() }

func (s *Service) routes() *httpjson.Router {
	router := httpjson.NewRouter()
	router.Handle("POST /stock", `stock comes in: {"sku":"S1","quantity":10}; with a putNo, repeats change nothing`, s.endpoint(s.handlePut))
	router.Handle("GET /stock/{sku}", "where the units are", s.endpoint(s.handleStock))
	router.Handle("POST /freeze", "promise stock to an order", s.endpoint(s.handleFreeze))
	router.Handle("POST /release", "take the promise back", s.endpoint(s.handleRelease))
	router.Handle("POST /deduct", "turn the promise into a sale", s.endpoint(s.handleDeduct))
	router.Handle("GET /journal?after&limit&orderNo", "the movements, oldest first; of some orders, if orderNo is given once or more", s.endpoint(s.handleJournal))
	return router
}

func (s *Service) endpoint(handle func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := handle(r)
		if err == nil {
			httpjson.Write(w, http.StatusOK, answer)
			return
		}
		var refusal *httpjson.Error
		if !errors.As(err, &refusal) {
			s.env.Log.ErrorContext(r.Context(), "request failed", "service", "inventory", "path", r.URL.Path,
				"trace", r.Header.Get(traceHeader), "error", err)
		}
		httpjson.WriteError(w, err)
	})
}

type freezeRequest struct {
	OrderNo  string `json:"orderNo"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

type orderRequest struct {
	OrderNo string `json:"orderNo"`
}

// putRequest brings stock in. With a delivery number a repeat changes nothing; without one, each request counts.
type putRequest struct {
	PutNo    string `json:"putNo"`
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Stock is where the units of a SKU are.
type Stock struct {
	SKU       string `json:"sku"`
	Available int64  `json:"available"`
	Frozen    int64  `json:"frozen"`
	Sold      int64  `json:"sold"`
}

func (s *Service) handleFreeze(r *http.Request) (any, error) {
	var wanted freezeRequest
	if err := httpjson.Read(r, &wanted); err != nil {
		return nil, err
	}
	if err := errors.Join(checkName("orderNo", wanted.OrderNo), checkName("sku", wanted.SKU), checkQuantity(wanted.Quantity)); err != nil {
		return nil, err
	}
	return s.freeze(r.Context(), Movement{OrderNo: wanted.OrderNo, SKU: wanted.SKU, Quantity: wanted.Quantity})
}

func (s *Service) handleRelease(r *http.Request) (any, error) {
	orderNo, err := readOrderNo(r)
	if err != nil {
		return nil, err
	}
	return s.release(r.Context(), orderNo)
}

func (s *Service) handleDeduct(r *http.Request) (any, error) {
	orderNo, err := readOrderNo(r)
	if err != nil {
		return nil, err
	}
	return s.deduct(r.Context(), orderNo)
}

func readOrderNo(r *http.Request) (string, error) {
	var request orderRequest
	if err := httpjson.Read(r, &request); err != nil {
		return "", err
	}
	return request.OrderNo, checkName("orderNo", request.OrderNo)
}

func (s *Service) handlePut(r *http.Request) (any, error) {
	var wanted putRequest
	if err := httpjson.ReadStrict(r, &wanted); err != nil {
		return nil, err
	}
	if wanted.PutNo == "" {
		wanted.PutNo = s.env.NewID()
	}
	if err := errors.Join(checkName("putNo", wanted.PutNo), checkName("sku", wanted.SKU), checkQuantity(wanted.Quantity)); err != nil {
		return nil, err
	}
	if err := s.put(r.Context(), Movement{OrderNo: wanted.PutNo, SKU: wanted.SKU, Quantity: wanted.Quantity}); err != nil {
		return nil, err
	}
	return s.readStock(r, wanted.SKU)
}

func (s *Service) handleStock(r *http.Request) (any, error) {
	return s.readStock(r, r.PathValue("sku"))
}

const selectStock = `-- name: ReadStock
SELECT sku, available, frozen, sold FROM stock WHERE sku = ?1`

func (s *Service) readStock(r *http.Request, sku string) (Stock, error) {
	var stock Stock
	err := s.env.DB.QueryRowContext(r.Context(), selectStock, sku).
		Scan(&stock.SKU, &stock.Available, &stock.Frozen, &stock.Sold)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return stock, httpjson.Errorf(http.StatusNotFound, "sku_unknown", "there never was any %.128s", sku)
	case err != nil:
		return stock, fmt.Errorf("read stock of %s: %w", sku, err)
	}
	return stock, nil
}

// journalPage is a part of the journal, in its order. Next is where to go on: 0 when nothing has come after this page.
type journalPage struct {
	Rows []Movement `json:"rows"`
	Next int64      `json:"next"`
}

// handleJournal answers GET /journal?after=ID&limit=N: the movements after that id, by default from the first, at most
// maxPage of them; or GET /journal?orderNo=A&orderNo=B: all movements of these orders, at most maxOrders.
func (s *Service) handleJournal(r *http.Request) (any, error) {
	if orders := r.URL.Query()["orderNo"]; len(orders) > 0 {
		return s.listOrders(r, orders)
	}
	after, err := readNumber(r, "after", 0)
	if err != nil {
		return nil, err
	}
	limit, err := readNumber(r, "limit", maxPage)
	if err != nil {
		return nil, err
	}
	return s.listJournal(r, after, min(max(1, limit), maxPage))
}

const listMovements = `-- name: ListMovements
SELECT journal_id, order_no, movement, sku, quantity, at_ms
FROM stock_journal WHERE journal_id > ?1
ORDER BY journal_id LIMIT ?2`

func (s *Service) listJournal(r *http.Request, after, limit int64) (journalPage, error) {
	movements, err := s.readMovements(r, listMovements, after, limit)
	page := journalPage{Rows: movements}
	if int64(len(movements)) == limit {
		page.Next = movements[limit-1].JournalID
	}
	return page, err
}

const listMovementsOfOrders = `-- name: ListMovementsOfOrders
SELECT journal_id, order_no, movement, sku, quantity, at_ms
FROM stock_journal WHERE order_no IN (SELECT value FROM json_each(?1))
ORDER BY order_no, movement`

func (s *Service) listOrders(r *http.Request, orders []string) (journalPage, error) {
	if len(orders) > maxOrders {
		return journalPage{}, httpjson.Errorf(http.StatusBadRequest, "orderNo_invalid", "at most %d orders may be asked for at once", maxOrders)
	}
	text, err := json.Marshal(orders)
	if err != nil {
		return journalPage{}, err
	}
	movements, err := s.readMovements(r, listMovementsOfOrders, string(text))
	return journalPage{Rows: movements}, err
}

func (s *Service) readMovements(r *http.Request, query string, args ...any) ([]Movement, error) {
	movements := []Movement{}
	rows, err := s.env.DB.QueryContext(r.Context(), query, args...)
	if err != nil {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var m Movement
		if err := rows.Scan(&m.JournalID, &m.OrderNo, &m.Movement, &m.SKU, &m.Quantity, &m.AtMs); err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		movements = append(movements, m)
	}
	return movements, rows.Err()
}

func readNumber(r *http.Request, name string, missing int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, httpjson.Errorf(http.StatusBadRequest, name+"_invalid", "%s must be a number, and not negative", name)
	}
	return n, nil
}

// checkName refuses a name that nobody can have given: one that is empty, longer than maxName bytes, or not printable
// ASCII without spaces.
func checkName(field, name string) error {
	ok := 1 <= len(name) && len(name) <= maxName
	for _, c := range []byte(name) {
		ok = ok && '!' <= c && c <= '~'
	}
	if ok {
		return nil
	}
	return httpjson.Errorf(http.StatusBadRequest, field+"_invalid", "%s must be 1 to %d printable characters", field, maxName)
}

func checkQuantity(quantity int64) error {
	if 1 <= quantity && quantity <= maxQuantity {
		return nil
	}
	return httpjson.Errorf(http.StatusBadRequest, "quantity_invalid", "quantity must be 1 to %d", maxQuantity)
}
