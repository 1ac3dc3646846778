package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// RefundState is where a refund intent stands. REQUESTED becomes ACCEPTED, and either becomes SUCCEEDED or FAILED.
type RefundState string

// The states of a refund.
const (
	RefundRequested RefundState = "REQUESTED" // our intent; the channel may know of it or not
	RefundAccepted  RefundState = "ACCEPTED"  // the channel is about it
	RefundSucceeded RefundState = "SUCCEEDED" // the buyer has the money
	RefundFailed    RefundState = "FAILED"    // a person must look at it; there is an alert
)

// refundWord is what a channel says about a refund.
type refundWord string

// The words of channels. CLOSED says that no money will move, ABNORMAL that it has left and not arrived: a person may
// yet bring it there, and then it becomes SUCCESS.
const (
	refundProcessing refundWord = "PROCESSING"
	refundSuccess    refundWord = "SUCCESS"
	refundClosed     refundWord = "CLOSED"
	refundAbnormal   refundWord = "ABNORMAL"
)

// refundWords lists them for people.
const refundWords = refundProcessing + ", " + refundSuccess + ", " + refundClosed + ", " + refundAbnormal

func (w refundWord) known() bool {
	return w == refundProcessing || w == refundSuccess || w == refundClosed || w == refundAbnormal
}

// mayGiveBack is the condition for refunds that have given money back, or may still do it.
const mayGiveBack = `(r.state <> 'FAILED' OR r.channel_state = 'ABNORMAL')`

// automaticRefund begins the number of every refund that we make by ourselves, and of no other.
const automaticRefund = "R-"

// isAutomatic reports whether a refund was our own idea: of a charge that came late or was surplus.
func isAutomatic(refundNo string) bool { return strings.HasPrefix(refundNo, automaticRefund) }

// Refund is an intent to give back a charge or a part of it. Its number is never used for another.
type Refund struct {
	RefundNo string `json:"refundNo"`
	OrderNo  string `json:"orderNo"`
	Money
	State      RefundState `json:"state"`
	Cause      string      `json:"cause"` // request, late, surplus
	Channel    string      `json:"channel"`
	ChannelTxn string      `json:"channelTxn"`
	OutTradeNo string      `json:"outTradeNo"`
	TotalCents int64       `json:"totalCents"` // of the charge
	CreatedMs  int64       `json:"createdMs"`
	DoneMs     int64       `json:"doneMs,omitempty"`

	isNew bool // by the database's clock, when it was read
}

const (
	firstRefundQuery = 30 * time.Second // from the intent to the first query of what became of it
	abnormalQuery    = 6 * time.Hour    // between two queries of a refund that waits for a person's hand
)

// refundIsNewFor is how long a refund is new: longer than a channel's reads lag behind its charges. It is in
// milliseconds, as SQL has them.
const refundIsNewFor = "60000"

const insertChargeRefund = `-- name: InsertChargeRefund
INSERT INTO refunds (refund_no, order_no, channel, channel_txn, out_trade_no, amount_cents, total_cents, currency,
                     cause, state, created_ms, next_query_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, 'REQUESTED', db_now_ms(), db_now_ms() + ?9)
ON CONFLICT (refund_no) DO NOTHING`

// refundCharge writes the intent to give a whole charge back that isn't ours to keep. For one charge it does so once.
func refundCharge(ctx context.Context, w *work, c charge, cause string) error {
	isNew, err := w.exec(ctx, insertChargeRefund, c.refundNo(), c.OrderNo, c.Channel, c.ChannelTxn, c.OutTradeNo,
		c.AmountCents, c.Currency, cause, firstRefundQuery.Milliseconds())
	if err != nil {
		return fmt.Errorf("insert refund of charge %s: %w", c.ChannelTxn, err)
	}
	if !isNew {
		return nil
	}
	return w.enqueue(ctx, message{kind: sendRefund, key: c.refundNo()})
}

const selectRefunds = `
SELECT refund_no, order_no, amount_cents, currency, state, cause, channel, channel_txn, out_trade_no, total_cents,
       created_ms, coalesce(done_ms, 0), created_ms > db_now_ms() - ` + refundIsNewFor + `
FROM refunds `

// errNoRefund says that no refund has the number.
var errNoRefund = errors.New("there is no such refund")

