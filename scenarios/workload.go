package scenarios

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Verb is what a buyer does.
type Verb string

const (
	Creates Verb = "creates" // POST /orders, repeated until it is answered
	Pays    Verb = "pays"    // pays the order's trade at the channel, likewise
	Reads   Verb = "reads"   // GET /orders/{no}, once
)

// Operation is one thing a buyer does.
type Operation struct {
	At    time.Duration // true time since the world's start
	Verb  Verb
	Order string
}

// Workload is what the buyers do.
type Workload struct {
	Amounts    map[string]int64 // in cents, by order number
	Operations []Operation      // in the order of time
}

// payWindow is how long an order waits for its money, if its case says nothing else.
const payWindow = 15 * time.Minute

// drawWorkload draws what happens to a number of orders. What decides a race is
// when the payment falls: soon, around the order's deadline, or anywhere.
func drawWorkload(seed uint64, orders int) Workload {
	w := Workload{Amounts: map[string]int64{}}
	for i := range orders {
		order := orderName(i)
		r := sim.Rand(seed, "workload", order)
		w.Amounts[order] = 100 + r.Int64N(99_900)
		w.drawOrder(order, r)
	}
	slices.SortStableFunc(w.Operations, func(a, b Operation) int { return cmp.Compare(a.At, b.At) })
	return w
}

func (w *Workload) drawOrder(order string, r *rand.Rand) {
	created := within(r, 0, 2*time.Minute)
	w.add(created, Creates, order)
	if r.IntN(3) == 0 { // a second click, or a client that did not wait for the answer
		w.add(created+within(r, 0, 3*time.Second), Creates, order)
	}
	paid := created + payWindow
	switch r.IntN(6) {
	case 0: // never pays
	case 1, 2:
		paid += within(r, -3*time.Second, 15*time.Second)
		w.add(paid, Pays, order)
	case 3:
		paid = created + within(r, 0, payWindow+time.Minute)
		w.add(paid, Pays, order)
	default:
		paid = created + within(r, 200*time.Millisecond, time.Minute)
		w.add(paid, Pays, order)
		if r.IntN(4) == 0 {
			w.add(paid+within(r, 0, time.Second), Pays, order)
		}
	}
	for range 1 + r.IntN(3) {
		w.add(paid+within(r, -time.Second, 10*time.Second), Reads, order)
	}
	w.add(created+payWindow+within(r, 0, time.Minute), Reads, order)
}

func (w *Workload) add(at time.Duration, verb Verb, order string) {
	w.Operations = append(w.Operations, Operation{max(at, 0), verb, order})
}

func within(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from))).Round(time.Microsecond)
}

// orderName returns A, B, ... Z, A1, B1, ...
func orderName(i int) string {
	letter := string(rune('A' + i%26))
	if i < 26 {
		return letter
	}
	return letter + strconv.Itoa(i/26)
}
