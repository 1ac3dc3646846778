package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// Verb is what a buyer does.
type Verb string

const (
	Creates  Verb = "creates"  // POST /orders, repeated until it is answered
	Attempts Verb = "attempts" // opens a further attempt, on the channel named
	Pays     Verb = "pays"     // pays a trade of the order at the channel named, likewise
	Leaves   Verb = "leaves"   // leaves the channel's page, which closes the trade, likewise
	Cancels  Verb = "cancels"  // cancels the order
	Refunds  Verb = "refunds"  // asks for a refund of some cents
	Reads    Verb = "reads"    // GET /orders/{no} or another view, once
	Forges   Verb = "forges"   // a stranger posts a notice that is no channel's
)

// drawn are the verbs of the workloads that seeds draw, as far as they may succeed.
var drawn = []Verb{Creates, Attempts, Pays, Leaves, Cancels, Refunds, Reads}

// Operation is one thing that a buyer or a stranger does.
type Operation struct {
	At      time.Duration // true time since the world's start
	Verb    Verb
	Order   string
	Channel string // of Attempts, Pays and Leaves
	Attempt int    // of Pays and Leaves: which attempt's trade
	Cents   int64  // of Refunds
	Other   Other  // of Creates
	// Key is the idempotency key, where it is shared with other operations. A refund
	// under one leaves its number to the shop.
	Key string
	// Number is the number of a refund, where it is shared with other operations. Others
	// are numbered as they come.
	Number string
	// Caller says who sends the key, "" for nobody by name: different callers' keys are
	// different.
	Caller  string
	Forgery Forgery // of Forges
	View    View    // of Reads
	On      string  // the shop that is asked; "" for any
}

// View is what is read; "" is the order itself.
type View string

const (
	LogView     View = "log"     // every change of its status
	RefundsView View = "refunds" // its refunds
	ListView    View = "list"    // all orders, page by page
	AlertsView  View = "alerts"  // what a person must look at
	MetricsView View = "metrics" // numbers
	HealthView  View = "health"  // whether the shop can write
)

var views = []View{LogView, RefundsView, ListView, AlertsView, MetricsView, HealthView}

// Other is what a create asks for that is not the order's own.
type Other struct {
	Order           // where it is zero, it is the order's own
	Currency string // "" for the order's own
}

// Order is what a buyer wants.
type Order struct {
	Cents    int64
	Channel  string
	SKU      string // "" for an order without stock
	Quantity int64
}

// Workload is what the buyers do.
type Workload struct {
	Orders     map[string]*Order // by number
	Operations []Operation       // in the order of time
}

// channels returns the channels that there are for the workload: those that it names,
// some more, and at least two.
func (w *Workload) channels(more ...string) []string {
	named := map[string]bool{}
	for _, name := range more {
		named[name] = true
	}
	for _, order := range w.Orders { // order-free: a set
		named[order.Channel] = true
	}
	for _, op := range w.Operations {
		named[op.Channel], named[op.Other.Channel] = true, true
	}
	used := func() []string {
		return slices.DeleteFunc(slices.Clone(channelNames), func(name string) bool { return !named[name] })
	}
	for _, name := range usualChannels {
		if len(used()) < len(usualChannels) {
			named[name] = true
		}
	}
	return used()
}

// names returns the orders' numbers, in a fixed order.
func (w *Workload) names() []string { return slices.Sorted(maps.Keys(w.Orders)) }

// payWindow is how long an order waits for its money, if its case says nothing else.
const payWindow = 15 * time.Minute

// usualStock is what the stock service begins with: plenty, enough for most, and
// less than is wanted.
var usualStock = map[string]int64{"S1": 1000, "S2": 9, "S3": 4}

// end is when the last operation begins.
func (w *Workload) end() time.Duration {
	if len(w.Operations) == 0 {
		return 0
	}
	return w.Operations[len(w.Operations)-1].At
}

// drawWorkload draws what happens to a number of orders. What decides a race is
// when the payment falls: soon, around the order's deadline, or anywhere.
func drawWorkload(seed uint64, orders int) Workload {
	w := Workload{Orders: map[string]*Order{}}
	channels := drawChannels(seed)
	opening := drawOpening(sim.Rand(seed, "opening", ""))
	rush := drawRush(sim.Rand(seed, "rush", ""), opening)
	for i := range orders {
		name := orderName(i)
		r := sim.Rand(seed, "workload", name)
		order := &Order{Cents: 100 + r.Int64N(99_900), Channel: channels[r.IntN(len(channels))]}
		if r.IntN(3) > 0 {
			order.SKU, order.Quantity = drawSKU(r), drawQuantity(r)
		}
		created := within(r, 0, opening)
		if r.IntN(3) == 0 {
			created, order.SKU, order.Quantity = rush.at+soon(r, 10*time.Millisecond), rush.sku, drawQuantity(r)
		}
		w.Orders[name] = order
		w.drawOrder(seed, name, order, other(channels, order.Channel), created, r)
	}
	w.drawOneKeyForTwo(sim.Rand(seed, "one-key", ""))
	w.drawOneNumberForTwo(sim.Rand(seed, "one-number", ""))
	slices.SortStableFunc(w.Operations, func(a, b Operation) int { return cmp.Compare(a.At, b.At) })
	return w
}

