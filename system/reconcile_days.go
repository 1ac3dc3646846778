package system

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// BillDays are the days of one channel that are compared with its bills, or those that aren't yet.
type BillDays struct {
	Channel     string
	Compared    bool
	First, Last string    // 2026-01-31, in the channel's zone
	Days        int       // from First to Last; fewer than the calendar has when a bill was late
	Next        time.Time // of days not compared: when a bill is asked for next; after its day's end
}

const listBillDays = `-- name: ListBillDays
SELECT channel, state <> 'WAITING', min(bill_day), max(bill_day), count(*), coalesce(min(next_ms), 0)
FROM bill_days
WHERE channel IN (SELECT value FROM json_each(?1))
GROUP BY channel, state <> 'WAITING'
ORDER BY channel, state = 'WAITING'`

// BillDays tells how far the comparison with each channel's bills has come.
func (s *Shop) BillDays(ctx context.Context) ([]BillDays, error) {
	names, err := s.channelNames()
	if err != nil {
		return nil, err
	}
	days, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (d BillDays, err error) {
		var nextMs int64
		err = rows.Scan(&d.Channel, &d.Compared, &d.First, &d.Last, &d.Days, &nextMs)
		channel, _ := s.cfg.channel(d.Channel)
		d.Next = time.UnixMilli(nextMs).In(channel.Zone)
		return d, err
	}, listBillDays, names)
	if err != nil {
		return nil, fmt.Errorf("list bill days: %w", err)
	}
	return days, nil
}
