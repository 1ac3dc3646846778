package scenarios

import (
	"cmp"
	"slices"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// matters are the records of a trace that tell most about a failure, by what they are.
type matters struct {
	states  []int // changes of the order itself
	rows    []int // and of other rows that matter
	losses  []int // of messages, and of processes
	answers []int // and whatever else
}

// recordsThatMatter returns the places of a failure's record, of those that it is about, and of
// the nearest about its order: changes of rows and losses before what was only said, of which
// some orders have hundreds. What showed at the end may also be about what came after the
// record.
func recordsThatMatter(r *Result, f checker.Failure, most int) []int {
	at := f.Seq - 1
	m := r.mattersOf(f)
	chosen := []int{at}
	for _, seq := range f.About[max(0, len(f.About)-most/2):] {
		if seq != f.Seq {
			chosen = append(chosen, seq-1)
		}
	}
	choose := func(from []int, n int) {
		for _, i := range nearest(from, at) {
			if n > 0 && len(chosen) < most && !slices.Contains(chosen, i) {
				chosen = append(chosen, i)
				n--
			}
		}
	}
	choose(m.states, 1)
	choose(m.rows, most/2+1-len(chosen))
	choose(m.losses, 1)
	choose(m.answers, 1)
	choose(slices.Concat(m.states, m.rows, m.losses, m.answers), most)
	slices.Sort(chosen)
	return chosen
}

// nearest sorts places by how far they are from another.
func nearest(places []int, at int) []int {
	return slices.SortedStableFunc(slices.Values(places), func(a, b int) int { return cmp.Compare(distance(a, at), distance(b, at)) })
}

// mattersOf looks through the trace until a failure showed.
func (r *Result) mattersOf(f checker.Failure) (m matters) {
	until, order := f.Seq, r.Case.Workload.orderIn(f.Order)
	if f.AtEnd {
		until = len(r.Trace.Records)
	}
	last := map[rowName]string{}
	for i := range r.Trace.Records[:until] {
		record := &r.Trace.Records[i]
		if order == "" || r.orderOf(record) != order {
			continue
		}
		switch record.Event {
		case sim.EventRow:
			name, text := nameOf(record.Change), short(record.Change).String()
			switch before := last[name]; {
			case text == before: // what it is about did not change
			case name.table == "orders":
				m.states = append(m.states, i)
			default:
				m.rows = append(m.rows, i)
			}
			last[name] = text
		case sim.EventDrop, sim.EventReset, sim.EventCrash, sim.EventPanic:
			if record.Message != nil && onlyAsks[record.Message.Kind] {
				m.answers = append(m.answers, i)
				continue
			}
			m.losses = append(m.losses, i)
		case sim.EventAnswer, sim.EventStall, sim.EventFault:
			m.answers = append(m.answers, i)
		}
	}
	return m
}

// onlyAsks are the kinds of requests whose loss changes nothing.
var onlyAsks = map[string]bool{"read": true, "list": true, "query": true, "query-refund": true}

type rowName struct {
	database, table string
	id              int64
}

func nameOf(c *sim.Change) rowName { return rowName{c.Database, c.Table, c.RowID} }

// orderOf returns the order that a record matters to, "" if it matters to none. The log of
// an order tells what its row does.
func (r *Result) orderOf(record *sim.Record) string {
	orders := &r.Case.Workload
	switch c := record.Change; {
	case c != nil && (told[c.Table] == nil || c.Table == "order_status_log"):
		return ""
	case c != nil:
		return orders.orderIn(cmp.Or(c.Text("order_no"), c.Text("message_key"), c.Text("subject")))
	case record.Message != nil:
		return orders.orderIn(record.Message.Key)
	case record.Event == sim.EventCrash:
		return orders.orderNamed(record.Op)
	}
	return orders.orderNamed(record.Task)
}

// firstOf returns the failure of the same order that became wrong before f and before all
// others: it may be the cause. ok says whether there is one.
func firstOf(r *Result, f checker.Failure) (first checker.Failure, ok bool) {
	for _, other := range r.Failures {
		if other.Order == f.Order && f.Order != "" && mayHaveLedTo(r, other, f) && (!ok || other.Seq < first.Seq) {
			first, ok = other, true
		}
	}
	return first, ok
}

// mayHaveLedTo says whether one failure was there before another. What a file expects leads to
// nothing; and what shows at the end of a run is placed by its rows, so that it leads to nothing
// that was seen at once, and what was seen at once in the same commit may have led to it.
func mayHaveLedTo(r *Result, one, other checker.Failure) bool {
	switch {
	case one.Property == checker.Expected || one.AtEnd && !other.AtEnd:
		return false
	case other.AtEnd && !one.AtEnd:
		return r.Trace.Records[one.Seq-1].At <= r.Trace.Records[other.Seq-1].At
	}
	return one.Seq < other.Seq
}
