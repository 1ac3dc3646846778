package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/tillstorm/tillstorm/sim"
)

// stockCall is one operation on a SKU. What it has changed, the journal proves: a call
// that wrote a row happened, whatever its client heard, and by then; one that wrote none
// has changed nothing, and if nobody has its answer, it is as if it never was.
type stockCall struct {
	span
	kind     string // a movement, or journal, which reads movements
	number   string // the order's, at the stock service
	quantity int64
	wrote    *sim.Change // its row of the journal, nil if it wrote none
	row      int         // position of that row among the SKU's
	answered bool
	code     string   // of a refusal
	movedAt  position // of the number's movements

	wants func(row *sim.Change) bool // of a read: which rows it asks for
	reads []movement                 // and what it got
}

// position is where the rows of a number stand among those of its SKU.
type position struct{ freeze, release, deduct int }

// movement is a row of the journal, as far as a reader's answer is looked at.
type movement struct {
	JournalID int64
	OrderNo   string
	Movement  string
}

func (c *stockCall) about() (order, role string) {
	return stockOrder(c.number), c.kind + " " + cmp.Or(c.code, "answered")
}

func (c *stockCall) String() string {
	switch {
	case c.kind == "journal":
		return "journal -> " + rowsTold(c.reads)
	case !c.answered:
		return fmt.Sprintf("%s %s -> ?", c.kind, c.number)
	}
	return fmt.Sprintf("%s %s -> %s", c.kind, c.number, cmp.Or(c.code, "done"))
}

func rowsTold(rows []movement) string {
	var told []string
	for _, row := range rows {
		told = append(told, row.Movement+" "+row.OrderNo)
	}
	return cmp.Or(strings.Join(told, ", "), "no rows")
}

// rule tells what a call's answer owes to those of the others.
func (c *stockCall) rule() string {
	switch c.kind {
	case "freeze":
		return "a unit is promised once, an order's units are frozen once and never after their release, and only what there is not is refused"
	case "release":
		return "units come back once, and never once they were sold; whoever hears that they are back finds them there"
	case "deduct":
		return "units are sold once, after they were frozen and if they were not released"
	case "journal":
		return "a reader sees every movement that was answered before it asked, and what it has seen once does not go away"
	}
	return "stock that comes in is there from then on"
}

// refusals are what a movement may be answered; "" is that it was done.
var refusals = map[string][]string{
	"freeze": {"", "out_of_stock", "order_released"}, "release": {"", "order_deducted"}, "deduct": {"", "order_not_frozen", "order_released"},
}

// otherwise gives the call each of the answers that there are.
func (s *stockHistory) otherwise(a asked) iter.Seq[string] {
	return func(yield func(string) bool) {
		c := a.(*stockCall)
		code, reads := c.code, c.reads
		defer func() { c.code, c.reads = code, reads }()
		if c.kind == "journal" {
			for n := range len(s.rows) + 1 {
				if c.reads = s.seen(c, n); !yield(rowsTold(c.reads)) {
					return
				}
			}
		}
		for _, c.code = range refusals[c.kind] {
			if c.answered && !yield(cmp.Or(c.code, "done")) {
				return
			}
		}
	}
}

// seen is what a reader gets when n rows have been written.
func (s *stockHistory) seen(c *stockCall, n int) (rows []movement) {
	for row := range s.wanted(c, n) {
		rows = append(rows, movement{row.Int("journal_id"), row.Text("order_no"), row.Text("movement")})
	}
	return rows
}

// stockHistory is what was asked about one SKU. Its state is how many of the journal's
// rows have been written, in their order.
type stockHistory struct {
	calls []*stockCall
	rows  []*sim.Change
	left  []int64 // units that are available after as many rows
}

func endLinearizableStock(e *Evidence) {
	skus := e.stockHistories()
	for _, sku := range slices.Sorted(maps.Keys(skus)) {
		if !e.shelf(sku).byHand {
			e.judgeHistory(skus[sku].history())
		}
	}
}

func (s *stockHistory) history() *history {
	h := &history{operations: s.operations, model: s.model, otherwise: s.otherwise, did: "the journal"}
	for _, c := range s.calls {
		h.calls = append(h.calls, c)
	}
	return h
}

func (s *stockHistory) operations(until int) []porcupine.Operation {
	var ops []porcupine.Operation
	for _, c := range s.calls {
		if c.to <= until {
			ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: c, Call: int64(c.from), Return: int64(c.to)})
		}
	}
	return ops
}

