package scenarios

import (
	"fmt"
	"strings"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// explainAll tells each failure of a run.
func explainAll(r *Result, profile faults.Profile) []SeedFailure {
	if r.Verdict == Unknown {
		message := "the linearizability check ran out of its budget"
		return []SeedFailure{{Seed: r.Seed, Verdict: Unknown, Property: "linearizable-orders", Fingerprint: string(Unknown), Message: message,
			Repro: replayLine(r.Seed, profile, r.Journal), Text: fmt.Sprintf("seed %d: %s\n\n%s", r.Seed, message, reproduceText(r, profile))}}
	}
	var told []SeedFailure
	for _, f := range r.Failures {
		told = append(told, SeedFailure{
			Seed: r.Seed, Verdict: Broken, Property: f.Property, Message: f.Error(), Fingerprint: f.Fingerprint(),
			Repro: replayLine(r.Seed, profile, r.Journal), Text: Explain(r, f, profile),
		})
	}
	return told
}

// Explain tells a failure to somebody who has ten minutes: what broke, what it
// costs, what happened just before, what had gone wrong by then, and how to see it
// again.
func Explain(r *Result, f checker.Failure, profile faults.Profile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s is broken: %s\n\n  %s\n  at stake: %s\n", r.Seed, f.Property, f.Sentence, f.Message, f.Stake)
	fmt.Fprintf(&b, "\n  what happened (%s):\n", stepOf(r.Trace, f))
	for _, line := range lastLines(r.Trace, f, 6) {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	if before := firedBefore(r, f, 6); len(before) > 0 {
		fmt.Fprintf(&b, "\n  what had gone wrong by then:\n")
		for _, line := range before {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	fmt.Fprintf(&b, "\n%s", reproduceText(r, profile))
	return b.String()
}

// stepOf names the record at which the property broke.
func stepOf(trace *sim.Trace, f checker.Failure) string {
	r := &trace.Records[f.Seq-1]
	if f.Seq == len(trace.Records) {
		return "found at the end of the run, " + trace.Clock(r.At)
	}
	return fmt.Sprintf("broken at record %d, %s/%s, %s", r.Seq, r.Node, r.Task, trace.Clock(r.At))
}

// lastLines returns the last records up to the failure that are about its order.
func lastLines(trace *sim.Trace, f checker.Failure, most int) []string {
	var lines []string
	for i := f.Seq - 1; i >= 0 && len(lines) < most; i-- {
		if r := &trace.Records[i]; i == f.Seq-1 || isAbout(r, f.Order) {
			lines = append([]string{tell(trace, r)}, lines...)
		}
	}
	return lines
}

// told are the columns that matter of the rows that matter.
var told = map[string][]string{
	"orders":           {"order_no", "status", "amount_cents", "close_reason"},
	"payment_records":  {"order_no", "channel_txn", "amount_cents", "disposition"},
	"charges":          {"order_no", "channel_txn", "amount_cents"},
	"order_status_log": {"order_no", "from_status", "to_status", "cause"},
}

// tell returns a record as one line that fits a terminal, more or less.
func tell(trace *sim.Trace, r *sim.Record) string {
	columns := told[tableOf(r)]
	if columns == nil || r.Change.Deleted() {
		return shorten(trace.Line(r), 180)
	}
	short := *r.Change
	short.Columns, short.Values = columns, nil
	for _, c := range columns {
		short.Values = append(short.Values, r.Change.Get(c))
	}
	line := *r
	line.Change = &short
	return trace.Line(&line)
}

func tableOf(r *sim.Record) string {
	if r.Change == nil {
		return ""
	}
	return r.Change.Table
}

// isAbout says whether a record matters to somebody who asks what became of an order.
func isAbout(r *sim.Record, order string) bool {
	switch {
	case order == "":
		return false
	case r.Change != nil:
		return r.Change.Text("order_no") == order && told[r.Change.Table] != nil && r.Change.Table != "order_status_log"
	case r.Event == sim.EventAnswer, r.Event == sim.EventDrop:
		return r.Message.Key == order
	case r.Event == sim.EventCrash:
		return strings.Contains(r.Op, "("+order+")")
	case r.Event == sim.EventStall:
		return strings.Contains(r.Task, "("+order+")")
	}
	return false
}

// firedBefore returns the last perturbations that struck the order, or crashed a
// process, before the failure.
func firedBefore(r *Result, f checker.Failure, most int) []string {
	var lines []string
	broken := r.Trace.Records[f.Seq-1].At
	for _, p := range r.Fired {
		if p.When <= broken && (p.Kind == faults.Crash || strings.Contains(p.At, "("+f.Order+")")) {
			lines = append(lines, r.Trace.Clock(p.When)+"  "+p.String())
		}
	}
	if len(lines) > most {
		lines = append([]string{"..."}, lines[len(lines)-most:]...)
	}
	return lines
}

func shorten(line string, most int) string {
	if len(line) <= most {
		return line
	}
	return line[:most] + "..."
}

// replayLine is the command that shows a seed again.
func replayLine(seed uint64, profile faults.Profile, journal sim.Journal) string {
	return fmt.Sprintf("go run ./cmd/tillstorm replay --seed %d --profile %s%s", seed, profile.Name, flagOf(" --journal ", journal))
}

// reproduceText ends every failure: the lines to paste.
func reproduceText(r *Result, profile faults.Profile) string {
	return fmt.Sprintf("  reproduce with either of:\n    %s\n    go test ./scenarios -run '^TestSweep$' -seed %d -profile %s%s\n",
		replayLine(r.Seed, profile, r.Journal), r.Seed, profile.Name, flagOf(" -journal ", r.Journal))
}

// flagOf returns the flag that chooses a journal, "" for the default.
func flagOf(flag string, journal sim.Journal) string {
	if journal == sim.MemDB {
		return ""
	}
	return flag + journal.String()
}
