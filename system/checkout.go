package system

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

type createRequest struct {
	OrderNo string `json:"orderNo"`
	Money
}

func (c *createRequest) check() (err error) {
	if err := checkName("orderNo", "order_no_invalid", c.OrderNo, maxOrderNo); err != nil {
		return err
	}
	c.Money, err = c.Money.checked()
	return err
}

// handleCreate answers POST /orders with the order as it stands: 201 when this request made it, 200 when it was there
// with the same content, 202 in either case while the channel has given no prepay token. A 202 is durable; repeating
// the request asks the channel again, under the same out-trade number. Other content is a 409 order_conflict.
func (s *Shop) handleCreate(w http.ResponseWriter, r *http.Request) error {
	var wanted createRequest
	if err := httpjson.Read(r, &wanted); err != nil {
		return err
	}
	if err := wanted.check(); err != nil {
		return err
	}
	created, err := s.recordOrder(r.Context(), wanted)
	if err != nil {
		return err
	}
	order, err := s.readOrder(r.Context(), wanted.OrderNo)
	if err != nil {
		return err
	}
	if order.Money != wanted.Money {
		return httpjson.Errorf(http.StatusConflict, "order_conflict", "order %s exists with other content", order.OrderNo)
	}
	if order.awaitsPrepay() {
		if order, err = s.prepay(r.Context(), order); err != nil {
			return err
		}
	}
	httpjson.Write(w, createStatus(order, created), order)
	return nil
}

func createStatus(order Order, created bool) int {
	switch {
	case order.awaitsPrepay():
		return http.StatusAccepted
	case created:
		return http.StatusCreated
	}
	return http.StatusOK
}

const insertOrder = `-- name: InsertOrder
WITH clock AS MATERIALIZED (SELECT db_now_ms() AS now_ms) -- one reading, so that the window is exact
INSERT INTO orders (order_no, amount_cents, currency, status, created_ms, deadline_ms, channel, sku, quantity, stock_no)
SELECT ?1, ?2, ?3, ?4, now_ms, now_ms + ?5, ?6, '', 0, ?1 FROM clock WHERE true
ON CONFLICT (order_no) DO NOTHING`

const insertAttempt = `-- name: InsertAttempt
INSERT INTO payment_orders (out_trade_no, order_no, channel, attempt, state, created_ms)
VALUES (?1, ?2, ?3, ?4, ?5, db_now_ms())`

// recordOrder commits the fact that somebody wants to be paid, with the attempt that will collect the money, before
// anybody else hears of it. It reports false, and has changed nothing, when the order number is taken.
func (s *Shop) recordOrder(ctx context.Context, wanted createRequest) (bool, error) {
	tx, err := s.env.DB.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("begin create: %w", err)
	}
	defer tx.Rollback()
	created, err := sqldb.Changed(ctx, tx, insertOrder, wanted.OrderNo, wanted.AmountCents, wanted.Currency, Created,
		s.cfg.PayWindow/time.Millisecond, s.cfg.Channels[0].Name)
	if err != nil {
		return false, fmt.Errorf("insert order %s: %w", wanted.OrderNo, err)
	}
	if !created {
		return false, nil
	}
	const firstAttempt = 1
	if _, err := tx.ExecContext(ctx, insertAttempt, outTradeNo(wanted.OrderNo, firstAttempt), wanted.OrderNo,
		s.cfg.Channels[0].Name, firstAttempt, AttemptOpen); err != nil {
		return false, fmt.Errorf("insert attempt of order %s: %w", wanted.OrderNo, err)
	}
	change := statusChange{orderNo: wanted.OrderNo, Transition: Transition{To: Created}, cause: "create"}
	if err := logStatus(ctx, tx, change); err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil {
		return false, fmt.Errorf("commit order %s: %w", wanted.OrderNo, err)
	}
	s.log(ctx).Info("order created", "order", wanted.OrderNo, "amountCents", wanted.AmountCents)
	return true, nil
}

const storePrepayToken = `-- name: StorePrepayToken
UPDATE payment_orders SET prepay_token = ?2
WHERE out_trade_no = ?1 AND state = ?3 AND prepay_token = ''`

// prepay asks the channel to open the trade and keeps its token. A channel that fails, is late or talks nonsense is no
// error here: the order is durable, and stays CREATED without a token until a repeat of the create or the closing scan.
func (s *Shop) prepay(ctx context.Context, order Order) (Order, error) {
	token, err := s.channel.prepay(ctx, order)
	if err != nil {
		s.log(ctx).Warn("prepay failed", "order", order.OrderNo, "outTradeNo", order.OutTradeNo, "error", err)
		return order, nil
	}
	stored, err := sqldb.Changed(ctx, s.env.DB, storePrepayToken, order.OutTradeNo, token, AttemptOpen)
	if err != nil {
		return order, fmt.Errorf("store prepay token of %s: %w", order.OutTradeNo, err)
	}
	if !stored { // another request was first, or the order has moved on: the database knows
		s.log(ctx).Info("prepay token not needed", "order", order.OrderNo, "outTradeNo", order.OutTradeNo)
	}
	return s.readOrder(ctx, order.OrderNo)
}