func (s *stockHistory) model(budget *int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, in, _ any) (bool, any) {
			*budget--
			return *budget >= 0 && s.fits(in.(*stockCall), state.(int)), state.(int) + in.(*stockCall).moves()
		},
		DescribeOperation: func(in, _ any) string { return in.(*stockCall).String() },
		DescribeState:     func(state any) string { return fmt.Sprintf("%d left", s.left[state.(int)]) },
	}
}

// moves returns how many rows the call has written.
func (c *stockCall) moves() int {
	if c.wrote != nil {
		return 1
	}
	return 0
}

// fits says whether a call can happen when n rows have been written: it writes the next
// one exactly if it changes something, and its answer is what is true then.
func (s *stockHistory) fits(c *stockCall, n int) bool {
	if c.kind == "journal" {
		return s.reads(c, n)
	}
	if c.wrote != nil && c.row != n {
		return false
	}
	code, changes := s.answer(c, n)
	return changes == (c.wrote != nil) && (!c.answered || c.code == code)
}

// answer is what the stock service answers when n rows have been written, "" if it does
// what it is asked for, and whether that changes anything.
func (s *stockHistory) answer(c *stockCall, n int) (code string, changes bool) {
	frozen, released, deducted := c.movedAt.freeze < n, c.movedAt.release < n, c.movedAt.deduct < n
	switch c.kind {
	case "freeze":
		switch {
		case released:
			return "order_released", false
		case !frozen && s.left[n] < c.quantity:
			return "out_of_stock", false
		}
		return "", !frozen
	case "release":
		if deducted {
			return "order_deducted", false
		}
		return "", !released
	case "deduct":
		switch {
		case released:
			return "order_released", false
		case !frozen:
			return "order_not_frozen", false
		}
		return "", !deducted
	}
	return "", true // stock that comes in
}

// wanted are those of the first n rows that a reader asks for. What came in is left out:
// the trace does not tell of what a run begins with.
func (s *stockHistory) wanted(c *stockCall, n int) iter.Seq[*sim.Change] {
	return func(yield func(*sim.Change) bool) {
		for _, row := range s.rows[:n] {
			if row.Text("movement") != "put" && c.wants(row) && !yield(row) {
				return
			}
		}
	}
}

// reads says whether a reader got, of the first n rows, those that it asked for.
func (s *stockHistory) reads(c *stockCall, n int) bool {
	got := c.reads
	for row := range s.wanted(c, n) {
		if len(got) == 0 || got[0].JournalID != row.Int("journal_id") {
			return false
		}
		got = got[1:]
	}
	return len(got) == 0
}

// stockLog is what the trace tells of the stock service.
type stockLog struct {
	calls  []*stockCall
	wrote  []*stockCall // those that wrote a row, in the rows' order
	byName map[string]*stockCall
	skus   map[string]*stockHistory
	skuOf  map[string]string // by number
}

// stockHistories collects the operations on each SKU from the trace.
func (e *Evidence) stockHistories() map[string]*stockHistory {
	log := stockLog{byName: map[string]*stockCall{}, skus: map[string]*stockHistory{}, skuOf: map[string]string{}}
	for i := range e.trace.Records {
		r := &e.trace.Records[i]
		switch m := r.Message; {
		case r.Event == sim.EventSend || r.Event == sim.EventCopy:
			log.ask(r)
		case r.Event == sim.EventDeliver && m.Leg == sim.Request:
			if c := log.byName[r.Op]; c != nil {
				c.delivered = true
			}
		case r.Event == sim.EventDeliver:
			if c := log.byName[m.Exchange]; c != nil {
				c.hear(r)
			}
		case isRow(r, "stock_journal") && !r.Change.Deleted() && r.Node != sim.Operator:
			log.write(r)
		}
	}
	for _, c := range log.wrote {
		s := log.history(log.skuOf[c.number])
		c.row, s.rows = len(s.rows), append(s.rows, c.wrote)
	}
	for _, c := range log.calls {
		log.sort(c)
	}
	for sku, s := range log.skus { // order-free: each by itself
		s.count(e.shelf(sku).first)
	}
	return log.skus
}

