package system

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

const (
	// billAskedAfter is when a bill is first asked for, after the end of its day. Channels promise it for 10:00; the rest
	// is for clocks that differ.
	billAskedAfter = 10*time.Hour + 15*time.Minute
	// billTries is after how many tries a bill that can't be had for any reason is alerted. The answer that it isn't ready
	// is alerted at once.
	billTries = 6
	// billRetry keeps the other instances of this hour's run away, and lets the next hour's run try again.
	billRetry = 50 * time.Minute
	// callbackGrace is how long after the end of its day a charge may still be on its way to us: longer than channels go
	// on notifying it.
	callbackGrace = 25 * time.Hour
	// clockGrace is by how much the channel's clock may differ from ours.
	clockGrace = 5 * time.Minute
)

// The states of a day.
const (
	dayWaiting = "WAITING"
	dayFetched = "FETCHED"
	dayChecked = "CHECKED"
)

// billDay is one day of one channel.
type billDay struct {
	channel, day   string
	startMs, endMs int64
	state, place   string
	rowCount       int
	tries          int // with this one
	nextMs, nowMs  int64
}

func (d billDay) String() string { return d.channel + "/" + d.day }

// since is how long the day is over.
func (d billDay) since() time.Duration { return time.Duration(d.nowMs-d.endMs) * time.Millisecond }

// reconcileBills takes every day that is due a step further. Days that were missed while nobody ran are due still.
func (s *Shop) reconcileBills(ctx context.Context) error {
	if err := s.openFirstDays(ctx); err != nil {
		return err
	}
	due, err := s.listDueDays(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for len(due) > 0 {
		claims := 0
		for _, day := range due {
			claimed, err := s.reconcileDay(ctx, day)
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", day, err))
			}
			if claimed {
				claims++
			}
		}
		if claims == 0 {
			break
		}
		// Each day has opened the one after it, which may be over too.
		if due, err = s.listDueDays(ctx); err != nil {
			return errors.Join(append(failures, err)...)
		}
	}
	return errors.Join(failures...)
}

func (s *Shop) channelNames() (string, error) {
	text, err := json.Marshal(s.cfg.channelNames())
	return string(text), err
}

const listNewChannels = `-- name: ListNewChannels
SELECT c.value, min(db_now_ms(), coalesce((SELECT min(p.created_ms) FROM payment_orders p WHERE p.channel = c.value), db_now_ms()))
FROM json_each(?1) c
WHERE NOT EXISTS (SELECT 1 FROM bill_days d WHERE d.channel = c.value)
ORDER BY c.value`

// openFirstDays begins the chain of days of channels that have none: with the day of the first attempt, before which
// nothing can have been charged, or with today.
func (s *Shop) openFirstDays(ctx context.Context) error {
	names, err := s.channelNames()
	if err != nil {
		return err
	}
	type first struct {
		channel string
		ms      int64
	}
	channels, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (f first, err error) {
		err = rows.Scan(&f.channel, &f.ms)
		return f, err
	}, listNewChannels, names)
	if err != nil {
		return fmt.Errorf("list new channels: %w", err)
	}
	for _, f := range channels {
		if err := s.openDay(ctx, f.channel, time.UnixMilli(f.ms)); err != nil {
			return err
		}
	}
	return nil
}

const insertBillDay = `-- name: InsertBillDay
INSERT INTO bill_days (channel, bill_day, start_ms, end_ms, state, next_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (channel, bill_day) DO NOTHING`

// openDay adds the channel's day that contains the given time.
func (s *Shop) openDay(ctx context.Context, name string, within time.Time) error {
	channel, _ := s.cfg.channel(name)
	year, month, day := within.In(channel.Zone).Date()
	start := time.Date(year, month, day, 0, 0, 0, 0, channel.Zone)
	end := time.Date(year, month, day+1, 0, 0, 0, 0, channel.Zone)
	_, err := sqldb.Changed(ctx, s.env.DB, insertBillDay, name, start.Format(time.DateOnly), start.UnixMilli(),
		end.UnixMilli(), dayWaiting, end.Add(billAskedAfter).UnixMilli())
	if err != nil {
		return fmt.Errorf("open day %s of %s: %w", start.Format(time.DateOnly), name, err)
	}
	return nil
}

const listDueDays = `-- name: ListDueBillDays
SELECT channel, bill_day, start_ms, end_ms, state, place, row_count, tries + 1, next_ms, db_now_ms()
FROM bill_days
WHERE next_ms <= (SELECT db_now_ms()) AND channel IN (SELECT value FROM json_each(?1))
ORDER BY channel, bill_day`

func (s *Shop) listDueDays(ctx context.Context) ([]billDay, error) {
	names, err := s.channelNames()
	if err != nil {
		return nil, err
	}
	due, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (d billDay, err error) {
		err = rows.Scan(&d.channel, &d.day, &d.startMs, &d.endMs, &d.state, &d.place, &d.rowCount, &d.tries, &d.nextMs, &d.nowMs)
		return d, err
	}, listDueDays, names)
	if err != nil {
		return nil, fmt.Errorf("list due days: %w", err)
	}
	return due, nil
}

const claimDay = `-- name: ClaimBillDay
UPDATE bill_days SET next_ms = db_now_ms() + ?4, tries = tries + 1
WHERE channel = ?1 AND bill_day = ?2 AND next_ms = ?3`

