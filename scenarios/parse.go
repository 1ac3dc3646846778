package scenarios

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
)

// ParseIncident reads an incident file. name is the file's, for errors and reports;
// an error is "name:line:column: message".
func ParseIncident(name, text string) (*Incident, error) {
	p := &parser{x: &Incident{Name: name}, created: map[string]time.Duration{}, said: map[string]bool{}}
	if err := p.parse(readDocument(text)); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return p.x, nil
}

// parser fills in an incident.
type parser struct {
	x       *Incident
	numbers []word                   // of the orders, where they are declared
	expires map[string]cursor        // what stands after expires, by order
	created map[string]time.Duration // by order
	said    map[string]bool          // what may be said once
}

// sectionNames are the sections in the order in which they are read, wherever they
// stand.
var sectionNames = []string{"setup", "timeline", "faults"}

func (p *parser) parse(d document) error {
	if err := checkStory(d.story); err != nil {
		return err
	}
	found := map[string]section{}
	for _, s := range d.sections {
		if !slices.Contains(sectionNames, s.name.text) {
			return s.name.errorf("unknown section %q; there are %s", s.name.text, strings.Join(sectionNames, ", "))
		}
		if _, twice := found[s.name.text]; twice {
			return s.name.errorf("the section %q stands here a second time", s.name.text)
		}
		found[s.name.text] = s
	}
	p.x.Story = d.story
	if err := p.setup(found["setup"]); err != nil {
		return err
	}
	if err := p.timeline(found["timeline"]); err != nil {
		return err
	}
	return p.faults(found["faults"])
}

// checkStory refuses text above the sections that is no comment: it is more likely a
// section without its head.
func checkStory(story string) error {
	number := 0
	for line := range strings.Lines(story) {
		number++
		if line != "\n" && line[0] != '#' {
			return word{line: number, column: 1}.errorf("above the first section there are only comments, which begin with #")
		}
	}
	return nil
}

// settings are what a line of the setup may say, in the order in which they are read,
// wherever they stand: an order must know the start and the stock.
var settings = []struct {
	name string
	read func(*parser, *cursor) error
}{
	{"start", (*parser).start}, {"policy", (*parser).policy}, {"stock", (*parser).stock},
	{"order", (*parser).order}, {"must-fail", (*parser).mustFail},
}

func (p *parser) setup(s section) error {
	var names []string
	for _, one := range settings {
		names = append(names, one.name)
	}
	for _, l := range s.lines {
		if len(l.words) == 0 {
			continue
		}
		if _, err := (&cursor{words: l.words}).oneOf("word", names); err != nil {
			return err
		}
	}
	for _, one := range settings {
		for _, l := range s.lines {
			if len(l.words) == 0 || l.words[0].text != one.name {
				continue
			}
			c := &cursor{words: l.words, next: 1}
			if err := one.read(p, c); err != nil {
				return err
			}
			if err := c.end(); err != nil {
				return err
			}
		}
	}
	return nil
}

// once refuses what has been said before.
func (p *parser) once(w word, what string) error {
	if p.said[what] {
		return w.errorf("%s stands here a second time", what)
	}
	p.said[what] = true
	return nil
}

func (p *parser) start(l *cursor) error {
	if err := p.once(l.words[0], "start"); err != nil {
		return err
	}
	day, err := l.take("a date, for example 2026-03-02")
	if err != nil {
		return err
	}
	clock, err := l.take("a time, for example 14:00:00.000")
	if err != nil {
		return err
	}
	text := day.text + "T" + clock.text
	at, err := time.ParseInLocation(clockFormat, text, zone)
	if err != nil || !clockPattern.MatchString(text) {
		return day.errorf("%s %s is not a time such as 2026-03-02 14:00:00.000", day.text, clock.text)
	}
	p.x.Start = at
	return nil
}

func (p *parser) policy(l *cursor) error {
	var names []string
	for _, one := range policyLines {
		names = append(names, one.name)
	}
	at := l.here()
	name, err := l.oneOf("policy", names)
	if err != nil {
		return err
	}
	if err := p.once(at, "policy "+name); err != nil {
		return err
	}
	one := policyLines[slices.Index(names, name)]
	value, err := l.oneOf("value of the policy "+name, one.values)
	if err != nil {
		return err
	}
	one.set(&p.x.Policy, value)
	return nil
}

func (p *parser) stock(l *cursor) error {
	sku, err := l.take("a SKU, for example S1")
	if err != nil {
		return err
	}
	if !skuPattern.MatchString(sku.text) {
		return sku.errorf("%q is not a SKU such as S1", sku.text)
	}
	if err := p.once(sku, "stock "+sku.text); err != nil {
		return err
	}
	n, err := l.number("stock", maxStock)
	if err != nil {
		return err
	}
	if p.x.Stock == nil {
		p.x.Stock = map[string]int64{}
	}
	p.x.Stock[sku.text] = n
	return nil
}

const maxStock = 1_000_000

