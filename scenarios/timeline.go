package scenarios

import (
	"regexp"
	"slices"
	"strings"
	"time"
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
