package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

type createRequest struct {
	OrderNo string `json:"orderNo"`
	Money
	SKU      string `json:"sku"`      // may be left out: then no stock is involved
	Quantity int64  `json:"quantity"` // of the SKU [1]
	Channel  string `json:"channel"`  // to pay on [the first that is configured]
}

// check fills in what may be left out and refuses what can't be an order: 400 with the field's code, or
// 400 channel_unknown, sku_unsupported.
func (s *Shop) check(c *createRequest) (err error) {
	if err := checkName("orderNo", "order_no_invalid", c.OrderNo, maxOrderNo); err != nil {
		return err
	}
	if c.Money, err = c.Money.checked(); err != nil {
		return err
	}
	if err := s.checkStock(c); err != nil {
		return err
	}
	setDefault(&c.Channel, s.cfg.Channels[0].Name)
	return s.checkChannel(c.Channel)
}

func (s *Shop) checkStock(c *createRequest) error {
	if c.SKU == "" {
		if c.Quantity != 0 {
			return httpjson.Errorf(http.StatusBadRequest, "quantity_invalid", "a quantity needs a sku")
		}
		return nil
	}
	setDefault(&c.Quantity, 1)
	if c.Quantity < 1 || c.Quantity > maxQuantity {
		return httpjson.Errorf(http.StatusBadRequest, "quantity_invalid", "quantity must be 1 to %d", maxQuantity)
	}
	if s.cfg.StockURL == "" {
		return httpjson.Errorf(http.StatusBadRequest, "sku_unsupported", "this shop has no stock service")
	}
	return checkName("sku", "sku_invalid", c.SKU, maxSKU)
}

func (s *Shop) checkChannel(name string) error {
	if _, known := s.cfg.channel(name); !known {
		return httpjson.Errorf(http.StatusBadRequest, "channel_unknown", "channel must be one of %s, not %.32q", strings.Join(s.cfg.channelNames(), ", "), name)
	}
	return nil
}

// handleCreate answers POST /orders with the order as it stands: 201 when this request made it, 200 when it was there
// with the same content, 202 in either case while the channel has given no prepay token. A 202 is durable; repeating
// the request asks again, under the same numbers. Other content is a 409 order_conflict.
func (s *Shop) handleCreate(w http.ResponseWriter, r *http.Request) error {
	var wanted createRequest
	if err := httpjson.ReadStrict(r, &wanted); err != nil {
		return err
	}
	if err := s.check(&wanted); err != nil {
		return err
	}
	created, err := s.recordOrder(r.Context(), wanted)
	if err != nil {
		return err
	}
	order, err := s.readOrder(r.Context(), wanted.OrderNo, wanted.Channel)
	if isRefusal(err) { // it has no attempt there, so it was made for another channel
		order, err = s.readOrder(r.Context(), wanted.OrderNo, "")
	}
	if err != nil {
		return err
	}
	if other := order.differences(wanted); other != "" {
		return httpjson.Errorf(http.StatusConflict, "order_conflict", "order %s exists with other content: %s", wanted.OrderNo, other)
	}
	return s.answerPayable(w, r, order, created)
}

func isRefusal(err error) bool {
	var refusal *httpjson.Error
	return errors.As(err, &refusal)
}

// differences says in what the order isn't what a request for it wants; nothing if it was made by the same content.
func (o Order) differences(wanted createRequest) string {
	return differences(append(o.Money.differences(wanted.Money), difference{"sku", o.SKU, wanted.SKU},
		difference{"quantity", o.Quantity, wanted.Quantity}, difference{"channel", o.firstChannel, wanted.Channel})...)
}

// answerPayable makes the order's attempt payable if it isn't, and answers with what came of it.
func (s *Shop) answerPayable(w http.ResponseWriter, r *http.Request, order Order, created bool) error {
	if order.awaitsPrepay() && !order.expired {
		var err error
		if order, err = s.makePayable(r.Context(), order); err != nil {
			return err
		}
	}
	status := http.StatusOK
	switch {
	case order.Status == Created && order.PrepayToken == "": // also if a closer has ended the attempt meanwhile
		status = http.StatusAccepted
	case created:
		status = http.StatusCreated
	}
	httpjson.Write(w, status, order)
	return nil
}

const insertOrder = `-- name: InsertOrder
WITH clock AS MATERIALIZED (SELECT db_now_ms() AS now_ms) -- one reading, so that the window is exact
INSERT INTO orders (order_no, amount_cents, currency, channel, sku, quantity, stock_no, status, created_ms, deadline_ms)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?1, ?7, now_ms, now_ms + ?8 FROM clock WHERE true
ON CONFLICT (order_no) DO NOTHING`

// recordOrder commits the fact that somebody wants to be paid, with the attempt that will collect the money, before
// anybody else hears of it. It reports false, and has changed nothing, when the order number is taken.
func (s *Shop) recordOrder(ctx context.Context, wanted createRequest) (created bool, err error) {
	err = s.transact(ctx, "create", func(w *work) (err error) {
		created, err = w.exec(ctx, insertOrder, wanted.OrderNo, wanted.AmountCents, wanted.Currency, wanted.Channel,
			wanted.SKU, wanted.Quantity, Created, s.cfg.PayWindow/time.Millisecond)
		if err != nil {
			return fmt.Errorf("insert order %s: %w", wanted.OrderNo, err)
		}
		if !created {
			return nil
		}
		if err := s.openAttempt(ctx, w, wanted.OrderNo, wanted.Channel); err != nil {
			return err
		}
		if s.closesByMessage() {
			if err := w.enqueue(ctx, message{kind: startTimer, key: wanted.OrderNo}); err != nil {
				return err
			}
		}
		return logStatus(ctx, w.Tx, statusChange{orderNo: wanted.OrderNo, Transition: Transition{To: Created}, cause: "create"})
	})
	if err != nil || !created {
		return false, err
	}
	s.armExpiry(wanted.OrderNo)
	s.log(ctx).Info("order created", "order", wanted.OrderNo, "amountCents", wanted.AmountCents)
	return true, nil
}

