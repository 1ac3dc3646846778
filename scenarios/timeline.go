package scenarios

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/faults"
)

// clockFormat is a time with its day; Go reads parts of a second behind it.
const clockFormat = "2006-01-02T15:04:05"

var clockPattern = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.(\d{3}|\d{6})$`)

// latest is how long after the start a line of a timeline may be.
const latest = 7 * 24 * time.Hour

// clock reads a time: of the start's day, unless it has a date.
func (p *parser) clock(l *cursor) (time.Duration, error) {
	w, err := l.take("a time")
	if err != nil {
		return 0, err
	}
	text := w.text
	if !strings.Contains(text, "T") {
		text = p.x.start().Format("2006-01-02T") + text
	}
	at, err := time.ParseInLocation(clockFormat, text, zone)
	if err != nil || !clockPattern.MatchString(w.text) {
		return 0, w.errorf("%q is not a time such as 14:00:00.000, or 2026-03-03T00:10:00.000 on another day", w.text)
	}
	since := at.Sub(p.x.start())
	switch {
	case since < 0:
		return 0, w.errorf("%s is before the start, %s", w.text, p.x.start().Format(clockFormat))
	case since > latest:
		return 0, w.errorf("%s is more than 7 days after the start", w.text)
	}
	return since, nil
}

func (p *parser) timeline(s section) error {
	for _, l := range s.lines {
		if len(l.words) == 0 {
			continue
		}
		c := &cursor{words: l.words}
		if err := p.timelineLine(c); err != nil {
			return err
		}
		if err := c.end(); err != nil {
			return err
		}
	}
	// What is spread over a while goes on beside the lines below it.
	slices.SortStableFunc(p.x.Operations, func(a, b Operation) int { return cmp.Compare(a.At, b.At) })
	for _, number := range p.numbers {
		if _, ok := p.created[number.text]; !ok {
			return number.errorf("no line of the timeline creates order %s", number.text)
		}
	}
	if len(p.x.Operations) == 0 {
		return word{line: 1, column: 1}.errorf("there is no timeline: nothing would happen")
	}
	if err := p.checkPins(); err != nil {
		return err
	}
	return p.payWindow()
}

func (p *parser) timelineLine(l *cursor) error {
	when := l.here()
	at, err := p.clock(l)
	if err != nil {
		return err
	}
	if at < p.last {
		return when.errorf("%s is before the line above: time goes backwards", when.text)
	}
	p.last = at
	actor, verb, err := takeVerb(l)
	switch {
	case err != nil:
		return err
	case pinVerbOf(actor, verb) != nil:
		return p.pin(l, Pin{At: at, Actor: actor, Verb: verb, Line: when.line})
	case actor == operatorActor:
		return p.hand(l, Hand{At: at, Edits: verb == handVerbs[1]})
	}
	return p.operations(l, at, Operation{At: sent(at), Verb: Verb(verb)})
}

// takeVerb reads who does what.
func takeVerb(l *cursor) (actor, verb string, err error) {
	var actors []string
	verbs := map[string][]string{}
	for _, one := range VerbLines() {
		if verbs[one.Actor] == nil {
			actors = append(actors, one.Actor)
		}
		verbs[one.Actor] = append(verbs[one.Actor], one.Verb)
	}
	if actor, err = l.oneOf("actor", actors); err == nil {
		verb, err = l.oneOf("verb of the "+actor, verbs[actor])
	}
	return actor, verb, err
}

// sent is when a buyer must send what is to arrive at a time.
func sent(at time.Duration) time.Duration { return max(0, at-linkTime) }

// arrives is when something that a buyer sends arrives.
func arrives(sent time.Duration) time.Duration { return sent + linkTime }

// operations reads a stimulus, about one order or about each of a range.
func (p *parser) operations(l *cursor, at time.Duration, op Operation) error {
	numbers, err := p.orders(l)
	if err != nil {
		return err
	}
	verb := timelineVerbs[slices.IndexFunc(timelineVerbs, func(v timelineVerb) bool { return v.verb == op.Verb })]
	rest, began := l.next, len(p.x.Operations)
	for _, number := range numbers {
		l.next = rest
		op.Order = number
		if verb.read != nil {
			if err := verb.read(p.x, l, &op); err != nil {
				return err
			}
		}
		if op.On, err = p.on(l, op.Verb.shops(), "shop", shopNames(p.x.Shop)); err != nil {
			return err
		}
		p.x.Operations = append(p.x.Operations, op)
	}
	if err := p.spread(l, p.x.Operations[began:]); err != nil {
		return err
	}
	for _, one := range p.x.Operations[began:] {
		if _, ok := p.created[one.Order]; !ok && one.Verb == Creates {
			p.created[one.Order] = at + one.At - op.At
		}
	}
	return nil
}

// shops says whether it is a shop that is asked.
func (v Verb) shops() bool { return v != Pays && v != Leaves && v != Forges }

// overWord comes before how long it takes until all of a range have done it.
const overWord = "over"

// spread reads "over 60s", in which the operations follow each other evenly.
func (p *parser) spread(l *cursor, operations []Operation) error {
	if len(operations) < 2 || !l.skip(overWord) {
		return nil
	}
	w, err := l.take("a duration, for example 60s")
	if err != nil {
		return err
	}
	var over time.Duration
	if err := durationTo(&over, w.text); err != nil {
		return w.errorf("%s %v", overWord, err)
	}
	for i := range operations {
		operations[i].At += (over * time.Duration(i) / time.Duration(len(operations))).Truncate(time.Microsecond)
	}
	return nil
}

// orders reads an order's number, or a range such as B1..B500.
func (p *parser) orders(l *cursor) ([]string, error) {
	w, err := l.take("an order's number")
	if err != nil {
		return nil, err
	}
	numbers, err := rangeOf(w)
	if err != nil {
		return nil, err
	}
	for _, number := range numbers {
		if !p.said["order "+number] {
			return nil, w.errorf("%s", p.x.unknownOrder(number))
		}
	}
	return numbers, nil
}

// unknownOrder says that there is no such order.
func (x *Incident) unknownOrder(number string) string {
	var known []string
	for _, o := range x.Orders {
		known = append(known, o.Number)
	}
	near := faults.Suggest(number, known)
	if near == "" {
		near = fmt.Sprintf("; the setup has no line 'order %s ...'", number)
	}
	return fmt.Sprintf("unknown order %q%s", number, near)
}

// most is how many orders a range has at most.
const most = 10_000

// rangeOf returns the numbers that a word stands for: B1..B3 for B1, B2, B3.
func rangeOf(w word) ([]string, error) {
	first, last, isRange := strings.Cut(w.text, "..")
	if !isRange {
		return []string{w.text}, nil
	}
	from, errFrom := strconv.Atoi(first[min(1, len(first)):])
	to, errTo := strconv.Atoi(last[min(1, len(last)):])
	if errFrom != nil || errTo != nil || !orderPattern.MatchString(first) || !orderPattern.MatchString(last) || first[0] != last[0] || from >= to {
		return nil, w.errorf("%q is no range of orders such as B1..B500", w.text)
	}
	if to-from >= most {
		return nil, w.errorf("a range has at most %d orders", most)
	}
	var numbers []string
	for n := from; n <= to; n++ {
		numbers = append(numbers, first[:1]+strconv.Itoa(n))
	}
	return numbers, nil
}

// on reads "on NODE" where a line may say so.
func (p *parser) on(l *cursor, may bool, what string, nodes []string) (string, error) {
	if !may || !l.skip(onWord) {
		return "", nil
	}
	return l.oneOf(what, nodes)
}

const operatorActor = "operator"

// handVerbs are what an operator does to a row.
var handVerbs = []string{"deletes", "edits"}

// hand reads "record A", and "by -1.00 CNY" of what is edited.
func (p *parser) hand(l *cursor, h Hand) error {
	var rows []string
	for _, r := range handRows {
		if !h.Edits || !r.noAmount {
			rows = append(rows, r.word)
		}
	}
	var err error
	if h.What, err = l.oneOf("row", rows); err != nil {
		return err
	}
	number, err := l.take("an order's number")
	if err != nil {
		return err
	}
	if p.x.order(number.text) == nil {
		return number.errorf("%s", p.x.unknownOrder(number.text))
	}
	if h.Order = number.text; h.Edits {
		if h.Cents, err = l.difference(); err != nil {
			return err
		}
	}
	if slices.Contains(p.x.Hands, h) {
		return l.words[0].errorf("this stands here a second time")
	}
	p.x.Hands = append(p.x.Hands, h)
	return nil
}

// pin reads what follows a pin's verb.
func (p *parser) pin(l *cursor, pin Pin) (err error) {
	v := pinVerbOf(pin.Actor, pin.Verb)
	if !v.noOrder {
		number, err := l.take("an order's number")
		if err != nil {
			return err
		}
		if p.x.order(number.text) == nil {
			return number.errorf("%s", p.x.unknownOrder(number.text))
		}
		pin.Order = number.text
	}
	if words := v.words(); len(words) > 0 {
		if pin.What, err = l.oneOf("word after "+pin.Actor+" "+pin.Verb, words); err != nil {
			return err
		}
	}
	if pin.On, err = p.on(l, true, "node of the "+pin.Actor, p.nodesOf(pin.Actor)); err != nil {
		return err
	}
	if v.sends && l.skip(toWord) {
		if pin.To, err = l.oneOf("shop", shopNames(p.x.Shop)); err != nil {
			return err
		}
	}
	p.x.Pins = append(p.x.Pins, pin)
	p.pins = append(p.pins, l.words[0])
	return nil
}

// nodesOf returns where an actor may act.
func (p *parser) nodesOf(actor string) []string {
	switch actor {
	case "channel":
		c := p.x.Case()
		return c.channels()
	case "stock":
		return []string{"stock"}
	}
	return shopNames(p.x.Shop)
}

// payWindow finds the one window of the shops that gives all orders their deadlines.
func (p *parser) payWindow() error {
	for _, number := range p.numbers {
		l, ok := p.expires[number.text]
		if !ok {
			continue
		}
		at := l.here()
		expires, err := p.clock(&l)
		if err != nil {
			return err
		}
		window := expires - p.created[number.text]
		switch {
		case window < time.Second:
			return at.errorf("order %s expires less than a second after it is created", number.text)
		case p.x.PayWindow == 0:
			p.x.PayWindow = window
		case p.x.PayWindow != window:
			return at.errorf("order %s would wait %v for its money and others %v: the shops have one window for all", number.text, window, p.x.PayWindow)
		}
	}
	return nil
}
