package checker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tillstorm/tillstorm/sim"
)

// Expected is the property of a run that is written down: that what it expects comes to
// pass. It is none of those that every run must keep.
const Expected = "expect"

// Expectation is something that a run must come to. Like every property it is judged from
// the rows, the channels' ledgers and what was said on the network.
type Expectation struct {
	Where string // it stands: "FILE:LINE"
	Text  string // as it stands there
	Subject
	About string // an order; an attempt; of Stock levels, a SKU
	What  string // a status, a movement, a kind of request; "" for any
	Also  string // an answer's HTTP status; "" for any
	Cents int64  // 0: any amount
	Claim
	Count  int           // of Happens
	Equal  bool          // of Happens: all answers say the same
	After  time.Duration // true time since the world's start
	By     time.Duration // 0: at any time
	Levels Levels        // of HasLevels
}

// Subject is what an expectation is about.
type Subject string

// The subjects, and what each What of them is.
const (
	OfOrder   Subject = "order"   // a status that it has come to
	OfCharge  Subject = "charge"  // money that a channel has taken
	OfRecord  Subject = "record"  // a disposition: applied, late, surplus
	OfIntent  Subject = "intent"  // of a refund, by its cause: request, late, surplus
	OfRefund  Subject = "refund"  // money that the buyer has back
	OfAttempt Subject = "attempt" // a state that it has come to
	OfStock   Subject = "stock"   // a movement of the stock journal
	OfAlert   Subject = "alert"   // a kind; also about a channel, where the order is not one of ours
	OfMessage Subject = "message" // a kind of message of the outbox that was delivered
	OfParked  Subject = "parked"  // a kind of message that was given up
	OfRequest Subject = "request" // a kind of request that was sent
	OfAnswer  Subject = "answer"  // the kind of request that was answered
)

// Claim is what is expected of a subject.
type Claim string

// The claims.
const (
	Is        Claim = "is"    // at the time By, or in the end
	Stays     Claim = "stays" // from when it first is
	Happens   Claim = "happens"
	HasLevels Claim = "has"
)

// Levels are a SKU's stock.
type Levels struct{ Available, Frozen, Sold int64 }

func (l Levels) String() string {
	return fmt.Sprintf("available %d frozen %d sold %d", l.Available, l.Frozen, l.Sold)
}

// Expect adds to what the run must come to.
func (e *Evidence) Expect(expectations []Expectation) {
	e.expected = append(e.expected, expectations...)
}

// happening is something that an expectation may be about.
type happening struct {
	at    time.Duration
	seq   int
	what  string
	also  string
	money Money
	text  string // an answer's body
}

// happenings are those of a run, by subject and what they are about.
type happenings map[string][]happening

// endExpected judges what the run's file expects.
func (e *Evidence) endExpected() {
	if len(e.expected) == 0 {
		return
	}
	e.current = &Property{Name: Expected}
	all := e.happenings()
	for i := range e.expected {
		x := &e.expected[i]
		if but, seq := e.contradicts(x, all[string(x.Subject)+" "+x.About]); but != "" {
			f := Failure{
				Property: Expected, Order: x.About, Stake: e.stakeOf(x), Seq: seq, Roles: strings.Join(strings.Fields(fmt.Sprint(x.Subject, " ", x.Claim, " ", x.What)), " "),
				Message: fmt.Sprintf("%s: expected %s, but %s", x.Where, x.Text, but),
			}
			if seq == len(e.trace.Records) {
				e.placeAtEnd(&f, nil)
			}
			e.failures = append(e.failures, f)
		}
	}
}

// stakeOf is the money that an expectation is about: its own amount, or its order's.
func (e *Evidence) stakeOf(x *Expectation) Money {
	price := e.price(x.About)
	if x.Cents != 0 {
		return Money{x.Cents, "CNY"}
	}
	return price
}