// drawChannels draws the two channels of a run.
func drawChannels(seed uint64) []string {
	pairs := [][]string{usualChannels, usualChannels, {"wechat", "stripe"}, {"alipay", "stripe"}}
	return pairs[sim.Draw(seed, "channels", 0)%uint64(len(pairs))]
}

// drawOpening draws how long new orders come in: what comes at once is due at once.
func drawOpening(r *rand.Rand) time.Duration {
	return faults.Range{Min: 10 * time.Millisecond, Max: 4 * time.Minute}.Draw(r.Uint64())
}

// rush is when several want the last units of one SKU at once.
type rush struct {
	at  time.Duration
	sku string
}

func drawRush(r *rand.Rand, opening time.Duration) rush {
	return rush{within(r, 0, opening), drawSKU(r)}
}

func drawSKU(r *rand.Rand) string { return fmt.Sprint("S", 1+r.IntN(len(usualStock))) }

// drawQuantity draws how many units an order is for.
func drawQuantity(r *rand.Rand) int64 { return 1 + r.Int64N(3) }

// drawOrder draws what happens to an order; second is the channel of a second attempt.
func (w *Workload) drawOrder(seed uint64, name string, order *Order, second string, created time.Duration, r *rand.Rand) {
	first := len(w.Operations)
	w.add(Operation{At: created, Verb: Creates, Order: name})
	if r.IntN(3) == 0 { // a second click, or a client that did not wait for the answer
		w.add(Operation{At: created + soon(r, 3*time.Second), Verb: Creates, Order: name})
	}
	paid := w.drawPayment(name, order, second, created, r)
	others := w.Operations[first:]
	if r.IntN(4) == 0 { // races one of these
		races := others[r.IntN(len(others))]
		w.add(Operation{At: races.At + around(r, 2*time.Second), Verb: Cancels, Order: name})
	}
	w.drawRefunds(name, order, paid, r)
	for range 1 + r.IntN(2) {
		w.add(Operation{At: paid + around(r, 10*time.Second), Verb: Reads, Order: name})
	}
	w.add(Operation{At: created + payWindow + soon(r, time.Minute), Verb: Reads, Order: name})
	w.drawViews(name, paid, sim.Rand(seed, "views", name))
	w.drawSecondThoughts(name, order, second, created, sim.Rand(seed, "second thoughts", name))
	w.drawLater(name, paid, sim.Rand(seed, "later", name))
	w.drawCareless(name, order, second, created, paid, sim.Rand(seed, "careless", name))
	w.drawForgeries(name, created, sim.Rand(seed, "forgeries", name))
	w.drawSecondTry(name, order, created, sim.Rand(seed, "second try", name))
	w.drawRefundAgain(name, sim.Rand(seed, "refund again", name))
	w.drawMisdirected(name, created, sim.Rand(seed, "misdirected", name))
	w.drawLateLooks(name, paid, sim.Rand(seed, "late looks", name))
}

// drawPayment draws when the order is paid, if at all, and sometimes a second
// payment on another channel. It returns the time of the first.
func (w *Workload) drawPayment(name string, order *Order, otherChannel string, created time.Duration, r *rand.Rand) time.Duration {
	paid := created + within(r, 200*time.Millisecond, time.Minute)
	pay := Operation{Verb: Pays, Order: name, Channel: order.Channel, Attempt: 1}
	switch r.IntN(12) {
	case 0: // never pays
		return created + payWindow
	case 1, 2: // races the closing
		paid = created + payWindow + around(r, time.Second)
	case 3, 4:
		paid = created + payWindow + around(r, 15*time.Second)
	case 5, 6:
		paid = created + within(r, 0, payWindow+time.Minute)
	}
	pay.At = paid
	w.add(pay)
	if r.IntN(5) == 0 {
		pay.At += soon(r, time.Second)
		w.add(pay)
	}
	if r.IntN(3) == 0 { // on a second channel, mostly opened while the first payment is still to come
		opened := created + within(r, 0, max(1, paid-created))
		if r.IntN(4) == 0 {
			opened = paid + around(r, 10*time.Second)
		}
		w.add(Operation{At: opened, Verb: Attempts, Order: name, Channel: otherChannel})
		if r.IntN(2) == 0 { // and back to the first, whose attempt is open still
			w.add(Operation{At: opened + soon(r, time.Minute), Verb: Attempts, Order: name, Channel: order.Channel})
		}
		w.add(Operation{At: paid + around(r, 5*time.Second), Verb: Pays, Order: name, Channel: otherChannel, Attempt: 2})
	}
	return paid
}

// drawRefunds draws up to three refunds, of parts beside which others may fit or not.
func (w *Workload) drawRefunds(name string, order *Order, paid time.Duration, r *rand.Rand) {
	asked := paid
	for i := range max(0, r.IntN(6)-2) {
		cents := order.Cents
		if r.IntN(3) > 0 {
			cents = 1 + r.Int64N(order.Cents)
		}
		if i > 0 && r.IntN(3) > 0 { // beside the one before, when both see the same money left
			asked += soon(r, 10*time.Millisecond)
		} else {
			asked = paid + within(r, 0, 4*time.Minute)
		}
		w.add(Operation{At: asked, Verb: Refunds, Order: name, Cents: cents})
	}
}

