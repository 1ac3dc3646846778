package faults

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for machines that have no zone database of their own

	"github.com/tillstorm/tillstorm/sim"
)

// What happens to a node's clock. No database and no property goes by it. In the end
// it is set right, as by a time server.
const (
	Skew  Kind = "skew"
	Drift Kind = "drift"
	Jump  Kind = "jump"
	Zone  Kind = "zone"
)

var (
	ahead  = duration("by", fieldBy, -week, week)
	toZone = param{word: "to", field: fieldText, form: "ZONE", mistake: zoneMistake}
	zones  = []string{"America/New_York", "UTC", "Asia/Tokyo"}
)

var clockKinds = []spec{
	{
		name: Skew, sentence: "a node's clock is ahead, or behind, from the start, until it is set right",
		actor: "clock", verb: "skews", anchor: atNode, params: []param{ahead, forLong},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Skew(p.By) },
	},
	{
		name: Drift, sentence: "a node's clock runs fast, or slow, by so many parts per million",
		actor: "clock", verb: "drifts", anchor: atNode, params: []param{number("ppm", -100_000, 100_000), forLong},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Drift(p.N) },
	},
	{
		name: Jump, sentence: "a node's clock jumps, until it is set right",
		actor: "clock", verb: "jumps", anchor: atNode, params: []param{ahead, from, forLong},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Jump(p.By) },
	},
	{
		name: Zone, sentence: "a node shows the time of another zone, where summer time may begin or end meanwhile",
		actor: "clock", verb: "moves", anchor: atNode, params: []param{toZone}, choices: zones,
		clock: func(c *sim.NodeClock, p Perturbation) { c.Move(zoneOf(p)) },
	},
}

// zoneMistake says what is wrong with a zone's name. No name, and Local, would be what
// the machine's own zone makes of them.
func zoneMistake(name string) string {
	if _, err := time.LoadLocation(name); err != nil || name == "" || name == "Local" {
		return fmt.Sprintf("unknown zone %q; there are those of the time zone database, such as %s", name, strings.Join(zones, ", "))
	}
	return ""
}

// zoneOf returns the zone of a plan, whose parser knows it.
func zoneOf(p Perturbation) *time.Location {
	zone, err := time.LoadLocation(p.Text)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", p, err)) // a plan that nobody has parsed
	}
	return zone
}
