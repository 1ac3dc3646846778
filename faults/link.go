package faults

import (
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// What happens to the network between two nodes, for a while. It is repaired in the end.
const (
	Partition Kind = "partition"
	OneWay    Kind = "one-way"
	Clog      Kind = "clog"
)

var linkKinds = []spec{
	{
		name: Partition, sentence: "nothing gets from one node to the other or back, until it is repaired",
		actor: network, verb: "parts", anchor: atWay, params: []param{from, forLong},
		way: func(way *sim.Way, _ Perturbation) { way.Cut = true },
	},
	{
		name: OneWay, sentence: "nothing gets from one node to the other, while the other direction is fine",
		actor: network, verb: "cuts", anchor: atWay, params: []param{from, forLong},
		way: func(way *sim.Way, _ Perturbation) { way.Cut = true },
	},
	{
		name: Clog, sentence: "everything on the way from one node to the other takes longer",
		actor: network, verb: "clogs", anchor: atWay, params: []param{by, from, forLong},
		way: func(way *sim.Way, p Perturbation) { way.Slow += p.By },
	},
}

// Way implements sim.Links.
func (s *Script) Way(from, to string, at time.Duration) (way sim.Way) {
	for _, w := range s.ways {
		if w.perturbation.within(at) && (w.from == from && w.to == to || w.both && w.from == to && w.to == from) {
			w.spec.way(&way, w.perturbation)
			s.once(w.perturbation, at)
		}
	}
	return way
}

// way is a perturbation of the way between two nodes.
type way struct {
	perturbation Perturbation
	spec         *spec
	from, to     string
	both         bool
}

func wayOf(p Perturbation, s *spec) way {
	w := way{perturbation: p, spec: s}
	if w.from, w.to, w.both = strings.Cut(p.At, "<>"); !w.both {
		w.from, w.to, _ = strings.Cut(p.At, ">")
	}
	return w
}
