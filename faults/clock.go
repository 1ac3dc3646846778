package faults

import (
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

var clockKinds = []spec{
	{
		name: Skew, sentence: "a node's clock is ahead, or behind, from the start, until it is set right",
		actor: "clock", verb: "skews", anchor: atNode, params: []param{by, forLong},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Skew(p.By) },
	},
	{
		name: Drift, sentence: "a node's clock runs fast, or slow, by so many parts per million",
		actor: "clock", verb: "drifts", anchor: atNode, params: []param{{"ppm", fieldN}, forLong},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Drift(p.N) },
	},
	{
		name: Jump, sentence: "a node's clock jumps, until it is set right",
		actor: "clock", verb: "jumps", anchor: atNode, params: []param{by, from, forLong},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Jump(p.By) },
	},
	{
		name: Zone, sentence: "a node shows the time of another zone, where summer time may begin or end meanwhile",
		actor: "clock", verb: "moves", anchor: atNode, params: []param{{"to", fieldText}}, choices: []string{"America/New_York", "UTC", "Asia/Tokyo"},
		clock: func(c *sim.NodeClock, p Perturbation) { c.Move(zoneNamed(p.Text)) },
	},
}

// zoneNamed returns a zone; one that is not known is UTC.
func zoneNamed(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}
