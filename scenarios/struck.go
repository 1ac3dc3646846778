package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
)

// lightest is the weight from which on a fault is more than a delay as any network has it.
const lightest = time.Millisecond

// weigh returns the weight of a fault. The loss of what only asks changes nothing.
func weigh(p faults.Perturbation) time.Duration {
	if kind, _, isMessage := strings.Cut(p.At, "("); isMessage && onlyAsks[kind] {
		return 0
	}
	return p.Weight()
}

// faultsThatMatter returns perturbations by the time that a failure showed, at most so many:
// those that struck its order or what is shown of the trace, those at what is shown first,
// then the heaviest and the rarest; and the last crashes. It also tells how many more there are.
func faultsThatMatter(r *Result, f checker.Failure, shown []int, most int) (lines []string) {
	order, at := r.Case.Workload.orderIn(f.Order), namesShown(r, shown)
	wrong := r.Trace.Records[f.Seq-1].At
	var struck, crashes []int
	for i, p := range r.Fired {
		about := r.Case.Workload.orderNamed(p.At)
		switch {
		case at[placeStruck(p.At)] && (f.AtEnd || p.When <= wrong), order != "" && about == order && (f.AtEnd || p.When <= wrong):
			struck = append(struck, i)
		case about == "" && p.Kind == faults.Crash && p.When <= wrong:
			crashes = append(crashes, i)
		}
	}
	slices.SortStableFunc(struck, r.tellsMore(at, wrong))
	chosen := struck[:min(most, len(struck))]
	chosen = slices.Concat(chosen, crashes[max(0, len(crashes)-(most-len(chosen))):])
	slices.Sort(chosen)
	for _, i := range chosen {
		lines = append(lines, r.Trace.Clock(r.Fired[i].When)+"  "+r.Fired[i].String())
	}
	if left := len(struck) + len(crashes) - len(chosen); left > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, lighter or further away", left))
	}
	return lines
}

// tellsMore returns a comparison that puts the fault first that tells more: one that is not
// light, one at what is shown, the heavier one, one of a rarer kind, the one that is nearer to
// when something became wrong.
func (r *Result) tellsMore(shown map[string]bool, wrong time.Duration) func(a, b int) int {
	times := timesFired(r.Fired)
	return func(a, b int) int {
		p, q := &r.Fired[a], &r.Fired[b]
		heavy, heavier := weigh(p.Perturbation), weigh(q.Perturbation)
		return cmp.Or(
			trueFirst(heavy >= lightest, heavier >= lightest),
			trueFirst(shown[placeStruck(p.At)], shown[placeStruck(q.At)]),
			cmp.Compare(heavier, heavy),
			cmp.Compare(times[p.Kind], times[q.Kind]),
			cmp.Compare((p.When-wrong).Abs(), (q.When-wrong).Abs()),
			cmp.Compare(b, a))
	}
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// namesShown are the tasks and the exchanges of records.
func namesShown(r *Result, places []int) map[string]bool {
	names := map[string]bool{}
	for _, i := range places {
		record := &r.Trace.Records[i]
		names[record.Node+"/"+record.Task] = record.Task != ""
		if record.Message != nil {
			names[record.Message.Exchange] = true
		}
	}
	return names
}

// placeStruck returns the task or the exchange that a fault's anchor is in.
func placeStruck(at string) string {
	if strings.HasSuffix(at, ":before") || strings.HasSuffix(at, ":after") {
		return at[:max(0, strings.LastIndexByte(at, '/'))]
	}
	return strings.TrimSuffix(at, ":answer")
}

const (
	// otherFaults is how many faults are told that are about no order which came to harm.
	otherFaults = 10
	// withstood is how many are told of a run that passed.
	withstood = 20
)

// ToldFaults returns what to tell of the faults of a run: the heaviest, if nothing broke; else
// those about the orders that came to harm, until it showed, and the last few others before the
// last thing became wrong, none as light as any network's delays. left is how many are not
// told.
func (r *Result) ToldFaults() (told []faults.Firing, left int) {
	if len(r.Failures) == 0 {
		told = heaviest(r.Fired, withstood)
		return told, len(r.Fired) - len(told)
	}
	harmed := map[string]bool{}
	var wrong, showed time.Duration
	for _, f := range r.Failures {
		harmed[r.Case.Workload.orderIn(f.Order)] = true
		wrong = max(wrong, r.Trace.Records[f.Seq-1].At)
		if showed = max(showed, wrong); f.AtEnd {
			showed = r.Trace.Records[len(r.Trace.Records)-1].At
		}
	}
	var others []faults.Firing
	for _, p := range r.Fired {
		switch order := r.Case.Workload.orderNamed(p.At); {
		case weigh(p.Perturbation) < lightest:
		case order != "" && harmed[order] && p.When <= showed:
			told = append(told, p)
		case p.When <= wrong:
			others = append(others, p)
		}
	}
	slices.SortStableFunc(others, byTime)
	told = append(told, others[max(0, len(others)-otherFaults):]...)
	slices.SortStableFunc(told, byTime)
	return told, len(r.Fired) - len(told)
}

// heaviest returns the heaviest of some faults, those of the rarest kinds first; by time.
func heaviest(fired []faults.Firing, most int) []faults.Firing {
	times := timesFired(fired)
	fired = slices.SortedStableFunc(slices.Values(fired), func(a, b faults.Firing) int {
		return cmp.Or(cmp.Compare(weigh(b.Perturbation), weigh(a.Perturbation)), cmp.Compare(times[a.Kind], times[b.Kind]))
	})
	fired = fired[:min(most, len(fired))]
	slices.SortStableFunc(fired, byTime)
	return fired
}

// timesFired counts faults by kind.
func timesFired(fired []faults.Firing) map[faults.Kind]int {
	times := map[faults.Kind]int{}
	for _, p := range fired {
		times[p.Kind]++
	}
	return times
}

func byTime(a, b faults.Firing) int { return cmp.Compare(a.When, b.When) }
