package checker

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Evidence is what is known of a run: its trace, and the committed rows as they
// stand after the last record.
type Evidence struct {
	trace    *sim.Trace
	rules    []Property
	current  *Property // whose turn it is
	failures []Failure
	seen     map[string]bool // failures by property and order: one tells enough

	tables   map[string]map[rowKey]*sim.Change
	pending  map[rowKey]bool
	orders   map[string]*sim.Change  // rows of orders, by number
	requests map[string]*sim.Message // by exchange
	old      *sim.Change             // the row before the record's change, nil if there was none

	records   map[string]*sim.Change // rows of payment_records, by channel and transaction
	attempts  map[string]*sim.Change // rows of payment_orders, by out-trade number
	booked    map[string]int         // how many rows a transaction has
	applied   map[string]int         // how many records have paid an order
	logged    map[string]string      // the last status in an order's log
	acks      map[string][]ack       // by order
	trouble   trouble
	deeds     deeds
	doubts    map[string]doubt // callbacks that are not to be believed, by task
	keys      keys
	jobs      jobs
	callbacks callbacks
	looks     looks
	past      past

	commit   commit
	accounts accounts
	effects  effectCounts
	sums     refundSums
	shelves  map[string]*shelf // by SKU

	homes     map[string]string // the node that has made an order
	reached   []int             // how often each probe was, in their order
	budget    int               // of the search for one history, in steps of its model
	undecided []string          // properties whose check ran out of its budget
	misfits   []Misfit

	expected []Expectation // by the run's file

	hands map[string]byHand // the first row of an order that a person changed

	zones     map[string]*time.Location // of the channels' bills
	window    time.Duration             // for which an order waits for its money; zero if nobody has declared it
	asked     map[string]time.Duration  // by task and out-trade number: when a channel was asked last
	asksFirst bool                      // the policy by which channels are asked before an order is closed
	seal      seal                      // of true callbacks
	reinstate bool                      // the policy by which CLOSED may become PAID
	ending    bool                      // the run is over
	restless  int                       // the steps of a run that did not come to rest
}

type rowKey struct {
	database, table string
	id              int64
}

// New returns a checker that watches the trace from now on.
func New(trace *sim.Trace) *Evidence {
	e := &Evidence{
		trace: trace, rules: Properties(), seen: map[string]bool{},
		tables: map[string]map[rowKey]*sim.Change{}, pending: map[rowKey]bool{}, orders: map[string]*sim.Change{},
		requests: map[string]*sim.Message{}, budget: stepBudget,
		records: map[string]*sim.Change{}, attempts: map[string]*sim.Change{},
		booked: map[string]int{}, applied: map[string]int{}, acks: map[string][]ack{}, logged: map[string]string{},
		accounts: newAccounts(), effects: newEffectCounts(), sums: newRefundSums(), shelves: map[string]*shelf{},
		hands: map[string]byHand{}, trouble: newTrouble(), deeds: newDeeds(), doubts: map[string]doubt{}, keys: newKeys(),
		jobs: newJobs(), callbacks: newCallbacks(), looks: newLooks(), past: newPast(), zones: map[string]*time.Location{}, asked: map[string]time.Duration{}, homes: map[string]string{}, reached: make([]int, len(probes)),
	}
	trace.Watch(e.observe)
	return e
}

func (e *Evidence) observe(r *sim.Record) {
	e.commit.follow(e, r)
	switch {
	case r.Change != nil:
		e.apply(r.Change)
		e.accounts.keep(e.old, r.Change)
		e.noteHand(r)
		if isRow(r, "orders") && e.old == nil {
			e.homes[r.Change.Text("order_no")] = r.Node
		}
	case r.Event == sim.EventSend:
		e.requests[r.Message.Exchange] = r.Message
	}
	e.noteTrouble(r)
	e.past.observe(r, e.old)
	for i := range e.rules {
		if e.current = &e.rules[i]; e.current.observe != nil {
			e.current.observe(e, r)
		}
	}
	e.probe(r)
	e.deeds.observe(r)
}

