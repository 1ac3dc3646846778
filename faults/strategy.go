package faults

import (
	"fmt"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Strategy is how a run's interleaving is varied: which tasks are held up where, and
// for how long. What breaks is the profile's business.
type Strategy struct {
	Name     string
	Sentence string

	stalls func(seed uint64) Odds
	at     func(*sim.Step) bool // where; nil is everywhere
	// slowSites says that some of these sites, the places in the code, are slow in each run,
	// each by a time of its own. inLoops is the range of that time where nobody waits for an
	// answer.
	slowSites bool
	inLoops   Range
}

// Strategies returns the strategies in the order of the docs.
func Strategies() []Strategy {
	return []Strategy{
		{
			Name: "random", Sentence: "tasks are held up at random, some runs much more than others",
			stalls: func(seed uint64) Odds {
				rates := []Rate{{1, 100}, {1, 40}, {1, 15}}
				return Odds{Kind: Stall, Rate: rates[sim.Draw(seed, "stall rate", 0)%3], For: Range{100 * time.Microsecond, 20 * second}}
			},
		},
		{
			Name: "latency", Sentence: "every third operation on behalf of an order takes longer, by up to three seconds",
			stalls: func(uint64) Odds {
				return Odds{Kind: Stall, Rate: Rate{1, 3}, For: Range{10 * time.Microsecond, 3 * second}}
			},
			at: func(s *sim.Step) bool { return s.Phase == sim.Before && onBehalf(s) },
		},
		{
			Name: "priority", Sentence: "one to three steps of the run are held up for long, and nothing else (after PCT)",
			stalls: func(seed uint64) Odds {
				return Odds{Kind: Stall, Rate: Rate{1 + sim.Draw(seed, "stall rate", 0)%3, usualSteps}, For: Range{500 * ms, 2 * minute}}
			},
		},
		{
			Name: "conflict", Sentence: "some of the places where tasks meet are slow, each by a time of its own: the begin and the end of transactions, what waits for a lock, and what is done under a lease",
			stalls: func(uint64) Odds {
				return Odds{Kind: Stall, Rate: Rate{3, 4}, For: Range{10 * ms, 4 * second}}
			},
			slowSites: true,
			inLoops:   Range{10 * ms, 30 * second}, // longer than a lease
			at: func(s *sim.Step) bool {
				return s.Phase == sim.Before && (s.SQL == sim.SQLBegin || s.SQL == sim.SQLCommit || s.Waits || s.Leased)
			},
		},
	}
}

// onBehalf says that the step is taken on behalf of an order, so that somebody may wait for
// it; the others are those of loops.
func onBehalf(s *sim.Step) bool { return strings.Contains(s.Task, "(") }

// usualSteps is how many steps a stall is drawn for until the storm of a default run
// ends: about 6000 that are taken, and those of the loops' runs that are left out
// because they would find nothing.
const usualSteps = 8700

// StrategyNamed returns the strategy of that name.
func StrategyNamed(name string) (Strategy, error) {
	var names []string
	for _, s := range Strategies() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Strategy{}, fmt.Errorf("there is no strategy %q; there are %s", name, strings.Join(names, ", "))
}

// StrategyOf returns the strategy by which a seed's run is varied under the profile:
// the profile's own, or one of the portfolio.
func (p Profile) StrategyOf(seed uint64) Strategy {
	if p.Strategy.Name != "" {
		return p.Strategy
	}
	all := Strategies()
	return all[sim.Draw(seed, "strategy", 0)%uint64(len(all))]
}
