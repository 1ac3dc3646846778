package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// told are the columns that matter of the rows that matter, those first that decide.
var told = map[string][]string{
	"orders":           {"status", "close_reason", "order_no", "amount_cents"},
	"payment_orders":   {"state", "order_no", "out_trade_no", "channel"},
	"payment_records":  {"disposition", "amount_cents", "currency", "order_no", "out_trade_no", "channel_txn"},
	"charges":          {"amount_cents", "currency", "order_no", "channel_txn"},
	"refunds":          {"state", "amount_cents", "currency", "order_no", "refund_no", "channel_txn"},
	"bill_rows":        {"bill_date", "bill_day", "kind", "amount_cents", "currency", "order_no", "out_trade_no", "channel_txn", "refund_no", "number"},
	"outbox":           {"state", "kind", "message_key"},
	"stock_journal":    {"movement", "quantity", "order_no"},
	"alerts":           {"kind", "subject", "amount_cents", "currency", "detail"},
	"order_status_log": {"from_status", "to_status", "cause", "order_no"},
}

// short is a row with the columns that matter.
func short(c *sim.Change) *sim.Change {
	if told[c.Table] == nil || c.Deleted() {
		return c
	}
	return only(c, told[c.Table])
}

// only is a row with some of its columns.
func only(c *sim.Change, columns []string) *sim.Change {
	s := *c
	s.Columns, s.Values = columns, make([]any, len(columns))
	for i, name := range columns {
		s.Values[i] = c.Get(name)
	}
	return &s
}

// The most characters of what is told: lines fit a terminal, more or less. A row is never
// cut but within a value: what decides may stand in any column.
const (
	mostOfLine  = 180
	mostOfValue = 160
)

// tellAll returns records of the trace, a line for each.
func tellAll(trace *sim.Trace, places []int) (lines []string) {
	for _, i := range places {
		lines = append(lines, tell(trace, i))
	}
	return lines
}

// tell returns a record of the trace as one line.
func tell(trace *sim.Trace, i int) string {
	line := trace.Records[i]
	if line.Change == nil {
		return shorten(trace.Line(&line), mostOfLine)
	}
	line.Change, line.Detail = nil, tellRow(line.Change, rowBefore(trace, i))
	return trace.Line(&line)
}

// rowBefore returns a row as it was before a record changed it, nil if there was none.
func rowBefore(trace *sim.Trace, i int) *sim.Change {
	name := nameOf(trace.Records[i].Change)
	for j := i - 1; j >= 0; j-- {
		if c := trace.Records[j].Change; c != nil && nameOf(c) == name {
			if c.Deleted() {
				return nil
			}
			return c
		}
	}
	return nil
}

// tellRow tells a row: first what has changed in it, with what it was.
func tellRow(now, before *sim.Change) string {
	if now.Deleted() {
		if before == nil {
			return now.String()
		}
		name := strings.TrimSuffix(now.String(), " deleted")
		return now.String() + ", was" + strings.TrimPrefix(short(before).String(), name)
	}
	row := only(now, columnsToTell(now, before))
	for i, column := range row.Columns {
		text := valueIn(now, column)
		if before != nil && text != valueIn(before, column) {
			row.Values[i] = fmt.Sprintf("%s (was %s)", shorten(text, mostOfValue), shorten(valueIn(before, column), mostOfValue))
		} else if row.Values[i] != nil {
			row.Values[i] = shorten(fmt.Sprint(row.Values[i]), mostOfValue)
		}
	}
	return row.String()
}

// columnsToTell returns the columns of a row that matter, those that have changed first; if
// none of them has, whatever else did.
func columnsToTell(now, before *sim.Change) []string {
	columns := told[now.Table]
	if columns == nil {
		columns = now.Columns
	}
	if before == nil {
		return columns
	}
	same := func(column string) bool { return valueIn(now, column) == valueIn(before, column) }
	changed := slices.DeleteFunc(slices.Clone(columns), same)
	if len(changed) == 0 {
		changed = slices.DeleteFunc(slices.Clone(now.Columns), same)
	}
	for _, column := range columns {
		if !slices.Contains(changed, column) {
			changed = append(changed, column)
		}
	}
	return changed
}

// valueIn returns a column's value in words.
func valueIn(c *sim.Change, column string) string {
	if v := c.Get(column); v != nil && v != "" {
		return fmt.Sprint(v)
	}
	return "nothing"
}

// statementMistake is how SQLite refuses a statement that could never work, whatever goes
// wrong around it.
var statementMistake = regexp.MustCompile(`^error: (no such |ambiguous column|near ".*syntax error|incomplete input|wrong number of arguments|.* has no column|table .* already exists|[0-9]+ values for )`)

// logsThatMatter returns what the service has said itself, where it explains a failure: the
// last of the task that was at work, about the order, and the first statement that is wrong as
// such.
func logsThatMatter(r *Result, f checker.Failure) (lines []string) {
	at, order := &r.Trace.Records[f.Seq-1], r.Case.Workload.orderIn(f.Order)
	var said, mistakes []int
	for i := range r.Trace.Records {
		switch record := &r.Trace.Records[i]; {
		case record.Event == sim.EventLog && record.Seq <= f.Seq && record.Node == at.Node && record.Task == at.Task && r.saysOf(record, order):
			said = append(said, i)
		case record.Event == sim.EventSQL && statementMistake.MatchString(record.Detail):
			mistakes = append(mistakes, i)
		}
	}
	if n := len(said); n > 0 {
		lines = append(lines, r.Trace.Line(&r.Trace.Records[said[n-1]]))
	}
	if n := len(mistakes); n > 0 {
		lines = append(lines, fmt.Sprintf("%s (the statement itself is wrong, %d times)", r.Trace.Line(&r.Trace.Records[mistakes[0]]), n))
	}
	return lines
}

// saysOf says whether a log's line is about an order, by its task or its own word; what a job
// says may be about any.
func (r *Result) saysOf(log *sim.Record, order string) bool {
	return order == "" || r.Case.Workload.orderNamed(log.Task) == order || strings.Contains(log.Detail+" ", " order="+order+" ")
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