// apply brings the known rows up to date and remembers the row before.
func (e *Evidence) apply(c *sim.Change) {
	rows, key := e.tables[c.Table], rowKey{c.Database, c.Table, c.RowID}
	if rows == nil {
		rows = map[rowKey]*sim.Change{}
		e.tables[c.Table] = rows
	}
	if e.old = rows[key]; c.Deleted() {
		delete(rows, key)
	} else {
		rows[key] = c
	}
	delete(e.pending, key)
	if isPending(c) {
		e.pending[key] = true
	}
	switch c.Table {
	case "orders":
		if same := e.orders[c.Text("order_no")]; e.old == nil && same != nil {
			// SQLite does not tell that INSERT OR REPLACE has removed a row.
			e.old, key.id = same, same.RowID
			delete(rows, key)
			delete(e.pending, key)
		}
		index(e.orders, e.old, c, func(row *sim.Change) string { return row.Text("order_no") })
	case "payment_records":
		index(e.records, e.old, c, txnOf)
	case "payment_orders":
		index(e.attempts, e.old, c, func(row *sim.Change) string { return row.Text("out_trade_no") })
	}
}

// pendingStates are, for each table, the states of a row that something has yet to
// become of.
var pendingStates = map[string]string{
	"orders":         "CREATED REFUNDING",
	"notifications":  "PENDING",
	"outbox":         "PENDING",
	"refunds":        "REQUESTED ACCEPTED PROCESSING",
	"payment_orders": "OPEN",
}

// isPending says whether something has yet to become of a row.
func isPending(c *sim.Change) bool {
	states := pendingStates[c.Table]
	state := c.Text("state")
	if c.Table == "orders" {
		state = c.Text("status")
	}
	return states != "" && state != "" && slices.Contains(strings.Fields(states), state)
}

// Settled says that nothing is left to happen: no order waits for its money, and
// the channel has nothing more to say. What a person must decide, or has had a hand in,
// may wait for ever.
func (e *Evidence) Settled() bool {
	for key := range e.pending { // order-free: whether there is one
		row := e.tables[key.table][key]
		if !e.waitsForPerson(row) && !e.touched(cmp.Or(row.Text("order_no"), row.Text("out_trade_no"), row.Text("message_key"))) {
			return false
		}
	}
	return true
}

// waitsForPerson says whether an order's money was to go back, and its channel has closed
// a refund of it.
func (e *Evidence) waitsForPerson(row *sim.Change) bool {
	return row.Table == "orders" && row.Text("status") == "REFUNDING" && e.isLeftToPerson(func(refund *sim.Change) bool {
		return refund.Text("order_no") == row.Text("order_no")
	})
}

// isStranded says whether the channel has closed the refund of a charge that is not ours
// to keep.
func (e *Evidence) isStranded(txn string) bool {
	return e.isLeftToPerson(func(refund *sim.Change) bool { return txnOf(refund) == txn && refund.Text("cause") != "request" })
}

// isLeftToPerson says whether a channel has closed such a refund of ours, and we know it:
// no money moves under its number any more, and a person must decide. That he is told is
// seen to where the refund fails.
func (e *Evidence) isLeftToPerson(which func(refund *sim.Change) bool) bool {
	return e.any("refunds", func(refund *sim.Change) bool {
		ledger := e.accounts.executed[refund.Text("refund_no")]
		return refund.Database == shopDB && refund.Text("channel_state") == "CLOSED" && which(refund) && ledger != nil && ledger.Text("state") == "CLOSED"
	})
}

// index keeps a map of rows by name.
func index(rows map[string]*sim.Change, old, row *sim.Change, name func(*sim.Change) string) {
	if old != nil && rows[name(old)] == old {
		delete(rows, name(old))
	}
	if !row.Deleted() {
		rows[name(row)] = row
	}
}

// txnOf names a channel transaction: channels number independently of each other.
func txnOf(row *sim.Change) string { return row.Text("channel") + " " + row.Text("channel_txn") }

// AllowReinstatement declares the policy by which a late charge may open a closed
// order again.
func (e *Evidence) AllowReinstatement() { e.reinstate = true }

