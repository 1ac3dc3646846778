package system

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// dueAttempt is an attempt that its channel is to be asked about.
type dueAttempt struct {
	attempt
	nextMs     int64
	tries      int
	orderOpen  bool // the order still waits to be paid
	watchEnded bool // the channel has been asked for long enough after the deadline
}

// queryPending is one run of the pending query: it asks the channels about the attempts that may have been paid
// without our hearing of it. It makes lost callbacks harmless. Every instance may run it at any time.
func (s *Shop) queryPending(ctx context.Context) {
	ctx = withStalls(withTrace(ctx, s.env.NewID()))
	err := workOff(ctx, s.cfg.ScanBatch, s.listDueAttempts, func(a dueAttempt) {
		if err := s.queryAttempt(ctx, a); err != nil {
			s.log(ctx).Warn("query failed", "order", a.orderNo, "outTradeNo", a.outTradeNo, "error", err)
		}
	})
	if err != nil {
		s.log(ctx).Error("pending query broke off", "error", err)
	}
}

const listDueAttempts = `-- name: ListDueAttempts
SELECT p.out_trade_no, p.order_no, p.channel, p.prepay_token <> '', p.next_query_ms, p.query_tries,
       o.status = 'CREATED', o.deadline_ms + ?4 <= db_now_ms()
FROM payment_orders p JOIN orders o ON o.order_no = p.order_no
WHERE p.next_query_ms <= (SELECT db_now_ms()) AND (p.next_query_ms, p.out_trade_no) > (?1, ?2)
ORDER BY p.next_query_ms, p.out_trade_no
LIMIT ?3`

func (s *Shop) listDueAttempts(ctx context.Context, after dueAttempt) ([]dueAttempt, error) {
	due, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (a dueAttempt, err error) {
		err = rows.Scan(&a.outTradeNo, &a.orderNo, &a.channel, &a.hasToken, &a.nextMs, &a.tries, &a.orderOpen, &a.watchEnded)
		return a, err
	}, listDueAttempts, after.nextMs, after.outTradeNo, s.cfg.ScanBatch, s.cfg.WatchFor.Milliseconds())
	if err != nil {
		return nil, fmt.Errorf("list due attempts: %w", err)
	}
	return due, nil
}

// The count of tries in the condition lets only one of several instances ask.
const claimQuery = `-- name: ClaimQuery
UPDATE payment_orders SET query_tries = query_tries + 1, next_query_ms = db_now_ms() + ?3
WHERE out_trade_no = ?1 AND query_tries = ?2 AND next_query_ms IS NOT NULL`

// queryAttempt asks about one attempt. While the order waits, the channel is only asked: closing is the closer's. Once
// it doesn't, the attempt is ended, so that it takes no money any more.
func (s *Shop) queryAttempt(ctx context.Context, a dueAttempt) error {
	wait := backoff(s.cfg.FirstQuery, a.tries+1)
	claimed, err := sqldb.Changed(ctx, s.env.DB, claimQuery, a.outTradeNo, a.tries, wait.Milliseconds())
	if err != nil || !claimed {
		return err
	}
	ask := s.askAttempt
	if !a.orderOpen {
		ask = s.endAttempt
	}
	end, err := ask(ctx, a.attempt)
	switch {
	case err != nil:
		return err
	case end == endMissing && a.watchEnded && !a.orderOpen:
		end = endClosed // its time to be paid is long over: nobody can bring it into being any more
	case end != endClosed && (end != endMissing || a.orderOpen):
		return nil // paid is written down already; anything else isn't known for certain
	}
	return writeEnd(ctx, s.env.DB, a.attempt, end)
}