// ask takes note of a request to the stock service.
func (l *stockLog) ask(r *sim.Record) {
	c := &stockCall{span: span{from: r.Seq, to: never}, kind: r.Message.Kind}
	switch c.kind {
	case "freeze", "release", "deduct":
		var about struct {
			OrderNo, SKU string
			Quantity     int64
		}
		_ = json.Unmarshal(r.Message.Body, &about) // what is no JSON asks for nothing
		c.number, c.quantity = about.OrderNo, about.Quantity
		if about.SKU != "" && l.skuOf[c.number] == "" {
			l.skuOf[c.number] = about.SKU
		}
	case "journal":
		c.wants = wanted(r.Message.Path)
	default:
		return
	}
	l.calls = append(l.calls, c)
	l.byName[r.Op] = c
}

// wanted reads which rows a request for the journal asks for.
func wanted(path string) func(row *sim.Change) bool {
	asks, err := url.Parse(path)
	if err != nil {
		return func(*sim.Change) bool { return false }
	}
	query := asks.Query()
	if numbers := query["orderNo"]; len(numbers) > 0 {
		return func(row *sim.Change) bool { return slices.Contains(numbers, row.Text("order_no")) }
	}
	after, _ := strconv.ParseInt(query.Get("after"), 10, 64)
	return func(row *sim.Change) bool { return row.Int("journal_id") > after }
}

// hear takes note of a call's answer. A failure says nothing.
func (c *stockCall) hear(r *sim.Record) {
	if r.Message.Status/100 == 5 {
		return
	}
	var said struct {
		Error struct{ Code string }
		Rows  []movement
		Next  int64
	}
	_ = json.Unmarshal(r.Message.Body, &said) // what is no JSON says nothing
	c.known, c.answered, c.to = true, true, min(c.to, r.Seq)
	slices.SortFunc(said.Rows, func(a, b movement) int { return cmp.Compare(a.JournalID, b.JournalID) })
	c.code, c.reads = said.Error.Code, said.Rows
	if wants := c.wants; said.Next > 0 {
		c.wants = func(row *sim.Change) bool { return wants(row) && row.Int("journal_id") <= said.Next }
	}
}

// write takes note of a row of the journal, and of the call that wrote it.
func (l *stockLog) write(r *sim.Record) {
	row := r.Change
	number := row.Text("order_no")
	if row.Text("sku") != "" {
		l.skuOf[number] = row.Text("sku")
	}
	c := l.byName[r.Task]
	if c == nil || c.kind != row.Text("movement") || c.number != number {
		// What no request has caused happens as it is committed.
		c = &stockCall{span: span{from: r.Seq}, kind: row.Text("movement"), number: number, quantity: row.Int("quantity"), answered: true}
		l.calls = append(l.calls, c)
	}
	c.known, c.delivered, c.to, c.wrote = true, true, r.Seq, row
	l.wrote = append(l.wrote, c)
}

func (l *stockLog) history(sku string) *stockHistory {
	if l.skus[sku] == nil {
		l.skus[sku] = &stockHistory{}
	}
	return l.skus[sku]
}

// sort puts a call into the history of its SKU. A read is about many: each has its part.
func (l *stockLog) sort(c *stockCall) {
	switch {
	case !c.known:
	case c.kind != "journal":
		s := l.history(l.skuOf[c.number])
		s.calls = append(s.calls, c)
	case c.code == "":
		for sku, s := range l.skus { // order-free: each by itself
			part := *c
			part.reads = slices.DeleteFunc(slices.Clone(c.reads), func(m movement) bool {
				return m.Movement == "put" || l.skuOf[m.OrderNo] != sku
			})
			if i := slices.IndexFunc(s.rows, c.wants); i >= 0 {
				part.number = s.rows[i].Text("order_no")
			}
			s.calls = append(s.calls, &part)
		}
	}
}

// count works out what is available after each row, and where each number's rows are.
func (s *stockHistory) count(left int64) {
	at := map[string]position{}
	s.left = []int64{left}
	for i, row := range s.rows {
		number, n := row.Text("order_no"), row.Int("quantity")
		p, seen := at[number]
		if !seen {
			p = position{never, never, never}
		}
		switch row.Text("movement") {
		case "put":
			left += n
		case "freeze":
			left -= n
			p.freeze = min(p.freeze, i)
		case "release":
			left += n
			p.release = min(p.release, i)
		case "deduct":
			p.deduct = min(p.deduct, i)
		}
		at[number] = p
		s.left = append(s.left, left)
	}
	for _, c := range s.calls {
		c.movedAt = position{never, never, never}
		if p, seen := at[c.number]; seen {
			c.movedAt = p
		}
	}
}
