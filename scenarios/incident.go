package scenarios

import (
	"maps"
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/faults"
)

// Incident is a run written down: how the shops are configured, what the buyers do,
// and what goes wrong.
type Incident struct {
	Name  string // of its file
	Story string // the comment at its head, with its #
	Start time.Time
	// Policy is how the shops are configured, as far as the file says so.
	Policy Policy
	// PayWindow is how long orders wait for their money, zero if the file says
	// nothing of it.
	PayWindow  time.Duration
	Stock      map[string]int64 // by SKU, where it is not the usual
	Shop       []Setting        // of every shop, and how many there are
	Channels   []ChannelSetup
	Clocks     []ClockSetup
	Orders     []NumberedOrder
	MustFail   []MustFail
	Operations []Operation
	Hands      []Hand
	Pins       []Pin
	Faults     faults.Plan
	Expect     []Expectation
	// Defect is planted in this build, for the lines to paste; no file says so.
	Defect string
}

// NumberedOrder is an order with its number.
type NumberedOrder struct {
	Number string
	Order
}

// MustFail says which property the incident must break when the defect is planted.
type MustFail struct {
	Defect, Property string

	place word // in the file, for errors
}

// Case returns what the incident runs as.
func (x *Incident) Case() Case {
	c := Case{
		File: x.Name, Defect: x.Defect, Start: x.Start, Policy: x.Policy, PayWindow: x.PayWindow, Stock: x.Stock,
		Shop: x.Shop, Channels: x.Channels, Pins: x.Pins, Expect: x.expectations(),
		Workload: Workload{Orders: map[string]*Order{}, Operations: x.Operations},
		Plan:     append(append(faults.Plan{}, x.setupPlan()...), x.Faults...),
	}
	for _, o := range x.Orders {
		order := o.Order
		c.Workload.Orders[o.Number] = &order
	}
	return c
}

// IncidentOf writes down a run: what was drawn of it, and what went wrong. The
// incident has the same trace.
func IncidentOf(r *Result) *Incident {
	c := r.Case
	x := &Incident{
		Story: "# What was drawn of " + c.Title(), Start: c.Start, Policy: c.Policy, PayWindow: c.PayWindow, Stock: c.Stock,
		Shop: c.Shop, Channels: c.Channels, Pins: c.Pins,
		Operations: c.Workload.Operations, Faults: faults.PlanOf(r.Fired),
	}
	for _, number := range slices.Sorted(maps.Keys(c.Workload.Orders)) {
		x.Orders = append(x.Orders, NumberedOrder{number, *c.Workload.Orders[number]})
	}
	return x
}

// order returns an order of the incident, nil if there is none of that number.
func (x *Incident) order(number string) *NumberedOrder {
	for i := range x.Orders {
		if x.Orders[i].Number == number {
			return &x.Orders[i]
		}
	}
	return nil
}

// start is when the incident's world begins.
func (x *Incident) start() time.Time {
	if x.Start.IsZero() {
		return usualStart
	}
	return x.Start
}

// attemptOn returns which attempt of an order the operations open on a channel, 0
// if none does: the shop opens one on each channel that it is asked for.
func (x *Incident) attemptOn(channel string, order *NumberedOrder, before []Operation) int {
	opened := []string{order.Channel}
	for _, op := range before {
		if op.Verb == Attempts && op.Order == order.Number && !slices.Contains(opened, op.Channel) {
			opened = append(opened, op.Channel)
		}
	}
	return 1 + slices.Index(opened, channel)
}
