package scenarios

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// OrderStates are the states in which a fault may meet an order; "none" is before it is
// committed.
var OrderStates = []string{"none", "CREATED", "PAID", "CLOSED", "REFUNDING", "REFUNDED"}

// Coverage is where the faults about orders have struck, and how much of what may
// become of an order has been seen. What is about no order, such as a clock or a
// partition, is not in it.
//
// The shape of an order is what became of it, without times, names and amounts: the
// changes of its status with their causes, what its charges met and how they were heard
// of, the states of its refunds, and the alerts about it, all sorted. By Good and
// Turing, the next order's shape is a new one as likely as an order so far has a shape
// that no other has.
type Coverage struct {
	// Grid counts strikes by the state of the order and the kind of the fault.
	Grid map[string]map[faults.Kind]int `json:"grid"`
	// Crashes counts, for each state, how often a process died at a point of a statement
	// about the order: each that came up, also those at which none did.
	Crashes map[string]map[string]int `json:"crashes"`
	Seeds   int                       `json:"seeds"`
	Orders  int                       `json:"orders"`
	Shapes  int                       `json:"shapes"`
	// Once is how many shapes only one order has.
	Once int `json:"once"`
	// NextOrder and NextSeed are how likely each is to show a shape not seen before.
	NextOrder float64 `json:"next_order"`
	NextSeed  float64 `json:"next_seed"`

	mu     sync.Mutex
	shapes map[string]int
}

func newCoverage(profile faults.Profile) *Coverage {
	c := &Coverage{Grid: map[string]map[faults.Kind]int{}, Crashes: map[string]map[string]int{}, shapes: map[string]int{}}
	for _, state := range OrderStates {
		c.Grid[state], c.Crashes[state] = map[faults.Kind]int{}, map[string]int{}
		for _, kind := range profile.Kinds() {
			if kind.StrikesOrders() {
				c.Grid[state][kind] = 0
			}
		}
	}
	return c
}

// add takes a run in, from any goroutine. All that it does is to count, so the order of
// the runs does not matter.
func (c *Coverage) add(r *Result) {
	w := newWalk(r)
	w.run()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Seeds++
	for s, n := range w.strikes {
		c.Grid[s.state][s.kind] += n
	}
	for p, n := range w.crashes {
		c.Crashes[p.state][p.at] += n
	}
	for _, order := range r.Case.Workload.names() {
		c.Orders++
		c.shapes[w.shape(order)]++
	}
}

// estimate fills in what follows from the counts.
func (c *Coverage) estimate() {
	c.Shapes = len(c.shapes)
	for _, n := range c.shapes {
		if n == 1 {
			c.Once++
		}
	}
	if c.Orders == 0 {
		return
	}
	c.NextOrder = float64(c.Once) / float64(c.Orders)
	c.NextSeed = 1 - math.Pow(1-c.NextOrder, float64(c.Orders)/float64(c.Seeds))
}

// walk goes through a run's trace, and knows what each order is like on the way.
type walk struct {
	r       *Result
	fired   []faults.Firing   // still to come
	states  map[string]string // of orders
	refunds map[string]string // states of refunds, by number
	stories map[string][]string
	strikes map[strike]int
	crashes map[point]int
	ended   string // the last statement, until the rows that it has changed are known
	order   string // that it was about
}

type strike struct {
	state string
	kind  faults.Kind
}

// point is a place where a process may die: before or after a statement.
type point struct{ state, at string }

func newWalk(r *Result) *walk {
	w := &walk{
		r: r, fired: slices.Clone(r.Fired), states: map[string]string{}, refunds: map[string]string{}, stories: map[string][]string{},
		strikes: map[strike]int{}, crashes: map[point]int{},
	}
	slices.SortStableFunc(w.fired, func(a, b faults.Firing) int { return cmp.Compare(a.When, b.When) })
	return w
}

func (w *walk) run() {
	for i := range w.r.Trace.Records {
		record := &w.r.Trace.Records[i]
		w.strikeUntil(record.At)
		if record.Change != nil {
			w.row(record)
			continue
		}
		w.endStatement()
		if record.Event == sim.EventSQL {
			w.beginStatement(record)
		}
	}
	w.endStatement()
	w.strikeUntil(math.MaxInt64)
}

// strikeUntil takes in what was done to orders before a time: what is done at the
// instant of a commit meets what the commit has made.
func (w *walk) strikeUntil(at time.Duration) {
	for ; len(w.fired) > 0 && w.fired[0].When < at; w.fired = w.fired[1:] {
		f := w.fired[0]
		order := w.orders().orderNamed(f.At)
		if order == "" {
			continue
		}
		w.strikes[strike{w.state(order), f.Kind}]++
		if at := pointOf(f.At); f.Kind.Kills() && isStatement(at) {
			w.crashes[point{w.state(order), at}]++
		}
	}
}

func (w *walk) beginStatement(r *sim.Record) {
	w.order = cmp.Or(w.orders().orderNamed(r.Op), w.orders().orderNamed(r.Task))
	w.ended = plain(r.Op)
	if w.order != "" {
		w.crashes[point{w.state(w.order), w.ended + sim.Before.String()}] += 0
	}
}

// endStatement notes the point after a statement, in the state to which it has led.
func (w *walk) endStatement() {
	if w.order != "" {
		w.crashes[point{w.state(w.order), w.ended + sim.After.String()}] += 0
		w.order = ""
	}
}

func (w *walk) row(r *sim.Record) {
	row, order := r.Change, r.Change.Text("order_no")
	switch row.Table {
	case "orders":
		w.states[order] = row.Text("status")
	case "order_status_log":
		w.tell(order, row.Text("from_status")+">"+row.Text("to_status")+" "+row.Text("cause"))
	case "payment_records":
		how, _, _ := strings.Cut(r.Task, "(")
		how, _, _ = strings.Cut(how, "@")
		w.tell(order, row.Text("disposition")+" "+how)
	case "refunds":
		if number := row.Text("refund_no"); row.Database == "shop" && w.refunds[number] != row.Text("state") {
			w.refunds[number] = row.Text("state")
			w.tell(order, row.Text("cause")+" refund "+row.Text("state"))
		}
	case "alerts":
		w.tell(w.orders().orderIn(row.Text("subject")), row.Text("kind"))
	}
}

func (w *walk) orders() *Workload { return &w.r.Case.Workload }

func (w *walk) tell(order, what string) { w.stories[order] = append(w.stories[order], what) }

func (w *walk) shape(order string) string {
	story := w.stories[order]
	slices.Sort(story)
	return strings.Join(story, ", ")
}

func (w *walk) state(order string) string { return cmp.Or(w.states[order], OrderStates[0]) }

// pointOf returns a step's operation without key and count, with its phase.
func pointOf(step string) string {
	_, rest, _ := strings.Cut(step, "/")
	_, op, _ := strings.Cut(rest, "/")
	i := strings.LastIndexByte(op, ':')
	if i < 0 {
		return ""
	}
	return plain(op[:i]) + op[i:]
}

func plain(op string) string {
	op, _, _ = strings.Cut(op, "(")
	op, _, _ = strings.Cut(op, "#")
	return op
}

// isStatement tells a statement from the kernel's own operations, which have no capital.
func isStatement(at string) bool { return at != "" && at[0] >= 'A' && at[0] <= 'Z' }