func readRefund(ctx context.Context, db sqldb.Querier, refundNo string) (Refund, error) {
	found, err := readRefunds(ctx, db, "-- name: ReadRefund"+selectRefunds+`WHERE refund_no = ?1`, refundNo)
	if err != nil {
		return Refund{}, err
	}
	if len(found) == 0 {
		return Refund{}, fmt.Errorf("refund %s: %w", refundNo, errNoRefund)
	}
	return found[0], nil
}

func readRefunds(ctx context.Context, db sqldb.Querier, query, key string) ([]Refund, error) {
	found, err := readRows(ctx, db, scanRefund, query, key)
	if err != nil {
		return nil, fmt.Errorf("read refunds of %s: %w", key, err)
	}
	return found, nil
}

func scanRefund(rows *sql.Rows) (r Refund, err error) {
	err = rows.Scan(&r.RefundNo, &r.OrderNo, &r.AmountCents, &r.Currency, &r.State, &r.Cause, &r.Channel, &r.ChannelTxn,
		&r.OutTradeNo, &r.TotalCents, &r.CreatedMs, &r.DoneMs, &r.isNew)
	return r, err
}

// sendRefund asks the channel to execute a refund, under its own number each time, and writes down the answer. What
// the channel accepts isn't done yet.
func (s *Shop) sendRefund(ctx context.Context, refundNo string) error {
	r, err := readRefund(ctx, s.env.DB, refundNo)
	if err != nil || r.State != RefundRequested {
		return err
	}
	said, err := s.channel.refund(ctx, r)
	var no *callError
	if errors.As(err, &no) && no.refuses(r) {
		said, err = s.confirmRefusal(ctx, r, no.code)
	}
	if err != nil {
		return err
	}
	return s.writeRefund(ctx, r, said)
}

// refuses reports whether a channel's no to a refund is one that no repeat will change. Any other no may be about the
// moment, about us or about our account, and the refund is still owed: it is sent again. That a channel doesn't know the
// trade, though it has told us of its charge, is a lag at first.
func (e *callError) refuses(r Refund) bool {
	final := refusedAs(e, "TRADE_NOT_PAID", "TRADE_STATUS_ERROR", "TRADE_OVERDUE",
		"REFUND_TOO_MUCH", "REFUND_TOO_MANY", "REFUND_NO_USED", "PARAM_ERROR")
	return e.status < http.StatusInternalServerError && (final || saysNoTrade(e) && !r.isNew)
}

// confirmRefusal returns what is final about a refused refund: the channel's own no, unless it has executed the refund
// in an earlier try, whose answer we never heard, and only refuses to do it again.
func (s *Shop) confirmRefusal(ctx context.Context, r Refund, no string) (refundWord, error) {
	said, err := s.channel.queryRefund(ctx, r)
	if saysNoRefund(err) || saysNoTrade(err) || errors.Is(err, errOtherRefund) {
		return refundWord(no), nil
	}
	return said, err
}

const (
	markRefundAccepted = `-- name: MarkRefundAccepted
UPDATE refunds SET state = 'ACCEPTED', channel_state = ?2
WHERE refund_no = ?1 AND state = 'REQUESTED'`

	// An abnormal refund is asked for further, for a person may end it, one way or the other. Who is refused when the
	// channel has accepted it meanwhile has only asked twice.
	markRefundFailed = `-- name: MarkRefundFailed
UPDATE refunds SET state = 'FAILED', channel_state = ?2, done_ms = db_now_ms(),
                   next_query_ms = CASE ?2 WHEN 'ABNORMAL' THEN db_now_ms() + ?3 END
WHERE refund_no = ?1 AND (state = 'REQUESTED' OR ?2 IN ('CLOSED', 'ABNORMAL') AND state = 'ACCEPTED'
                          OR state = 'FAILED' AND channel_state = 'ABNORMAL' AND ?2 = 'CLOSED')`

	// Money that has arrived has arrived, whatever we believed.
	markRefundSucceeded = `-- name: MarkRefundSucceeded
UPDATE refunds SET state = 'SUCCEEDED', channel_state = ?2, done_ms = db_now_ms(), next_query_ms = NULL
WHERE refund_no = ?1 AND state <> 'SUCCEEDED'`
)

