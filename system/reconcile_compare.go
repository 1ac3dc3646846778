package system

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// compareDay compares a fetched bill with our books, in both directions. At first it passes over charges whose callback
// may still come; when that time is over the day is compared once more. It is checked when nothing is on its way.
func (s *Shop) compareDay(ctx context.Context, d billDay) error {
	last := d.since() >= callbackGrace
	inFlight, err := s.compareBillRows(ctx, d, last)
	if err != nil {
		return err
	}
	complete, err := s.hasBillsUntil(ctx, d)
	if err != nil {
		return err
	}
	if complete {
		if err := s.findUnbilled(ctx, d); err != nil {
			return err
		}
	}
	return s.endCompare(ctx, d, last && complete && !inFlight)
}

const endCompare = `-- name: EndBillCompare
UPDATE bill_days SET state = ?3, next_ms = ?4
WHERE channel = ?1 AND bill_day = ?2 AND state = 'FETCHED'`

// endCompare writes down when the day is looked at again, if ever. A day that is late, because an earlier bill is still
// missing or a channel still asked, keeps the time of its claim.
func (s *Shop) endCompare(ctx context.Context, d billDay, checked bool) error {
	state, next := dayFetched, any(d.endMs+callbackGrace.Milliseconds())
	switch {
	case checked:
		state, next = dayChecked, nil
	case d.since() >= callbackGrace:
		return nil
	}
	if _, err := sqldb.Changed(ctx, s.env.DB, endCompare, d.channel, d.day, state, next); err != nil {
		return fmt.Errorf("end comparison: %w", err)
	}
	return nil
}

// billedBook is a bill's row, with what our books say about it.
type billedBook struct {
	channel  string
	position int
	billRow
	isRepeat      bool // an earlier row of any bill has the same number
	hasOwn        bool // our record of the charge, or our refund
	own           billRow
	knownTrade    bool // so its callback, if it is still to come, will be taken
	stillAsked    bool // the channel is, about the trade
	paysOrder     bool // by the order's word, so its callback has come
	wasRefused    bool // a charge of that number, and alerted, when we heard of it
	orderRefunded bool
}

const listBilledBooks = `-- name: ListBilledBooks
SELECT b.position, b.kind, b.number, b.out_trade_no, b.order_no, b.amount_cents, b.currency, b.at_ms,
       EXISTS (SELECT 1 FROM bill_rows e WHERE e.channel = b.channel AND e.kind = b.kind AND e.number = b.number
               AND (e.bill_day, e.position) < (b.bill_day, b.position)),
       coalesce(r.order_no, f.order_no) IS NOT NULL, coalesce(r.out_trade_no, f.out_trade_no, ''),
       coalesce(r.order_no, f.order_no, ''), coalesce(r.amount_cents, f.amount_cents, 0), coalesce(r.currency, f.currency, ''),
       p.out_trade_no IS NOT NULL, p.next_query_ms IS NOT NULL,
       coalesce(o.paid_channel = b.channel AND o.paid_txn = b.number, false),
       EXISTS (SELECT 1 FROM alerts a WHERE a.kind = 'charge-refused' AND a.subject = b.channel || '/' || b.number),
       coalesce(o.status = 'REFUNDED', false)
FROM bill_rows b
LEFT JOIN payment_records r ON b.kind = 'charge' AND r.channel = b.channel AND r.channel_txn = b.number
LEFT JOIN refunds f ON b.kind = 'refund' AND f.channel = b.channel AND f.refund_no = b.number
LEFT JOIN payment_orders p ON p.out_trade_no = b.out_trade_no AND p.channel = b.channel
LEFT JOIN orders o ON o.order_no = b.order_no
WHERE b.channel = ?1 AND b.bill_day = ?2 AND b.position > ?3
ORDER BY b.position LIMIT ?4`

// compareBillRows looks for each row of a bill in our books, and reports whether some may still come into them.
func (s *Shop) compareBillRows(ctx context.Context, d billDay, last bool) (inFlight bool, err error) {
	scan := func(rows *sql.Rows) (billedBook, error) {
		b := billedBook{channel: d.channel}
		var number string
		err := rows.Scan(&b.position, &b.Kind, &number, &b.OutTradeNo, &b.OrderNo, &b.AmountCents, &b.Currency, &b.AtMs,
			&b.isRepeat, &b.hasOwn, &b.own.OutTradeNo, &b.own.OrderNo, &b.own.AmountCents, &b.own.Currency,
			&b.knownTrade, &b.stillAsked, &b.paysOrder, &b.wasRefused, &b.orderRefunded)
		b.ChannelTxn, b.RefundNo = number, number
		return b, err
	}
	for position := 0; ; {
		page, err := readRows(ctx, s.env.DB, scan, listBilledBooks, d.channel, d.day, position, s.cfg.ScanBatch)
		if err != nil {
			return false, fmt.Errorf("compare bill: %w", err)
		}
		for _, b := range page {
			if b.inFlight(last) {
				inFlight = true
				continue
			}
			if gap, found := b.gap(); found {
				if err := s.report(ctx, []alert{gap}); err != nil {
					return false, err
				}
			}
		}
		if len(page) < s.cfg.ScanBatch {
			return inFlight, nil
		}
		position = page[len(page)-1].position
	}
}

// inFlight reports whether a charge that we haven't heard of may be on its way to us: by callback until the last look, or
// by a query.
func (b billedBook) inFlight(last bool) bool {
	return b.Kind == billCharge && !b.hasOwn && !b.paysOrder && b.knownTrade && (!last || b.stillAsked)
}