// reconcileDay fetches a day's bill if we don't have it, and compares it. A claim keeps other instances away meanwhile;
// if it is lost in a crash the day is due again an hour later, and the bill goes on at the page where it stopped.
func (s *Shop) reconcileDay(ctx context.Context, d billDay) (claimed bool, err error) {
	claimed, err = sqldb.Changed(ctx, s.env.DB, claimDay, d.channel, d.day, d.nextMs, billRetry.Milliseconds())
	if err != nil || !claimed {
		return false, err
	}
	if err := s.openDay(ctx, d.channel, time.UnixMilli(d.endMs)); err != nil {
		return true, err
	}
	if d.state == dayWaiting {
		if err := s.fetchBill(ctx, d); err != nil {
			return true, errors.Join(err, s.alertLateBill(ctx, d, err))
		}
	}
	return true, s.compareDay(ctx, d)
}

// alertLateBill alerts a bill that can't be had. Without its bill a day is never taken for an empty one: it stays due.
func (s *Shop) alertLateBill(ctx context.Context, d billDay, failure error) error {
	if !refusedAs(failure, "BILL_NOT_READY") && d.tries < billTries {
		return nil
	}
	return s.report(ctx, []alert{{kind: billNotReady, subject: d.String(),
		detail: fmt.Sprintf("the bill can't be had, and is asked for again: %.200s", failure)}})
}

// The kinds of a bill's rows.
const (
	billCharge = "charge"
	billRefund = "refund"
)

// billRow is a row of a bill. A refund's charge is left out: the refund's number says it.
type billRow struct {
	Kind       string `json:"kind"`
	ChannelTxn string `json:"channelTxn"`
	RefundNo   string `json:"refundNo"`
	OutTradeNo string `json:"outTradeNo"`
	OrderNo    string `json:"orderNo"`
	Money
	AtMs int64 `json:"atMs"`
}

// number is what the row is known by: the channel's number of a charge, our number of a refund.
func (r billRow) number() string {
	if r.Kind == billRefund {
		return r.RefundNo
	}
	return r.ChannelTxn
}

type billRequest struct {
	MerchantID string `json:"merchantId"`
	Date       string `json:"date"`
	After      string `json:"after"`
	Limit      int    `json:"limit"`
}

type billPage struct {
	Rows []billRow `json:"rows"`
	Next string    `json:"next"` // where to go on; empty when nothing comes after this page
}

// bill asks for a page of a closed day's bill. A bill that isn't made yet is an error that refusedAs BILL_NOT_READY.
func (c channelClient) bill(ctx context.Context, d billDay) (billPage, error) {
	var page billPage
	err := c.post(ctx, d.channel, "/bill", billRequest{
		MerchantID: c.cfg.MerchantID, Date: d.day, After: d.place, Limit: c.cfg.ScanBatch,
	}, &page)
	if err != nil {
		return page, err
	}
	if page.Rows == nil || page.Next != "" && page.Next == d.place {
		return page, fmt.Errorf("bill of %s: the answer after %q is no page", d, d.place)
	}
	for _, row := range page.Rows {
		if row.Kind != billCharge && row.Kind != billRefund || row.number() == "" {
			return page, fmt.Errorf("bill of %s: nobody knows what a %q with the number %q is", d, row.Kind, row.number())
		}
	}
	return page, nil
}

// fetchBill fetches the rest of a bill, page by page.
func (s *Shop) fetchBill(ctx context.Context, d billDay) error {
	for {
		page, err := s.channel.bill(ctx, d)
		if err != nil {
			return err
		}
		if err := s.storePage(ctx, d, page); err != nil {
			return err
		}
		if page.Next == "" {
			s.log(ctx).Info("bill fetched", "day", d.String(), "rows", d.rowCount+len(page.Rows))
			return nil
		}
		d.place, d.rowCount = page.Next, d.rowCount+len(page.Rows)
	}
}

const (
	moveBillPlace = `-- name: MoveBillPlace
UPDATE bill_days SET place = ?5, row_count = row_count + ?6, state = CASE ?5 WHEN '' THEN 'FETCHED' ELSE state END
WHERE channel = ?1 AND bill_day = ?2 AND state = 'WAITING' AND place = ?3 AND row_count = ?4`

	insertBillRows = `-- name: InsertBillRows
INSERT INTO bill_rows (channel, bill_day, position, kind, number, out_trade_no, order_no, amount_cents, currency, at_ms)
SELECT ?1, ?2, ?3 + 1 + key, value ->> '$.kind',
       CASE value ->> '$.kind' WHEN 'refund' THEN value ->> '$.refundNo' ELSE value ->> '$.channelTxn' END,
       value ->> '$.outTradeNo', value ->> '$.orderNo', value ->> '$.amountCents', value ->> '$.currency', value ->> '$.atMs'
FROM json_each(?4)`
)

// storePage keeps a page and the place after it in one transaction. Whoever has fetched the same page too is told.
func (s *Shop) storePage(ctx context.Context, d billDay, page billPage) error {
	rows, err := json.Marshal(page.Rows)
	if err != nil {
		return err
	}
	return s.transact(ctx, "bill page", func(w *work) error {
		mine, err := w.exec(ctx, moveBillPlace, d.channel, d.day, d.place, d.rowCount, page.Next, len(page.Rows))
		if err != nil {
			return fmt.Errorf("move place in bill of %s: %w", d, err)
		}
		if !mine {
			return fmt.Errorf("bill of %s: another instance is fetching it", d)
		}
		if _, err := w.ExecContext(ctx, insertBillRows, d.channel, d.day, d.rowCount, string(rows)); err != nil {
			return fmt.Errorf("store rows of bill %s: %w", d, err)
		}
		return nil
	})
}