// writeRefund is the one way in which a refund moves: by what its channel says of it, in a reply, a notification or a
// query, in any order and however often.
func (s *Shop) writeRefund(ctx context.Context, r Refund, said refundWord) error {
	moved := false
	err := s.transact(ctx, "refund", func(w *work) (err error) {
		switch said {
		case refundProcessing:
			moved, err = w.exec(ctx, markRefundAccepted, r.RefundNo, said)
		case refundSuccess:
			if moved, err = w.exec(ctx, markRefundSucceeded, r.RefundNo, said); err == nil && moved {
				err = finishOrder(ctx, w, r.OrderNo)
			}
		default:
			if moved, err = w.exec(ctx, markRefundFailed, r.RefundNo, said, abnormalQuery.Milliseconds()); err == nil && moved {
				err = raiseAlert(ctx, w, alert{
					kind: "refund-failed", subject: r.Channel + "/" + r.RefundNo, amountCents: r.AmountCents, currency: r.Currency,
					detail: fmt.Sprintf("the channel says %s of refund %s of %s for order %s", said, r.RefundNo, inWords(r.Money), r.OrderNo),
				})
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("write refund %s: %w", r.RefundNo, err)
	}
	s.log(ctx).Info("refund heard of", "refund", r.RefundNo, "order", r.OrderNo, "said", said, "moved", moved)
	return nil
}

// finishOrder moves an order whose whole money has gone back.
func finishOrder(ctx context.Context, w *work, orderNo string) error {
	change := statusChange{orderNo: orderNo, Transition: Transition{Refunding, Refunded}, cause: "refund"}
	_, err := changeStatus(ctx, w.Tx, markOrderRefunded, change)
	return err
}

const listDueRefunds = `-- name: ListDueRefunds
SELECT refund_no, next_query_ms, query_tries, state FROM refunds
WHERE next_query_ms <= (SELECT db_now_ms()) AND (next_query_ms, refund_no) > (?1, ?2)
ORDER BY next_query_ms, refund_no
LIMIT ?3`

type dueRefund struct {
	refundNo string
	nextMs   int64
	tries    int
	state    RefundState
}

// queryRefunds is one run of the refund query: it asks the channels about the refunds that aren't final. It makes lost
// replies and lost notifications harmless. Every instance may run it at any time.
func (s *Shop) queryRefunds(ctx context.Context) {
	ctx = withStalls(withTrace(ctx, s.env.NewID()))
	err := workOff(ctx, s.cfg.ScanBatch, s.listDueRefunds, func(d dueRefund) {
		if err := s.queryRefund(ctx, d); err != nil {
			s.log(ctx).Warn("refund query failed", "refund", d.refundNo, "error", err)
		}
	})
	if err != nil {
		s.log(ctx).Error("refund query broke off", "error", err)
	}
}

func (s *Shop) listDueRefunds(ctx context.Context, after dueRefund) ([]dueRefund, error) {
	due, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (d dueRefund, err error) {
		err = rows.Scan(&d.refundNo, &d.nextMs, &d.tries, &d.state)
		return d, err
	}, listDueRefunds, after.nextMs, after.refundNo, s.cfg.ScanBatch)
	if err != nil {
		return nil, fmt.Errorf("list due refunds: %w", err)
	}
	return due, nil
}

const claimRefundQuery = `-- name: ClaimRefundQuery
UPDATE refunds SET query_tries = query_tries + 1, next_query_ms = db_now_ms() + ?3
WHERE refund_no = ?1 AND query_tries = ?2 AND next_query_ms IS NOT NULL`

// queryRefund asks about one refund. One that the channel doesn't know hasn't reached it yet: sending it is the
// outbox's.
func (s *Shop) queryRefund(ctx context.Context, d dueRefund) error {
	wait := backoff(firstRefundQuery, d.tries+1)
	if d.state == RefundFailed {
		wait = abnormalQuery
	}
	claimed, err := sqldb.Changed(ctx, s.env.DB, claimRefundQuery, d.refundNo, d.tries, wait.Milliseconds())
	if err != nil || !claimed {
		return err
	}
	r, err := readRefund(ctx, s.env.DB, d.refundNo)
	if err != nil {
		return err
	}
	said, err := s.channel.queryRefund(ctx, r)
	if err != nil {
		return err
	}
	return s.writeRefund(ctx, r, said)
}