// contradicts tells what is otherwise than expected, and at which record; "" if nothing is.
func (e *Evidence) contradicts(x *Expectation, of []happening) (but string, seq int) {
	end := len(e.trace.Records)
	switch x.Claim {
	case Is:
		return e.isNot(x, of, end)
	case Stays:
		return e.leaves(x, of, end)
	case HasLevels:
		if now := e.levels(x.About); now != x.Levels {
			return "it is " + now.String(), end
		}
		return "", 0
	}
	return e.countsOtherwise(x, of, end)
}

// isNot tells what something was at a time, where that is not what was expected.
func (e *Evidence) isNot(x *Expectation, of []happening, end int) (string, int) {
	last := happening{what: "nothing", seq: end}
	for _, h := range of {
		if x.By == 0 || h.at <= x.By {
			last = h
		}
	}
	if last.what == x.What {
		return "", 0
	}
	return fmt.Sprintf("it is %s since %s%s", last.what, e.trace.Clock(last.at), worth(last.money)), last.seq
}

// leaves tells how something went on from what it should stay.
func (e *Evidence) leaves(x *Expectation, of []happening, end int) (string, int) {
	i := slices.IndexFunc(of, func(h happening) bool { return h.what == x.What })
	if i < 0 {
		if len(of) == 0 {
			return "there is none", end
		}
		last := of[len(of)-1]
		return fmt.Sprintf("it never was %s: it is %s since %s%s", x.What, last.what, e.trace.Clock(last.at), worth(last.money)), last.seq
	}
	for _, h := range of[i:] {
		if h.what != x.What {
			return fmt.Sprintf("it became %s at %s%s", h.what, e.trace.Clock(h.at), worth(h.money)), h.seq
		}
	}
	return "", 0
}

// countsOtherwise tells how often, or when, something happened otherwise than expected.
// What should happen, must happen within its bounds and at no other time.
func (e *Evidence) countsOtherwise(x *Expectation, of []happening, end int) (string, int) {
	var found, like []happening
	for _, h := range of {
		if h.what == x.What {
			like = append(like, h)
		}
		if (x.What == "" || h.what == x.What) && (x.Also == "" || h.also == x.Also) && (x.Cents == 0 || h.money.Cents == x.Cents) &&
			(x.Count > 0 || x.holds(h)) {
			found = append(found, h)
		}
	}
	if len(found) != x.Count {
		if len(like) > 0 {
			of = like
		}
		return e.tellAll(found, of, end)
	}
	for _, h := range found {
		switch {
		case !x.holds(h):
			return fmt.Sprintf("it happened at %s%s", e.trace.Clock(h.at), worth(h.money)), h.seq
		case x.Equal && h.text != found[0].text:
			return fmt.Sprintf("at %s it said %s, and at %s %s", e.trace.Clock(found[0].at), found[0].text, e.trace.Clock(h.at), h.text), h.seq
		}
	}
	return "", 0
}

// holds says whether something is within the bounds.
func (x *Expectation) holds(h happening) bool {
	return h.at >= x.After && (x.By == 0 || h.at <= x.By)
}

// tellAll tells those that were found, or what there was in their place.
func (e *Evidence) tellAll(found, of []happening, end int) (string, int) {
	const most = 4
	if len(found) == 0 {
		if len(of) == 0 {
			return "there was none", end
		}
		return "there was none; there was " + e.tell(of, most), of[len(of)-1].seq
	}
	were := "there was 1: "
	if len(found) > 1 {
		were = fmt.Sprintf("there were %d: ", len(found))
	}
	return were + e.tell(found, most), found[len(found)-1].seq
}

func (e *Evidence) tell(all []happening, most int) string {
	var told []string
	for _, h := range all[:min(most, len(all))] {
		told = append(told, strings.Join(strings.Fields(h.what+" "+h.also+" at "+e.trace.Clock(h.at)), " ")+worth(h.money))
	}
	if len(all) > most {
		told = append(told, "...")
	}
	return strings.Join(told, ", ")
}

// worth tells money in parentheses, if there is any.
func worth(m Money) string {
	if m.Cents == 0 {
		return ""
	}
	return " (" + m.String() + ")"
}

