package checker

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// span is when something was asked and answered. Times are positions in the trace,
// which is one sequence for the whole world.
type span struct {
	from, to  int
	known     bool // it is known to have happened by then
	delivered bool // it reached an instance, so it may have happened
}

func (s *span) when() *span { return s }

const never = math.MaxInt

// asked is a call, as its client saw it.
type asked interface {
	fmt.Stringer
	when() *span
	about() (order, role string)
}

// history is what was asked about one thing, and the rules by which it is answered.
type history struct {
	calls      []asked
	operations func(until int) []porcupine.Operation
	model      func(budget *int) porcupine.Model
}

// stepBudget bounds the search for one history, in steps of its model.
const stepBudget = 1_000_000

// check says whether the calls up to a position of the trace fit one order.
func (e *Evidence) check(h *history, until int) porcupine.CheckResult {
	budget := e.budget
	if porcupine.CheckOperations(h.model(&budget), h.operations(until)) {
		return porcupine.Ok
	}
	if budget < 0 {
		return porcupine.Unknown
	}
	return porcupine.Illegal
}

// judgeHistory fails if the answers fit no order of events.
func (e *Evidence) judgeHistory(h *history) {
	switch e.check(h, never-1) {
	case porcupine.Unknown:
		e.undecided = append(e.undecided, e.current.Name)
	case porcupine.Illegal:
		e.failHistory(h)
	}
}

// failHistory finds the first answer that fits no order of events, and tells it.
func (e *Evidence) failHistory(h *history) {
	answered := slices.DeleteFunc(slices.Clone(h.calls), func(c asked) bool { return !c.when().known })
	slices.SortFunc(answered, func(a, b asked) int { return a.when().to - b.when().to })
	// What fits no order never will, so the first can be searched by halves. If none
	// before it is found, it is the last.
	c := answered[sort.Search(len(answered)-1, func(i int) bool { return e.check(h, answered[i].when().to) == porcupine.Illegal })]
	order, role := c.about()
	until := c.when().to
	r := &e.trace.Records[until-1]
	e.fail(Failure{Order: order, Stake: e.price(order), Seq: until, Roles: role, Message: fmt.Sprintf(
		"order %s of %s: at %s %q fits no order of events; before it: %s",
		order, e.price(order), e.trace.Clock(r.At), c, e.before(h.calls, c))})
	if !e.touched(order) {
		budget := e.budget
		e.misfits = append(e.misfits, Misfit{e.current.Name, order, h.model(&budget), h.operations(until)})
	}
}

// before tells the last few operations that began before c has ended.
func (e *Evidence) before(calls []asked, c asked) string {
	var told []string
	for _, other := range calls {
		if at := other.when(); other != c && at.from < c.when().to && at.delivered {
			told = append(told, fmt.Sprintf("%s %s", e.trace.Clock(e.trace.Records[at.from-1].At), other))
		}
	}
	if len(told) > 6 {
		told = append([]string{"..."}, told[len(told)-6:]...)
	}
	if len(told) == 0 {
		return "nothing"
	}
	return strings.Join(told, "; ")
}

// Undecided returns the properties whose check ran out of its budget, once for each
// history.
func (e *Evidence) Undecided() []string { return e.undecided }

// Misfit is a history that fits no order of events, up to its first wrong answer.
type Misfit struct {
	Property, Order string

	model      porcupine.Model
	operations []porcupine.Operation
}

// Misfits returns the histories that [Evidence.Finish] has found to fit no order.
func (e *Evidence) Misfits() []Misfit { return e.misfits }

// WriteHTML writes the history as a page that shows how far its calls fit.
func (m Misfit) WriteHTML(w io.Writer) error {
	_, info := porcupine.CheckOperationsVerbose(m.model, m.operations, 0)
	return porcupine.Visualize(m.model, info, w)
}
