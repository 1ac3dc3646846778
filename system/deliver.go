package system

import (
	"context"
	"encoding/json"
	"fmt"
)

// deliver does what a message says. Nil means that it is done for good, an error that it is to be tried again. It may
// be called for one message any number of times, also at once.
func (s *Shop) deliver(ctx context.Context, m message) error {
	switch m.kind {
	case stockRelease:
		return s.stock.release(ctx, m.key)
	case stockDeduct:
		return s.stock.deduct(ctx, m.key)
	case sendRefund:
		return s.sendRefund(ctx, m.key)
	case closeTrade:
		return s.endLeftover(ctx, m.key)
	case startTimer:
		return s.startTimer(ctx, m.key)
	case cancelOrder:
		return s.cancelOrder(ctx, m.key)
	case reinstate:
		var c charge
		if err := json.Unmarshal([]byte(m.body), &c); err != nil {
			return fmt.Errorf("read charge: %w", err)
		}
		return s.reinstateOrder(ctx, c)
	}
	return fmt.Errorf("no message has the kind %q", m.kind)
}