// levels returns a SKU's stock as it is in the end.
func (e *Evidence) levels(sku string) (l Levels) {
	for _, row := range e.table("stock") {
		if row.Text("sku") == sku {
			l = Levels{row.Int("available"), row.Int("frozen"), row.Int("sold")}
		}
	}
	return l
}

// happenings goes through the whole trace, once.
func (e *Evidence) happenings() happenings {
	all := happenings{}
	states := map[rowKey]string{}
	for i := range e.trace.Records {
		switch r := &e.trace.Records[i]; {
		case r.Change != nil:
			key := rowKey{r.Change.Database, r.Change.Table, r.Change.RowID}
			before, known := states[key]
			states[key] = stateOf(r.Change)
			e.addRow(all, r, before, !known)
		case r.Event == sim.EventAnswer:
			all.add(OfAnswer, r.Message.Key, r, happening{
				what: r.Message.Kind, also: strconv.Itoa(r.Message.Status), text: fmt.Sprint(r.Message.Status, " ", strings.TrimSpace(string(r.Message.Body))),
			})
		case r.Event == sim.EventSend && r.Message.Method != sim.MethodPublish:
			all.add(OfRequest, r.Message.Key, r, happening{what: r.Message.Kind})
		}
	}
	return all
}

func (all happenings) add(of Subject, about string, r *sim.Record, h happening) {
	h.at, h.seq = r.At, r.Seq
	key := string(of) + " " + about
	all[key] = append(all[key], h)
}

// stateOf is the column of a row that tells what has become of it.
func stateOf(row *sim.Change) string {
	if row.Deleted() {
		return "gone"
	}
	if row.Table == "orders" {
		return row.Text("status")
	}
	return row.Text("state")
}

// addRow adds what the change of a row is about: a new row, or a new state.
func (e *Evidence) addRow(all happenings, r *sim.Record, before string, isNew bool) {
	row, state := r.Change, stateOf(r.Change)
	if !isNew && state == before {
		return
	}
	order := row.Text("order_no")
	switch table := row.Table; {
	case table == "orders":
		all.add(OfOrder, order, r, happening{what: state, money: amountOf(row)})
	case table == "payment_orders":
		all.add(OfAttempt, order, r, happening{what: state})
		all.add(OfAttempt, row.Text("out_trade_no"), r, happening{what: state})
	case table == "refunds" && row.Database != shopDB && state == "SUCCESS":
		all.add(OfRefund, order, r, happening{money: amountOf(row)})
	case table == "outbox" && state == "DELIVERED":
		all.add(OfMessage, e.orderOfMessage(row), r, happening{what: row.Text("kind")})
	case table == "outbox" && state == "PARKED":
		all.add(OfParked, e.orderOfMessage(row), r, happening{what: row.Text("kind")})
	case isNew && !row.Deleted():
		e.addNew(all, r)
	}
}

func (e *Evidence) addNew(all happenings, r *sim.Record) {
	row := r.Change
	order, money := row.Text("order_no"), amountOf(row)
	switch row.Table {
	case "charges":
		all.add(OfCharge, order, r, happening{money: money})
	case "payment_records":
		all.add(OfRecord, order, r, happening{what: row.Text("disposition"), money: money})
	case "refunds":
		if row.Database == shopDB {
			all.add(OfIntent, order, r, happening{what: row.Text("cause"), money: money})
		}
	case "stock_journal":
		all.add(OfStock, stockOrder(order), r, happening{what: row.Text("movement")})
	case "alerts":
		all.add(OfAlert, e.orderOfAlert(row.Text("subject")), r, happening{what: row.Text("kind"), also: row.Text("subject"), money: money})
	}
}

// orderOfAlert returns the order that an alert's subject names. Where that is none of ours,
// the alert is about the channel that the subject begins with.
func (e *Evidence) orderOfAlert(subject string) string {
	for name := range strings.FieldsFuncSeq(subject, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if e.homes[name] != "" {
			return name
		}
	}
	channel, _, _ := strings.Cut(subject, "/")
	return channel
}