// Finish checks what must hold in the end, and returns all failures, the most
// money first; of the same money what was seen at once before what showed at the end, and
// what became wrong first. unknown says that a check ran out of its budget.
func (e *Evidence) Finish() (failures []Failure, unknown bool) {
	e.commit.end(e)
	e.ending = true
	for i := range e.rules {
		// What holds at the end can't be asked of a run that has none.
		if e.current = &e.rules[i]; e.current.atEnd != nil && (e.restless == 0 || e.current.Name == finallyTerminal) {
			e.current.atEnd(e)
		}
	}
	e.endExpected()
	slices.SortStableFunc(e.failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Stake.Cents, a.Stake.Cents), cmp.Compare(late(a), late(b)), cmp.Compare(a.Seq, b.Seq))
	})
	return e.failures, len(e.undecided) > 0
}

// late is 1 for what showed at the end: more often than not it is what something else led to.
func late(f Failure) int {
	if f.AtEnd {
		return 1
	}
	return 0
}

// fail reports the current property as broken for an order, once. It is about rows: those
// named, and what shows at the end of a run about the order's own else.
func (e *Evidence) fail(f Failure, about ...*sim.Change) {
	f.Property, f.Sentence = e.current.Name, e.current.Sentence
	key := f.Property + " " + f.Order
	if e.seen[key] || f.Property != gapFound && e.touched(f.Order) {
		return
	}
	e.seen[key] = true
	f.Message += e.handTold(f.Order)
	switch {
	case f.Seq > 0:
		f.About = e.changesTo(about)
	case e.ending:
		e.placeAtEnd(&f, about)
	default:
		f.Seq = len(e.trace.Records)
	}
	e.failures = append(e.failures, f)
}

// placeAtEnd finds where the rows that a failure is about became what they are.
func (e *Evidence) placeAtEnd(f *Failure, about []*sim.Change) {
	if f.About = e.changesTo(about); len(f.About) == 0 {
		f.About = e.changesTo([]*sim.Change{e.orders[f.Order]})
	}
	f.AtEnd, f.Seq = true, len(e.trace.Records)
	if n := len(f.About); n > 0 {
		f.Seq = f.About[n-1]
	}
}

// changesTo returns the records at which rows became what they are.
func (e *Evidence) changesTo(rows []*sim.Change) (seqs []int) {
	for i := range e.trace.Records {
		if r := &e.trace.Records[i]; r.Change != nil && slices.Contains(rows, r.Change) {
			seqs = append(seqs, r.Seq)
		}
	}
	return seqs
}

// table returns the rows of a table in a fixed order.
func (e *Evidence) table(name string) []*sim.Change {
	return slices.SortedFunc(maps.Values(e.tables[name]), func(a, b *sim.Change) int {
		return cmp.Or(strings.Compare(a.Database, b.Database), cmp.Compare(a.RowID, b.RowID))
	})
}

// price is what an order is for.
func (e *Evidence) price(order string) Money {
	if row := e.orders[order]; row != nil {
		return amountOf(row)
	}
	return Money{}
}

func amountOf(row *sim.Change) Money { return Money{row.Int("amount_cents"), row.Text("currency")} }

// body is what the checker reads of the system's JSON.
type body struct {
	OrderNo     string `json:"orderNo"`
	OutTradeNo  string `json:"outTradeNo"`
	Status      string `json:"status"`
	Channel     string `json:"channel"`
	ChannelTxn  string `json:"channelTxn"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
	State       string `json:"state"` // of a channel's notice
	RefundNo    string `json:"refundNo"`
	MerchantID  string `json:"merchantId"`
}

// takesMoney says whether a channel's notice is about a charge: it may also tell that
// a trade was closed, or that an attempt failed.
func (b body) takesMoney() bool {
	return b.ChannelTxn != "" && (b.State == "" || b.State == "SUCCESS" || b.State == "FINISHED")
}

func (b body) txn() string { return b.Channel + " " + b.ChannelTxn }

// amount is what the body says, in the currency that holds where it names none.
func (b body) amount() Money { return Money{b.AmountCents, cmp.Or(b.Currency, "CNY")} }

func parse(m *sim.Message) (b body) {
	_ = json.Unmarshal(m.Body, &b) // what is no JSON says nothing
	return b
}
