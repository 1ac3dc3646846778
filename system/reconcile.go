package system

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// Reconciliation compares what should agree and reports what doesn't, each difference as one alert. It repairs nothing.
//
// Hourly, from our own books: orders against payment records, refunds, attempts and the status log (reconcile_books.go),
// and orders against the stock service's journal (reconcile_stock.go; the old ones daily). What one transaction writes is compared within
// one statement, so it is never half-way. What follows a fact by message is compared only when it is old enough, nothing
// about it is on its way, and a second look finds it again.
//
// Daily, each channel's bill of the closed day, in both directions (reconcile_bill.go, reconcile_compare.go).
//
// A difference that two comparisons can see has the same kind and subject in both, so it is still one alert.

// The kinds of alerts that reconciliation raises, with their subjects.
const (
	statusMismatch  = "status-mismatch"  // order: its status isn't what its log and its charge say
	orderMissing    = "order-missing"    // order: others know it, but it isn't there
	attemptMismatch = "attempt-mismatch" // out-trade number: the attempt isn't what its charge says; or order without any
	recordMissing   = "record-missing"   // channel/transaction: a charge without a record
	recordMismatch  = "record-mismatch"  // channel/transaction: the record isn't what the order or the bill says
	recordSurplus   = "record-surplus"   // channel/transaction: says that it paid an order that another charge has paid
	recordUnbilled  = "record-unbilled"  // channel/transaction: the channel's bills don't have it
	refundMissing   = "refund-missing"   // channel/refund number, or the order that was refunded: a refund that isn't there
	refundMismatch  = "refund-mismatch"  // channel/refund number: the refund isn't what the charge or the bill says
	refundUnbilled  = "refund-unbilled"  // channel/refund number: the channel's bills don't have it
	stockMismatch   = "stock-mismatch"   // order: the stock journal isn't what the order says
	billDuplicate   = "bill-duplicate"   // channel/kind/number: billed twice
	billNotReady    = "bill-not-ready"   // channel/day: the bill can't be had; it is asked for again
)

const reconcileEvery = time.Hour

// messageGrace is how long what follows a fact by message may take before its absence is looked at, in milliseconds as
// SQL has them: ten minutes.
const messageGrace = "600000"

// startReconciliation starts the hourly run, unless the policy leaves reconciliation out.
func (s *Shop) startReconciliation() {
	if s.cfg.keptBy(ByReconciliation) {
		s.env.Loops.Every("reconcile", reconcileEvery, s.reconcileHourly)
	}
}

// reconcileHourly runs on every instance; the one that claims the hour does the work. If it dies in the middle the next
// hour's run finds what it would have found.
func (s *Shop) reconcileHourly(ctx context.Context) {
	ctx = withTrace(ctx, s.env.NewID())
	mine, err := sqldb.Changed(ctx, s.env.DB, claimHour, "reconcile", reconcileEvery.Milliseconds())
	if err == nil && mine {
		err = s.reconcile(ctx, false)
	}
	if err != nil {
		s.log(ctx).Error("reconciliation failed", "error", err)
	}
}

const claimHour = `-- name: ClaimReconcileHour
UPDATE reconcile_jobs SET hour = db_now_ms() / ?2
WHERE job = ?1 AND hour < db_now_ms() / ?2`

// Reconcile compares everything that can be compared now. Any number of instances may run it at once.
func (s *Shop) Reconcile(ctx context.Context) error { return s.reconcile(ctx, true) }

// reconcile runs every comparison that is due, or that of all stock too. An error of one keeps none of the others from
// running; what a failed one didn't get to is compared by the next run.
func (s *Shop) reconcile(ctx context.Context, wholeStock bool) error {
	var failures []error
	for _, job := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"books", s.reconcileBooks},
		{"stock", func(ctx context.Context) error { return s.reconcileStock(ctx, wholeStock) }},
		{"bills", s.reconcileBills},
	} {
		err := job.run(ctx)
		s.metrics.reconciled(job.name, err)
		if err != nil {
			failures = append(failures, fmt.Errorf("reconcile %s: %w", job.name, err))
		}
	}
	return errors.Join(failures...)
}

// report raises alerts for the differences that were found.
func (s *Shop) report(ctx context.Context, gaps []alert) error {
	for _, gap := range gaps {
		isNew, err := raiseNew(ctx, s.env.DB, gap)
		if err != nil {
			return err
		}
		if isNew {
			s.log(ctx).Warn("difference found", "kind", gap.kind, "subject", gap.subject,
				"amountCents", gap.amountCents, "currency", gap.currency, "detail", gap.detail)
		}
	}
	return nil
}

func inWords(m Money) string { return fmt.Sprintf("%d cents %s", m.AmountCents, m.Currency) }

// gapOf makes an alert about money.
func gapOf(kind, subject string, m Money, format string, args ...any) alert {
	return alert{kind: kind, subject: subject, amountCents: m.AmountCents, currency: m.Currency, detail: fmt.Sprintf(format, args...)}
}
