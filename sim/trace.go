package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Event is the kind of a trace record.
type Event string

const (
	EventBoot    Event = "boot"    // a process starts
	EventCrash   Event = "crash"   // a process dies; Op is the step where
	EventPanic   Event = "panic"   // the code panicked by itself; Detail has value and stack
	EventSQL     Event = "sql"     // a statement ended; Detail has its outcome
	EventBusy    Event = "busy"    // a statement waits for a lock
	EventRow     Event = "row"     // a committed change of one row; see Record.Change
	EventSend    Event = "send"    // a request leaves; see Record.Message
	EventDeliver Event = "deliver" // a message arrives
	EventDrop    Event = "drop"    // a message is lost
	EventCopy    Event = "copy"    // the network makes a further copy of a request
	EventAnswer  Event = "answer"  // a handler's answer leaves; see Record.Message
	EventFail    Event = "fail"    // a request fails at its sender; Detail says how
	EventReset   Event = "reset"   // a connection is reset, and a message with it
	EventStall   Event = "stall"   // a task is held up
	EventPause   Event = "pause"   // a process stands still; Op is the step where
	EventFault   Event = "fault"   // an operation is made to fail; Detail says how
	EventLease   Event = "lease"   // an operation of a lease service ended; Detail has its outcome
	EventLog     Event = "log"     // the system logged a warning or an error
	EventNote    Event = "note"    // written by the harness
)

// Record is one line of a trace.
type Record struct {
	Seq    int           `json:"seq"`
	At     time.Duration `json:"at_ns"` // true time since the world's start
	Node   string        `json:"node,omitempty"`
	Task   string        `json:"task,omitempty"`
	Event  Event         `json:"event"`
	Op     string        `json:"op,omitempty"` // the operation or the message's name
	Detail string        `json:"detail,omitempty"`
	// OpenTx says that the task, or any of the process that crashed or stands still,
	// held an open transaction.
	OpenTx bool `json:"open_tx,omitempty"`
	// Message is what was sent, delivered, lost or answered. It must not be changed.
	Message *Message `json:"message,omitempty"`
	// Change is the row that was changed.
	Change *Change `json:"change,omitempty"`
}

// Change is the committed state of one row of a watched database. A row that was
// deleted has no values.
type Change struct {
	Database string   `json:"database"`
	Table    string   `json:"table"`
	RowID    int64    `json:"rowid"`
	Columns  []string `json:"columns,omitempty"`
	Values   []any    `json:"values,omitempty"`
}

// Deleted says whether the row is gone.
func (c *Change) Deleted() bool { return c.Values == nil }

// Get returns a column's value, nil if there is none.
func (c *Change) Get(column string) any {
	for i, name := range c.Columns {
		if name == column && i < len(c.Values) {
			return c.Values[i]
		}
	}
	return nil
}

// Text returns a column's value as a string, "" if it is not one.
func (c *Change) Text(column string) string { s, _ := c.Get(column).(string); return s }

// Int returns a column's value as an integer, 0 if it is not one.
func (c *Change) Int(column string) int64 { n, _ := c.Get(column).(int64); return n }

// String returns the change as "orders#1 status=PAID amount_cents=9900".
func (c *Change) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s#%d", c.Database, c.Table, c.RowID)
	if c.Deleted() {
		b.WriteString(" deleted")
	}
	for i, v := range c.Values {
		switch v := v.(type) {
		case nil:
		case string:
			if strings.ContainsAny(v, "\n\r") {
				v = strconv.Quote(v)
			}
			if v != "" {
				fmt.Fprintf(&b, " %s=%s", c.Columns[i], v)
			}
		case []byte:
			fmt.Fprintf(&b, " %s=%x", c.Columns[i], v)
		default:
			fmt.Fprintf(&b, " %s=%v", c.Columns[i], v)
		}
	}
	return b.String()
}

// Trace is the list of everything visible that happened in a world, in order.
type Trace struct {
	// Start is the wall-clock time at the world's start.
	Start   time.Time
	Records []Record
	hash    uint64
	watch   []func(*Record)
}

// Watch calls f with each record that is added from now on. f must not keep the
// pointer.
func (t *Trace) Watch(f func(*Record)) { t.watch = append(t.watch, f) }

// Append adds a record, which gets the next number. It is for harnesses and tests
// that tell a history of their own; what happens in a world is added by itself.
func (t *Trace) Append(r Record) { t.add(r) }

// Hash returns the rolling hash over all records so far.
func (t *Trace) Hash() uint64 { return mix(t.hash) }

func (t *Trace) add(r Record) {
	r.Seq = len(t.Records) + 1
	t.hash = r.addTo(t.hash)
	t.Records = append(t.Records, r)
	for _, f := range t.watch {
		f(&t.Records[len(t.Records)-1])
	}
}

// addTo continues a hash with everything of the record that a reader can see.
func (r *Record) addTo(h uint64) uint64 {
	h = hashUint(h, uint64(r.At))
	h = hashStrings(h, r.Node, r.Task, string(r.Event), r.Op, r.Detail)
	if r.OpenTx {
		h = hashString(h, "open")
	}
	if r.Message != nil {
		h = r.Message.addTo(h)
	}
	if r.Change != nil {
		h = r.Change.addTo(h)
	}
	return h
}

func (c *Change) addTo(h uint64) uint64 {
	h = hashUint(hashStrings(h, c.Database, c.Table), uint64(c.RowID))
	h = hashStrings(h, c.Columns...)
	for _, v := range c.Values {
		switch v := v.(type) {
		case nil:
			h = hashStrings(h, "null")
		case int64:
			h = hashUint(hashStrings(h, "int"), uint64(v))
		case string:
			h = hashStrings(h, "text", v)
		default:
			h = hashStrings(h, fmt.Sprintf("%T", v), fmt.Sprint(v))
		}
	}
	return h
}

// UnmarshalJSON keeps integers what they are.
func (c *Change) UnmarshalJSON(data []byte) error {
	type plain Change
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode((*plain)(c)); err != nil {
		return err
	}
	for i, v := range c.Values {
		number, ok := v.(json.Number)
		if !ok {
			continue
		}
		if n, err := number.Int64(); err == nil {
			c.Values[i] = n
		} else if f, err := number.Float64(); err == nil {
			c.Values[i] = f
		}
	}
	return nil
}

// Clock returns the time of day of a record, to the microsecond, with the date
// where it is not the first day.
func (t *Trace) Clock(at time.Duration) string {
	when := t.Start.Add(at)
	if when.YearDay() == t.Start.YearDay() && when.Year() == t.Start.Year() {
		return when.Format("15:04:05.000000")
	}
	return when.Format("2006-01-02T15:04:05.000000")
}

// Line returns a record as one line of text.
func (t *Trace) Line(r *Record) string {
	detail := r.Detail
	if r.Change != nil {
		detail = r.Change.String()
	}
	if r.Message != nil {
		detail = strings.TrimSpace(r.Message.String() + " " + detail)
	}
	line := fmt.Sprintf("%s  %-9s %-26s %-8s %s", t.Clock(r.At), r.Node, r.Task, r.Event, r.Op)
	if detail != "" {
		line += "  " + strings.ReplaceAll(detail, "\n", "\n    ")
	}
	return strings.TrimRight(line, " ")
}

// WriteText writes the trace, one line for each record.
func (t *Trace) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	for i := range t.Records {
		out.WriteString(t.Line(&t.Records[i]))
		out.WriteByte('\n')
	}
	return out.Flush()
}

// WriteJSON writes the trace as JSON lines.
func (t *Trace) WriteJSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range t.Records {
		if err := enc.Encode(&t.Records[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}
