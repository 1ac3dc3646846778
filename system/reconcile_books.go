package system

import (
	"context"
	"database/sql"
	"fmt"
)

// reconcileBooks compares what our own database says in several places. Every row of every table is looked at, page by
// page: what an operator's hand has changed may be old.
func (s *Shop) reconcileBooks(ctx context.Context) error {
	if err := comparePages(ctx, s, listOrderBooks, scanOrderBook, []any{""}); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	if err := comparePages(ctx, s, listRecordBooks, scanRecordBook, []any{"", ""}); err != nil {
		return fmt.Errorf("payment records: %w", err)
	}
	if err := comparePages(ctx, s, listRefundBooks, scanRefundBook, []any{""}); err != nil {
		return fmt.Errorf("refunds: %w", err)
	}
	if err := comparePages(ctx, s, listAttemptBooks, scanAttemptBook, []any{""}); err != nil {
		return fmt.Errorf("attempts: %w", err)
	}
	return nil
}

// book is a row, with what the other tables say about it.
type book interface {
	place() []any // its key, after which the next page begins
	gaps() []alert
}

// comparePages reports the gaps of all rows of a query, which takes the last row's key and the length of a page.
func comparePages[B book](ctx context.Context, s *Shop, query string, scan func(*sql.Rows) (B, error), place []any) error {
	for {
		page, err := readRows(ctx, s.env.DB, scan, query, append(place, s.cfg.ScanBatch)...)
		if err != nil {
			return err
		}
		for _, b := range page {
			if err := s.report(ctx, b.gaps()); err != nil {
				return err
			}
		}
		if len(page) < s.cfg.ScanBatch {
			return nil
		}
		place = page[len(page)-1].place()
	}
}

// orderBook is an order and the charge that it says has paid it.
type orderBook struct {
	orderNo string
	Money
	status, logged Status // as the row and as the log's last entry says
	paidBy         string // channel/transaction; empty if no charge paid it
	hasAttempt     bool
	hasRecord      bool
	recordOrder    string
	recorded       Money
	refundedCents  int64 // that have gone back of the paying charge
}

const listOrderBooks = `-- name: ListOrderBooks
SELECT o.order_no, o.amount_cents, o.currency, o.status,
       coalesce((SELECT l.to_status FROM order_status_log l WHERE l.order_no = o.order_no ORDER BY l.log_id DESC LIMIT 1), ''),
       coalesce(o.paid_channel || '/' || o.paid_txn, ''),
       EXISTS (SELECT 1 FROM payment_orders p WHERE p.order_no = o.order_no),
       r.order_no IS NOT NULL, coalesce(r.order_no, ''), coalesce(r.amount_cents, 0), coalesce(r.currency, ''),
       (SELECT coalesce(sum(f.amount_cents), 0) FROM refunds f
        WHERE f.order_no = o.order_no AND f.channel = o.paid_channel AND f.channel_txn = o.paid_txn AND f.state = 'SUCCEEDED')
FROM orders o LEFT JOIN payment_records r ON r.channel = o.paid_channel AND r.channel_txn = o.paid_txn
WHERE o.order_no > ?1
ORDER BY o.order_no LIMIT ?2`

func scanOrderBook(rows *sql.Rows) (orderBook, error) {
	var b orderBook
	err := rows.Scan(&b.orderNo, &b.AmountCents, &b.Currency, &b.status, &b.logged, &b.paidBy, &b.hasAttempt,
		&b.hasRecord, &b.recordOrder, &b.recorded.AmountCents, &b.recorded.Currency, &b.refundedCents)
	return b, err
}

func (b orderBook) place() []any { return []any{b.orderNo} }

