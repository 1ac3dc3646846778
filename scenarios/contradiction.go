package scenarios

import (
	"fmt"
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/system"
)

// checkPins refuses a pin that no run could keep, whatever happens in it: it contradicts
// another line.
func (p *parser) checkPins() error {
	for i, pin := range p.x.Pins {
		for _, check := range []func(int) string{p.pinTwice, p.pinTooEarly, p.pinUnpaid, p.pinUnheard, p.pinOffPath} {
			if mistake := check(i); mistake != "" {
				return p.pins[i].errorf("%s %s", pin, mistake)
			}
		}
	}
	return nil
}

// pinTwice finds what happens once and is pinned again.
func (p *parser) pinTwice(i int) string {
	pin := p.x.Pins[i]
	for _, other := range p.x.Pins[:i] {
		switch {
		case pin.Order != other.Order || pin.Verb != other.Verb || pin.What != other.What:
		case pinVerbOf(pin.Actor, pin.Verb).once, pin.String() == other.String() && pin.At == other.At:
			return fmt.Sprintf("contradicts line %d: that happens once", other.Line)
		}
	}
	return ""
}

// pinTooEarly finds what is pinned before there is an order.
func (p *parser) pinTooEarly(i int) string {
	pin := p.x.Pins[i]
	if created := p.created[pin.Order]; pin.Order != "" && pin.At < created {
		return fmt.Sprintf("is before the order is created, at %s", p.x.clockText(created))
	}
	return ""
}

// pinUnpaid finds a charge, or news of one, before anybody pays.
func (p *parser) pinUnpaid(i int) string {
	pin := p.x.Pins[i]
	if pin.Actor != "channel" || pin.Verb != "charges" && pin.What != "paid" {
		return ""
	}
	paid := func(op Operation) bool { return op.Verb == Pays && op.Order == pin.Order && op.At < pin.At }
	if !slices.ContainsFunc(p.x.Operations, paid) {
		return fmt.Sprintf("can't be: nobody has paid order %s by then", pin.Order)
	}
	return ""
}

// pinUnheard finds the n-th answer to a callback, or its handling, before the n-th callback
// arrives, where that is pinned.
func (p *parser) pinUnheard(i int) string {
	pin := p.x.Pins[i]
	heard := Pin{Actor: "channel", Verb: "callback", Order: pin.Order, What: "paid"}
	if pin.Verb != "handles" && !(pin.Actor == "shop" && pin.Verb == "answers" && pin.What == "callback") {
		return ""
	}
	arrivals := p.timesOf(heard.group(), len(p.x.Pins))
	n := len(p.timesOf(pin.group(), i))
	if n < len(arrivals) && pin.At < arrivals[n] {
		return fmt.Sprintf("is before that callback arrives, at %s", p.x.clockText(arrivals[n]))
	}
	return ""
}

// timesOf returns the times of a group's pins among the first so many.
func (p *parser) timesOf(group string, among int) (times []time.Duration) {
	for _, pin := range p.x.Pins[:among] {
		if pin.group() == group {
			times = append(times, pin.At)
		}
	}
	return times
}

// pinOffPath finds an order that is pinned to a status which it can't come to from the
// one before.
func (p *parser) pinOffPath(i int) string {
	pin := p.x.Pins[i]
	if pin.Verb != "commits" {
		return ""
	}
	for _, other := range slices.Backward(p.x.Pins[:i]) {
		if other.Verb != "commits" || other.Order != pin.Order {
			continue
		}
		if !p.reaches(system.Status(other.What), system.Status(pin.What)) {
			return fmt.Sprintf("contradicts line %d: no order comes from %s to %s", other.Line, other.What, pin.What)
		}
		return ""
	}
	return ""
}

// reaches says whether an order may come from one status to another, in however many steps.
func (p *parser) reaches(from, to system.Status) bool {
	if from == system.Closed && p.x.Policy.LateSuccess == system.LateReinstate {
		from = system.Paid
		if to == from {
			return true
		}
	}
	for _, s := range statements {
		next := system.Status(s.status)
		if (system.Transition{From: from, To: next}).Allowed() && (next == to || p.reaches(next, to)) {
			return true
		}
	}
	return false
}
