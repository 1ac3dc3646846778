package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// billTakes is how long after the end of a day its bill has been compared, even if it was
// late: channels promise it for the tenth hour, and some are hours late.
const billTakes = 18 * time.Hour

// BillsIn declares in which zone the days of a channel's bills are.
func (e *Evidence) BillsIn(channel string, zone *time.Location) { e.zones[channel] = zone }

// calendarDay is a day as a channel has it.
type calendarDay struct {
	name       string // 2026-03-02
	start, end time.Time
}

// dayAt returns the channel's day that has a time, false if nobody has declared its zone.
func (e *Evidence) dayAt(channel string, ms int64) (calendarDay, bool) {
	zone := e.zones[channel]
	if zone == nil {
		return calendarDay{}, false
	}
	year, month, day := time.UnixMilli(ms).In(zone).Date()
	start := time.Date(year, month, day, 0, 0, 0, 0, zone)
	return calendarDay{start.Format(time.DateOnly), start, time.Date(year, month, day+1, 0, 0, 0, 0, zone)}, true
}

// missDays finds a charge or a refund whose day was never compared with its bill, though
// there was time enough, or was compared as if it had other hours.
func (e *Evidence) missDays() {
	if len(e.trace.Records) == 0 {
		return
	}
	now := e.trace.Start.Add(e.trace.Records[len(e.trace.Records)-1].At)
	for _, row := range slices.Concat(e.ledgerRows("charges"), e.ledgerRows("refunds")) {
		day, known := e.dayAt(row.Database, cmp.Or(row.Int("charged_ms"), row.Int("accepted_ms")))
		if !known || now.Before(day.end.Add(billTakes)) {
			continue
		}
		if roles, what := e.misses(row.Database, day); what != "" {
			e.fail(Failure{Order: row.Text("order_no"), Stake: amountOf(row), Roles: roles, Message: fmt.Sprintf(
				"order %s: %s of %s is of %s, and that day's bill of %s was %s", row.Text("order_no"),
				strings.TrimSuffix(row.Table, "s")+" "+cmp.Or(row.Text("refund_no"), row.Text("channel_txn")), amountOf(row), day.name, row.Database, what)})
		}
	}
}

// misses tells how a day was not compared with its bill as it should be, "" if it was.
func (e *Evidence) misses(channel string, day calendarDay) (roles, what string) {
	look := e.looks.days[channel+"/"+day.name]
	if look == nil {
		return "bill never compared", "never compared with our books"
	}
	start, end := time.UnixMilli(look.row.Int("start_ms")), time.UnixMilli(look.row.Int("end_ms"))
	if start.Equal(day.start) && end.Equal(day.end) {
		return "", ""
	}
	zone := day.start.Location()
	return "bill of other hours", fmt.Sprintf("compared with what we have of %s to %s, though it is of %s to %s",
		start.In(zone).Format(time.RFC3339), end.In(zone).Format(time.RFC3339), day.start.Format(time.RFC3339), day.end.Format(time.RFC3339))
}