// gaps finds at most one thing about the order itself, so that one change by hand isn't told in several ways, and one
// about the record of its charge.
func (b orderBook) gaps() (gaps []alert) {
	kept := b.status == Paid || b.status == Refunding || b.status == Refunded
	switch {
	case b.status != b.logged:
		gaps = append(gaps, gapOf(statusMismatch, b.orderNo, b.Money, "the order is %s, its log ends with %s", b.status, orNothing(b.logged)))
	case kept != (b.paidBy != ""):
		gaps = append(gaps, gapOf(statusMismatch, b.orderNo, b.Money, "the order is %s, and paid by %s", b.status, orNothing(b.paidBy)))
	case !b.hasAttempt:
		gaps = append(gaps, gapOf(attemptMismatch, b.orderNo, b.Money, "the order has no attempt"))
	case b.status == Refunded && b.refundedCents != b.AmountCents:
		gaps = append(gaps, gapOf(refundMissing, b.orderNo, b.Money, "the order is refunded, but only %d cents have gone back", b.refundedCents))
	}
	switch {
	case b.paidBy == "":
	case !b.hasRecord:
		gaps = append(gaps, gapOf(recordMissing, b.paidBy, b.Money, "order %s is paid by a charge that has no record", b.orderNo))
	case b.recordOrder != b.orderNo || b.recorded != b.Money:
		gaps = append(gaps, gapOf(recordMismatch, b.paidBy, b.Money, "order %s is for %s, the record of its charge says order %s and %s",
			b.orderNo, inWords(b.Money), b.recordOrder, inWords(b.recorded)))
	}
	return gaps
}

// orNothing makes an empty word visible.
func orNothing[S ~string](word S) string {
	if word == "" {
		return "nothing"
	}
	return string(word)
}

// recordBook is a payment record, with its order, its attempt and what has gone back of it.
type recordBook struct {
	channel, txn, orderNo, outTradeNo, disposition string
	Money
	hasOrder     bool
	pays         bool // by the order's word
	paidBy       string
	orderStatus  Status
	attemptState string // empty if there is none
	hasRefund    bool   // one that has failed counts: it was told when it failed
	backCents    int64  // of its refunds that haven't failed
	refundNo     string // of the refund that it gets by itself
	inFlight     bool   // its refund may be still to come
}

const listRecordBooks = `-- name: ListRecordBooks
SELECT r.channel, r.channel_txn, r.order_no, r.out_trade_no, r.disposition, r.amount_cents, r.currency,
       o.order_no IS NOT NULL, coalesce(o.paid_channel = r.channel AND o.paid_txn = r.channel_txn, false),
       coalesce(o.paid_channel || '/' || o.paid_txn, ''), coalesce(o.status, ''), coalesce(p.state, ''),
       EXISTS (SELECT 1 FROM refunds f
               WHERE f.order_no = r.order_no AND f.channel = r.channel AND f.channel_txn = r.channel_txn),
       (SELECT coalesce(sum(f.amount_cents), 0) FROM refunds f
        WHERE f.order_no = r.order_no AND f.channel = r.channel AND f.channel_txn = r.channel_txn AND f.state <> 'FAILED'),
       '` + automaticRefund + `' || r.channel || '-' || r.channel_txn,
       r.recorded_ms > (SELECT db_now_ms()) - ` + messageGrace + ` OR EXISTS (
           SELECT 1 FROM outbox m WHERE m.kind = 'reinstate' AND m.state = 'PENDING'
           AND m.message_key = '` + automaticRefund + `' || r.channel || '-' || r.channel_txn)
FROM payment_records r
LEFT JOIN orders o ON o.order_no = r.order_no
LEFT JOIN payment_orders p ON p.out_trade_no = r.out_trade_no
WHERE (r.channel, r.channel_txn) > (?1, ?2)
ORDER BY r.channel, r.channel_txn LIMIT ?3`

func scanRecordBook(rows *sql.Rows) (recordBook, error) {
	var b recordBook
	err := rows.Scan(&b.channel, &b.txn, &b.orderNo, &b.outTradeNo, &b.disposition, &b.AmountCents, &b.Currency,
		&b.hasOrder, &b.pays, &b.paidBy, &b.orderStatus, &b.attemptState, &b.hasRefund,
		&b.backCents, &b.refundNo, &b.inFlight)
	return b, err
}

func (b recordBook) place() []any { return []any{b.channel, b.txn} }

