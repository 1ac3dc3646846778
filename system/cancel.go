package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// handleCancel answers POST /orders/{no}/cancel with the closed order, also when it was closed before. One that is paid
// is a 409 order_not_cancellable. When a channel can't tell whether it is, that is a 202 with the order as it was, and
// the outbox goes on cancelling it. A failure of our own promises nothing: 503 cancel_failed.
func (s *Shop) handleCancel(w http.ResponseWriter, r *http.Request) error {
	orderNo, err := pathOrderNo(r)
	if err != nil {
		return err
	}
	if err := httpjson.ReadNothing(r); err != nil {
		return err
	}
	order, err := s.cancel(r.Context(), orderNo)
	if err != nil && !isRefusal(err) {
		s.log(r.Context()).Error("cancel failed", "order", orderNo, "error", err)
		return httpjson.Errorf(http.StatusServiceUnavailable, "cancel_failed", "the cancel of order %s failed here; try it again", orderNo)
	}
	if err != nil {
		return err
	}
	switch order.Status {
	case Closed:
		httpjson.Write(w, http.StatusOK, order)
		return nil
	case Created:
		httpjson.Write(w, http.StatusAccepted, order)
		return nil
	}
	return httpjson.Errorf(http.StatusConflict, "order_not_cancellable", "order %s is %s", orderNo, order.Status)
}

// cancel cancels an order, or makes sure that it will be, and returns it as it stands then.
func (s *Shop) cancel(ctx context.Context, orderNo string) (Order, error) {
	if order, err := s.readOrder(ctx, orderNo, ""); err != nil {
		return order, err
	}
	err := s.cancelOrder(ctx, orderNo)
	if errors.Is(err, errNotYet) || errors.Is(err, errBusy) {
		s.log(ctx).Warn("not cancelled yet", "order", orderNo, "error", err)
		err = s.transact(ctx, "cancel", func(w *work) error {
			return w.enqueue(ctx, message{kind: cancelOrder, key: orderNo})
		})
	}
	if err != nil {
		return Order{}, err
	}
	return s.readOrder(ctx, orderNo, "")
}

// cancelOrder closes an order for its buyer, unless it is paid or closed. It is errNotYet while that isn't decided.
func (s *Shop) cancelOrder(ctx context.Context, orderNo string) error {
	_, waiting, err := s.untilDue(ctx, orderNo)
	if err != nil || !waiting {
		return err
	}
	if err := s.closeOrder(ctx, orderNo, byBuyer, nil); err != nil {
		return err
	}
	if _, waiting, err = s.untilDue(ctx, orderNo); err == nil && waiting {
		err = fmt.Errorf("order %s got an attempt meanwhile: %w", orderNo, errNotYet)
	}
	return err
}

// wasCancelled is the condition for orders whose buyer wanted them no more, even if their deadline was faster.
const wasCancelled = `(close_reason = 'cancelled'
     OR EXISTS (SELECT 1 FROM outbox WHERE kind = 'cancel' AND message_key = order_no))`