var (
	orderPattern = regexp.MustCompile(`^[A-Z][0-9]{0,6}$`)
	skuPattern   = regexp.MustCompile(`^S[0-9]{1,6}$`)
	clockPattern = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.(\d{3}|\d{6})$`)
	wordPattern  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
)

func (p *parser) order(l *cursor) error {
	number, err := l.take("an order's number, for example A")
	if err != nil {
		return err
	}
	if !orderPattern.MatchString(number.text) {
		return number.errorf("%q is not an order's number such as A or A17", number.text)
	}
	if err := p.once(number, "order "+number.text); err != nil {
		return err
	}
	o := NumberedOrder{number.text, Order{Channel: channelNames[0]}}
	if o.Cents, err = l.amount(); err != nil {
		return err
	}
	p.numbers = append(p.numbers, number)
	if err := p.orderDetails(l, &o); err != nil {
		return err
	}
	if o.SKU == number.text {
		return number.errorf("an order and a SKU can't both be called %s: steps are named by orders", number.text)
	}
	p.x.Orders = append(p.x.Orders, o)
	return nil
}

// orderDetails reads what an order may have: sku S1, quantity 2, and so on.
func (p *parser) orderDetails(l *cursor, o *NumberedOrder) error {
	for !l.done() {
		at := l.here()
		name, err := l.oneOf("word", []string{"sku", "quantity", "channel", "expires"})
		if err != nil {
			return err
		}
		if err := p.once(at, name+" of order "+o.Number); err != nil {
			return err
		}
		switch name {
		case "sku":
			if o.SKU, err = p.sku(l); o.Quantity == 0 {
				o.Quantity = 1
			}
		case "quantity":
			o.Quantity, err = l.number("quantity", maxStock)
		case "channel":
			o.Channel, err = l.oneOf("channel", channelNames)
		case "expires":
			err = p.expiresAt(l, o.Number)
		}
		if err != nil {
			return err
		}
	}
	if o.Quantity > 0 && o.SKU == "" {
		return l.words[0].errorf("order %s has a quantity, but no sku", o.Number)
	}
	return nil
}

func (p *parser) sku(l *cursor) (string, error) {
	sku, err := l.take("a SKU")
	if err != nil {
		return "", err
	}
	if _, own := p.x.Stock[sku.text]; !own && usualStock[sku.text] == 0 {
		return "", sku.errorf("there is no stock of %q; a line such as 'stock %s 10' puts some in", sku.text, sku.text)
	}
	return sku.text, nil
}

// expiresAt keeps an order's deadline until it is known when the order is created.
func (p *parser) expiresAt(l *cursor, number string) error {
	if p.expires == nil {
		p.expires = map[string]cursor{}
	}
	p.expires[number] = *l
	_, err := p.clock(l)
	return err
}

func (p *parser) mustFail(l *cursor) error {
	defect, err := l.take("a defect's name")
	if err != nil {
		return err
	}
	if !wordPattern.MatchString(defect.text) {
		return defect.errorf("%q is not a defect's name, such as close-without-condition", defect.text)
	}
	var names []string
	for _, one := range checker.Properties() {
		names = append(names, one.Name)
	}
	property, err := l.oneOf("property", names)
	if err != nil {
		return err
	}
	p.x.MustFail = append(p.x.MustFail, MustFail{defect.text, property})
	return p.once(defect, "must-fail "+defect.text)
}

// clockFormat is a time with its day; Go reads parts of a second behind it.
const clockFormat = "2006-01-02T15:04:05"

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
		op, err := p.operation(c)
		if err != nil {
			return err
		}
		if err := c.end(); err != nil {
			return err
		}
		p.x.Operations = append(p.x.Operations, op)
	}
	for _, number := range p.numbers {
		if _, ok := p.created[number.text]; !ok {
			return number.errorf("no line of the timeline creates order %s", number.text)
		}
	}
	if len(p.x.Operations) == 0 {
		return word{line: 1, column: 1}.errorf("there is no timeline: nothing would happen")
	}
	return p.payWindow()
}

func (p *parser) operation(l *cursor) (op Operation, err error) {
	when := l.here()
	if op.At, err = p.clock(l); err != nil {
		return op, err
	}
	if op.At < (&Workload{Operations: p.x.Operations}).end() {
		return op, when.errorf("%s is before the line above: time goes backwards", when.text)
	}
	verb, err := timelineVerbOf(l)
	if err != nil {
		return op, err
	}
	op.Verb = verb.verb
	number, err := l.take("an order's number")
	if err != nil {
		return op, err
	}
	if p.x.order(number.text) == nil {
		return op, number.errorf("unknown order %q; the setup has no line 'order %s ...'", number.text, number.text)
	}
	op.Order = number.text
	if _, ok := p.created[op.Order]; !ok && op.Verb == Creates {
		p.created[op.Order] = op.At
	}
	if verb.read != nil {
		err = verb.read(p.x, l, &op)
	}
	return op, err
}

func timelineVerbOf(l *cursor) (timelineVerb, error) {
	var actors, verbs []string
	for _, v := range timelineVerbs {
		actors = append(actors, v.actor)
	}
	actor, err := l.oneOf("actor", slices.Compact(actors))
	if err != nil {
		return timelineVerb{}, err
	}
	for _, v := range timelineVerbs {
		if v.actor == actor {
			verbs = append(verbs, string(v.verb))
		}
	}
	verb, err := l.oneOf("verb of the "+actor, verbs)
	if err != nil {
		return timelineVerb{}, err
	}
	i := slices.IndexFunc(timelineVerbs, func(v timelineVerb) bool { return v.actor == actor && string(v.verb) == verb })
	return timelineVerbs[i], nil
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

// faults reads the plan. Its errors have lines and columns of their own.
func (p *parser) faults(s section) error {
	plan, err := faults.ParsePlan(s.text)
	if err == nil {
		p.x.Faults = plan
		return nil
	}
	line, rest, _ := strings.Cut(err.Error(), ":")
	column, message, _ := strings.Cut(rest, ": ")
	n, errLine := strconv.Atoi(line)
	m, errColumn := strconv.Atoi(column)
	if errors.Join(errLine, errColumn) != nil {
		return s.name.errorf("%v", err)
	}
	return word{line: s.name.line + n, column: m}.errorf("%s", message)
}