func (b recordBook) gaps() (gaps []alert) {
	subject := b.channel + "/" + b.txn
	switch {
	case !b.hasOrder:
		return []alert{gapOf(orderMissing, b.orderNo, b.Money, "charge %s is for an order that isn't there", subject)}
	case b.disposition == applied && b.paidBy == "":
		gaps = append(gaps, gapOf(statusMismatch, b.orderNo, b.Money, "the order is %s, though charge %s has paid it", b.orderStatus, subject))
	case b.disposition == applied && !b.pays:
		gaps = append(gaps, gapOf(recordSurplus, subject, b.Money, "the record says that it paid order %s, which %s has paid", b.orderNo, b.paidBy))
	case b.disposition != applied && !b.pays && !b.inFlight && !b.hasRefund:
		gaps = append(gaps, gapOf(refundMissing, b.channel+"/"+b.refundNo, b.Money, "%s charge %s of order %s isn't given back", b.disposition, subject, b.orderNo))
	case !b.pays && b.backCents != 0 && b.backCents != b.AmountCents, b.backCents > b.AmountCents:
		gaps = append(gaps, gapOf(refundMismatch, b.channel+"/"+b.refundNo, b.Money, "%d cents of charge %s go back", b.backCents, subject))
	}
	if b.attemptState != string(AttemptPaid) {
		gaps = append(gaps, gapOf(attemptMismatch, b.outTradeNo, b.Money, "charge %s has paid the attempt, which is %s", subject, orNothing(b.attemptState)))
	}
	return gaps
}

// refundBook is a refund, with what it is of.
type refundBook struct {
	refundNo, orderNo, charge string
	Money
	hasOrder, hasRecord bool
}

const listRefundBooks = `-- name: ListRefundBooks
SELECT f.refund_no, f.order_no, f.channel || '/' || f.channel_txn, f.amount_cents, f.currency,
       EXISTS (SELECT 1 FROM orders o WHERE o.order_no = f.order_no),
       EXISTS (SELECT 1 FROM payment_records r WHERE r.channel = f.channel AND r.channel_txn = f.channel_txn)
FROM refunds f WHERE f.refund_no > ?1
ORDER BY f.refund_no LIMIT ?2`

func scanRefundBook(rows *sql.Rows) (refundBook, error) {
	var b refundBook
	err := rows.Scan(&b.refundNo, &b.orderNo, &b.charge, &b.AmountCents, &b.Currency, &b.hasOrder, &b.hasRecord)
	return b, err
}

func (b refundBook) place() []any { return []any{b.refundNo} }

func (b refundBook) gaps() (gaps []alert) {
	if !b.hasOrder {
		gaps = append(gaps, gapOf(orderMissing, b.orderNo, b.Money, "refund %s is for an order that isn't there", b.refundNo))
	}
	if !b.hasRecord {
		gaps = append(gaps, gapOf(recordMissing, b.charge, b.Money, "refund %s is of a charge that has no record", b.refundNo))
	}
	return gaps
}

// attemptBook is an attempt whose order should be there.
type attemptBook struct {
	outTradeNo, orderNo string
	hasOrder            bool
}

const listAttemptBooks = `-- name: ListAttemptBooks
SELECT p.out_trade_no, p.order_no, EXISTS (SELECT 1 FROM orders o WHERE o.order_no = p.order_no)
FROM payment_orders p WHERE p.out_trade_no > ?1
ORDER BY p.out_trade_no LIMIT ?2`

func scanAttemptBook(rows *sql.Rows) (attemptBook, error) {
	var b attemptBook
	err := rows.Scan(&b.outTradeNo, &b.orderNo, &b.hasOrder)
	return b, err
}

func (b attemptBook) place() []any { return []any{b.outTradeNo} }

func (b attemptBook) gaps() []alert {
	if b.hasOrder {
		return nil
	}
	return []alert{gapOf(orderMissing, b.orderNo, Money{}, "attempt %s is for an order that isn't there", b.outTradeNo)}
}