// gap is what is wrong with a bill's row, if anything.
func (b billedBook) gap() (alert, bool) {
	subject := b.channel + "/" + b.number()
	matches := b.own.OrderNo == b.OrderNo && b.own.OutTradeNo == b.OutTradeNo && b.own.Money == b.Money
	switch {
	case b.isRepeat: // whatever else is wrong with it
		return gapOf(billDuplicate, b.channel+"/"+b.Kind+"/"+b.number(), b.Money, "the channel has billed it twice"), true
	case b.hasOwn && matches, !b.hasOwn && b.wasRefused: // what is in our books was told falsely, and may be billed so too
		return alert{}, false
	case b.hasOwn:
		kind := recordMismatch
		if b.Kind == billRefund {
			kind = refundMismatch
		}
		return gapOf(kind, subject, b.Money, "the bill says order %s, trade %s and %s, our books order %s, trade %s and %s", b.OrderNo,
			b.OutTradeNo, inWords(b.Money), b.own.OrderNo, b.own.OutTradeNo, inWords(b.own.Money)), true
	case b.Kind == billRefund:
		if b.orderRefunded && !strings.HasPrefix(b.RefundNo, automaticRefund) {
			subject = b.OrderNo // the order misses it too
		}
		return gapOf(refundMissing, subject, b.Money, "the channel has given money back for order %s; we know of no such refund", b.OrderNo), true
	}
	return gapOf(recordMissing, subject, b.Money, "the channel has charged trade %s of order %s; there is no record of it", b.OutTradeNo, b.OrderNo), true
}

const hasBillsUntil = `-- name: HasBillsUntil
SELECT NOT EXISTS (SELECT 1 FROM bill_days WHERE channel = ?1 AND bill_day <= ?2 AND state = 'WAITING')`

// hasBillsUntil reports whether we have the bills of this day and of all days before it.
func (s *Shop) hasBillsUntil(ctx context.Context, d billDay) (complete bool, err error) {
	if err := s.env.DB.QueryRowContext(ctx, hasBillsUntil, d.channel, d.day).Scan(&complete); err != nil {
		return false, fmt.Errorf("find missing bills: %w", err)
	}
	return complete, nil
}

// unbilled is a record or a refund that no bill has.
type unbilled struct {
	atMs            int64
	number, orderNo string
	Money
}

// What we knew of by the end of a day the channel did by then, by its own time on that day or before; so it stands in
// one of the bills until then. That doesn't need the channel's time, which a callback doesn't tell.
const (
	listUnbilledRecords = `-- name: ListUnbilledRecords
SELECT r.recorded_ms, r.channel_txn, r.order_no, r.amount_cents, r.currency FROM payment_records r
WHERE r.channel = ?1 AND r.recorded_ms < ?2 AND (r.recorded_ms, r.channel_txn) > (?3, ?4)
AND NOT EXISTS (SELECT 1 FROM bill_rows b WHERE b.channel = r.channel AND b.kind = 'charge' AND b.number = r.channel_txn)
ORDER BY r.recorded_ms, r.channel_txn LIMIT ?5`

	listUnbilledRefunds = `-- name: ListUnbilledRefunds
SELECT f.done_ms, f.refund_no, f.order_no, f.amount_cents, f.currency FROM refunds f
WHERE f.channel = ?1 AND f.done_ms < ?2 AND f.state = 'SUCCEEDED' AND (f.done_ms, f.refund_no) > (?3, ?4)
AND NOT EXISTS (SELECT 1 FROM bill_rows b WHERE b.channel = f.channel AND b.kind = 'refund' AND b.number = f.refund_no)
ORDER BY f.done_ms, f.refund_no LIMIT ?5`
)

// findUnbilled reports what came to our knowledge on a day and stands in no bill.
func (s *Shop) findUnbilled(ctx context.Context, d billDay) error {
	for _, side := range []struct{ query, kind, what string }{
		{listUnbilledRecords, recordUnbilled, "charge"},
		{listUnbilledRefunds, refundUnbilled, "refund"},
	} {
		if err := s.findUnbilledOf(ctx, d, side.query, side.kind, side.what); err != nil {
			return fmt.Errorf("find unbilled %ss: %w", side.what, err)
		}
	}
	return nil
}

func (s *Shop) findUnbilledOf(ctx context.Context, d billDay, query, kind, what string) error {
	scan := func(rows *sql.Rows) (u unbilled, err error) {
		err = rows.Scan(&u.atMs, &u.number, &u.orderNo, &u.AmountCents, &u.Currency)
		return u, err
	}
	place := unbilled{atMs: d.startMs - clockGrace.Milliseconds()}
	untilMs := d.endMs - clockGrace.Milliseconds()
	for {
		page, err := readRows(ctx, s.env.DB, scan, query, d.channel, untilMs, place.atMs, place.number, s.cfg.ScanBatch)
		if err != nil {
			return err
		}
		for _, u := range page {
			gap := gapOf(kind, d.channel+"/"+u.number, u.Money, "we have a %s of order %s, which the channel hasn't billed", what, u.orderNo)
			if err := s.report(ctx, []alert{gap}); err != nil {
				return err
			}
		}
		if len(page) < s.cfg.ScanBatch {
			return nil
		}
		place = page[len(page)-1]
	}
}