// An attempt is opened while the order waits to be paid, and only one at a time on one channel. Its number, under which
// the channel knows it, follows from the order, so that a retry after a lost reply can only mean the same trade.
const insertAttempt = `-- name: InsertAttempt
INSERT INTO payment_orders (out_trade_no, order_no, channel, attempt, state, created_ms, next_query_ms)
SELECT ?1 || '-' || n, ?1, ?2, n, 'OPEN', db_now_ms(), db_now_ms() + ?3
FROM (SELECT coalesce(max(attempt), 0) + 1 AS n FROM payment_orders WHERE order_no = ?1)
WHERE EXISTS (SELECT 1 FROM orders o WHERE o.order_no = ?1 AND o.status = 'CREATED' AND o.deadline_ms > db_now_ms())
AND NOT EXISTS (SELECT 1 FROM payment_orders p WHERE p.order_no = ?1 AND p.channel = ?2 AND p.state = 'OPEN')`

func (s *Shop) openAttempt(ctx context.Context, w *work, orderNo, channel string) error {
	if _, err := w.exec(ctx, insertAttempt, orderNo, channel, s.cfg.FirstQuery.Milliseconds()); err != nil {
		return fmt.Errorf("insert attempt of order %s: %w", orderNo, err)
	}
	return nil
}

// handlePay answers POST /orders/{no}/pay: it opens an attempt on another channel, or finds the one that is open there,
// and answers as the create does. An order that can't be paid any more is a 409 order_not_payable.
func (s *Shop) handlePay(w http.ResponseWriter, r *http.Request) error {
	var wanted struct {
		Channel string `json:"channel"`
	}
	if err := httpjson.ReadStrict(r, &wanted); err != nil {
		return err
	}
	orderNo, err := pathOrderNo(r)
	if err != nil {
		return err
	}
	if err := s.checkChannel(wanted.Channel); err != nil {
		return err
	}
	if _, err := s.readOrder(r.Context(), orderNo, ""); err != nil {
		return err
	}
	err = s.transact(r.Context(), "pay", func(w *work) error {
		return s.openAttempt(r.Context(), w, orderNo, wanted.Channel)
	})
	if err != nil {
		return err
	}
	order, err := s.readOrder(r.Context(), orderNo, wanted.Channel)
	if isRefusal(err) || err == nil && (order.Status != Created || order.expired) {
		return httpjson.Errorf(http.StatusConflict, "order_not_payable", "order %s can't be paid any more", orderNo)
	}
	if err != nil {
		return err
	}
	return s.answerPayable(w, r, order, false)
}

// makePayable freezes the order's stock and asks the channel to open the trade. A service that fails, is late or talks
// nonsense is no error here: the order is durable, and stays CREATED without a token until a repeat or the closing
// scan. Stock that isn't there closes the order.
func (s *Shop) makePayable(ctx context.Context, order Order) (Order, error) {
	if order.SKU != "" {
		err := s.stock.freeze(ctx, order.OrderNo, order.SKU, order.Quantity)
		if errors.Is(err, errOutOfStock) {
			return s.closeUnpayable(ctx, order)
		}
		if err != nil {
			s.log(ctx).Warn("freeze failed", "order", order.OrderNo, "error", err)
			return order, nil
		}
	}
	token, err := s.channel.prepay(ctx, order)
	if err != nil {
		s.log(ctx).Warn("prepay failed", "order", order.OrderNo, "outTradeNo", order.OutTradeNo, "error", err)
		return order, nil
	}
	return s.keepToken(ctx, order, token)
}

// closeUnpayable closes an order that has no stock. If the channel can't tell yet whether an earlier attempt was paid,
// the order stays for the closing scan.
func (s *Shop) closeUnpayable(ctx context.Context, order Order) (Order, error) {
	if err := s.closeOrder(ctx, order.OrderNo, byStock, nil); err != nil {
		s.log(ctx).Warn("close failed", "order", order.OrderNo, "error", err)
	}
	return s.readOrder(ctx, order.OrderNo, order.Channel)
}

const storePrepayToken = `-- name: StorePrepayToken
UPDATE payment_orders SET prepay_token = ?2
WHERE out_trade_no = ?1 AND state = ?3 AND prepay_token = ''`

func (s *Shop) keepToken(ctx context.Context, order Order, token string) (Order, error) {
	stored, err := sqldb.Changed(ctx, s.env.DB, storePrepayToken, order.OutTradeNo, token, AttemptOpen)
	if err != nil {
		return order, fmt.Errorf("store prepay token of %s: %w", order.OutTradeNo, err)
	}
	if !stored { // another request was first, or the order has moved on: the database knows
		s.log(ctx).Info("prepay token not needed", "order", order.OrderNo, "outTradeNo", order.OutTradeNo)
	}
	return s.readOrder(ctx, order.OrderNo, order.Channel)
}