// drawSecondThoughts draws, for one order in eight, a buyer who pays and has all of it
// back at once, and has the other channel's code still open, which he pays then.
func (w *Workload) drawSecondThoughts(name string, order *Order, second string, created time.Duration, r *rand.Rand) {
	if r.IntN(8) > 0 {
		return
	}
	pays := Operation{Verb: Pays, Order: name, Channel: order.Channel, Attempt: 1, At: created + within(r, time.Second, 10*time.Second)}
	refunds := Operation{Verb: Refunds, Order: name, Cents: order.Cents, At: pays.At + soon(r, 30*time.Second)}
	w.add(Operation{Verb: Attempts, Order: name, Channel: second, At: created + within(r, 0, 5*time.Second)})
	w.add(pays)
	w.add(refunds)
	pays.Channel, pays.Attempt, pays.At = second, 2, refunds.At+soon(r, 4*time.Minute)
	w.add(pays)
}

// drawSecondTry draws, for one order in four, a buyer who leaves the channel's page, comes
// back, and pays there on a further attempt. Which number that one has depends on how many
// there are besides.
func (w *Workload) drawSecondTry(name string, order *Order, created time.Duration, r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	op := Operation{Verb: Leaves, Order: name, Channel: order.Channel, Attempt: 1, At: created + within(r, 0, 10*time.Second)}
	w.add(op)
	op.Verb, op.Attempt = Attempts, 0
	for range 2 { // the first may come before the shop has heard that the trade is closed
		op.At += within(r, 0, 3*time.Minute)
		w.add(op)
	}
	op.Verb = Pays
	for op.Attempt = 2; op.Attempt <= 3; op.Attempt++ {
		op.At += soon(r, time.Minute)
		w.add(op)
	}
}

// leaves says whether the buyer of an order leaves a channel's page.
func (w *Workload) leaves(order string) bool {
	return slices.ContainsFunc(w.Operations, func(op Operation) bool { return op.Verb == Leaves && op.Order == order })
}

// drawViews draws, for every other order, somebody who looks at more than the order.
func (w *Workload) drawViews(name string, paid time.Duration, r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	at := paid + around(r, time.Minute)
	if r.IntN(4) == 0 {
		at = paid + within(r, 0, 20*time.Minute)
	}
	w.add(Operation{At: at, Verb: Reads, Order: name, View: views[r.IntN(len(views))]})
}

// drawLater draws, for one order in eight, an old client that comes back hours later: it
// repeats what it has asked for under its key, and reads.
func (w *Workload) drawLater(name string, paid time.Duration, r *rand.Rand) {
	if r.IntN(8) > 0 {
		return
	}
	key := name + "-old"
	cents := 1 + r.Int64N(99)
	op := []Operation{
		{Verb: Creates, Order: name, Key: key}, {Verb: Refunds, Order: name, Cents: cents, Key: key}, {Verb: Cancels, Order: name, Key: key},
	}[r.IntN(3)]
	op.At = paid + soon(r, time.Minute)
	w.add(op)
	op.At += within(r, time.Hour, 8*time.Hour)
	w.add(op)
	w.add(Operation{Verb: Reads, Order: name, At: op.At + soon(r, time.Hour)})
}

// drawLateLooks draws, for every other order, somebody who looks at its refunds when all is
// over, minutes to hours later, and perhaps at its log: what has failed belongs to it too.
func (w *Workload) drawLateLooks(name string, paid time.Duration, r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	op := Operation{Verb: Reads, Order: name, View: RefundsView, At: paid + faults.Range{Min: time.Minute, Max: 6 * time.Hour}.Draw(r.Uint64())}
	w.add(op)
	if r.IntN(2) == 0 {
		op.View = LogView
		w.add(op)
	}
}

func (w *Workload) add(op Operation) {
	op.At = max(op.At, 0)
	w.Operations = append(w.Operations, op)
}

// within draws a duration, evenly.
func within(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from))).Round(time.Microsecond)
}

// soon draws a duration of up to longest, evenly over its orders of magnitude: what two
// operations must not come between may take a microsecond or a minute.
func soon(r *rand.Rand, longest time.Duration) time.Duration {
	return faults.Range{Min: 10 * time.Microsecond, Max: longest}.Draw(r.Uint64())
}

// around draws a duration of up to most, likewise, or its opposite.
func around(r *rand.Rand, most time.Duration) time.Duration {
	if r.IntN(2) == 0 {
		return -soon(r, most)
	}
	return soon(r, most)
}

// other returns the name that comes after this one, the first if this is none of them.
func other(names []string, name string) string {
	i := slices.Index(names, name)
	return names[(i+1)%len(names)]
}

// orderName returns A, B, ... Z, A1, B1, ...
func orderName(i int) string {
	letter := string(rune('A' + i%26))
	if i < 26 {
		return letter
	}
	return letter + strconv.Itoa(i/26)
}
