package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tillstorm/tillstorm/sim"
)

// units are where the units of a SKU are.
type units struct{ available, frozen, sold int64 }

func (u units) sum() int64 { return u.available + u.frozen + u.sold }

func (u units) String() string {
	return fmt.Sprintf("available %d, frozen %d, sold %d", u.available, u.frozen, u.sold)
}

// shelf is a SKU: its units by the stock's own row, and by the journal.
type shelf struct {
	first, put   int64 // what a run begins with, and what was put in altogether
	row, journal units
	frozenFor    map[string]int64 // by number
	byHand       bool             // a person has changed its rows: see hands.go
	failed       bool             // what is wrong stays wrong with each further movement
}

// PutIn declares the stock that a run begins with; what comes in later is in the journal.
func (e *Evidence) PutIn(sku string, quantity int64) {
	s := e.shelf(sku)
	s.first += quantity
	s.put += quantity
	s.row.available += quantity
	s.journal.available += quantity
}

func (e *Evidence) shelf(sku string) *shelf {
	if e.shelves[sku] == nil {
		e.shelves[sku] = &shelf{frozenFor: map[string]int64{}}
	}
	return e.shelves[sku]
}

// noteShelf takes note of an operator's hand in the stock or its journal: from then on
// nothing adds up for that SKU, whatever the order.
func (e *Evidence) noteShelf(row *sim.Change) {
	for _, row := range []*sim.Change{e.old, row} {
		if row != nil && !row.Deleted() {
			e.shelf(row.Text("sku")).byHand = true
		}
	}
}

// observeStockConserved keeps the shelves, and judges one after each commit that has moved
// something on it.
func observeStockConserved(e *Evidence, r *sim.Record) {
	if r.Change == nil || r.Change.Database != stockDB {
		return
	}
	row := r.Change
	if row.Deleted() {
		row = e.old
	}
	if row == nil || row.Text("sku") == "" { // a release that found nothing frozen moves nothing
		return
	}
	s, number := e.shelf(row.Text("sku")), row.Text("order_no")
	switch row.Table {
	case "stock":
		s.row = units{r.Change.Int("available"), r.Change.Int("frozen"), r.Change.Int("sold")}
	case "stock_journal":
		s.post(e.old, -1)
		s.post(r.Change, +1)
	}
	e.atCommit(func(by *sim.Record) { e.judgeShelf(row.Text("sku"), number, by) })
}

// post adds a row of the journal to what it has moved, or takes it away.
func (s *shelf) post(row *sim.Change, sign int64) {
	if row == nil || row.Deleted() {
		return
	}
	n := sign * row.Int("quantity")
	var frozen int64
	switch row.Text("movement") {
	case "put":
		s.put += n
		s.journal.available += n
	case "freeze":
		s.journal.available -= n
		frozen = n
	case "release":
		s.journal.available += n
		frozen = -n
	case "deduct":
		s.journal.sold += n
		frozen = -n
	}
	s.journal.frozen += frozen
	s.frozenFor[row.Text("order_no")] += frozen
}

// judgeShelf holds a SKU's units against what was put in and against the journal; number
// is the one that was moved.
func (e *Evidence) judgeShelf(sku, number string, by *sim.Record) {
	s := e.shelf(sku)
	if s.byHand || s.failed {
		return
	}
	if roles, what := s.wrong(sku, number); what != "" {
		s.failed = true
		order := cmp.Or(stockOrder(number), keyOf(by.Task))
		e.fail(Failure{Order: order, Stake: e.price(order), Seq: by.Seq, Roles: roles + " by " + sim.Role(by.Task), Message: fmt.Sprintf(
			"order %s of %s: after %s, %s", order, e.price(order), e.at(by), what)})
	}
}

// wrong tells what does not add up, "" if all does.
func (s *shelf) wrong(sku, number string) (roles, what string) {
	switch u := s.row; {
	case u.sum() != s.put:
		return "sum", fmt.Sprintf("%s of %s are %d, and %d were put in", u, sku, u.sum(), s.put)
	case min(u.available, u.frozen, u.sold) < 0:
		return "negative", fmt.Sprintf("%s has %s", sku, u)
	case s.frozenFor[number] < 0:
		return "more than was frozen", fmt.Sprintf("%d of %s more than were frozen for it were taken back or sold", -s.frozenFor[number], sku)
	case u != s.journal:
		return "journal and stock", fmt.Sprintf("%s has %s, and by the journal %s", sku, u, s.journal)
	}
	return "", ""
}

// endStockConserved holds the stock of each order against what has become of the order.
func endStockConserved(e *Evidence) {
	for _, sku := range slices.Sorted(maps.Keys(e.shelves)) {
		s := e.shelves[sku]
		for _, number := range slices.Sorted(maps.Keys(s.frozenFor)) {
			if order := stockOrder(number); s.frozenFor[number] > 0 && !s.byHand && e.statusOf(order) != "CREATED" {
				e.failFate(order, "frozen for an order "+e.statusOf(order), fmt.Sprintf("%d of %s are still frozen for it", s.frozenFor[number], sku),
					e.orders[order], e.accounts.moves["freeze "+number])
			}
		}
	}
	for _, row := range e.table("orders") {
		if sku := row.Text("sku"); sku != "" && !e.shelf(sku).byHand {
			e.judgeFate(row)
		}
	}
}

// judgeFate says whether an order's stock was sold exactly if the order was.
func (e *Evidence) judgeFate(row *sim.Change) {
	order, status := row.Text("order_no"), row.Text("status")
	sold := e.accounts.moves["deduct "+row.Text("stock_no")]
	switch {
	case status == "CREATED":
	case status == "CLOSED" && sold != nil:
		e.failFate(order, "sold for an order CLOSED", fmt.Sprintf("its %d of %s are sold", sold.Int("quantity"), sold.Text("sku")), row, sold)
	case status != "CLOSED" && (sold == nil || sold.Int("quantity") != row.Int("quantity") || sold.Text("sku") != row.Text("sku")):
		e.failFate(order, "not sold for an order that was paid", fmt.Sprintf("its %d of %s are not sold", row.Int("quantity"), row.Text("sku")), row, sold)
	}
}

func (e *Evidence) failFate(order, roles, what string, about ...*sim.Change) {
	e.fail(Failure{Order: order, Stake: e.price(order), Roles: roles, Message: fmt.Sprintf(
		"order %s of %s is %s, and %s when everything has come to rest", order, e.price(order), e.statusOf(order), what)}, about...)
}
