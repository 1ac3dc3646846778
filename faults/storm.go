package faults

import (
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Targets is what there is in a world for things to happen to, apart from the steps
// and messages that a run brings up. Trades and days begin with their channel and a
// slash; rows are DATABASE/TABLE/ORDER.
type Targets struct {
	Nodes     []string // that may crash; clients of the system are spared
	Ways      [][2]string
	Databases []string
	Trades    []string
	Days      []string
	Rows      []string
}

// of returns the names of what a kind can strike.
func (t *Targets) of(s *spec) []string {
	switch s.anchor {
	case atNode:
		return t.Nodes
	case atDatabase:
		return t.Databases
	case atTrade:
		return t.Trades
	case atDay:
		return t.Days
	case atRow:
		return t.Rows
	case atWay:
		return t.ways(s.name == Partition)
	}
	return nil
}

func (t *Targets) ways(both bool) []string {
	var names []string
	for _, w := range t.Ways {
		if both {
			names = append(names, w[0]+"<>"+w[1])
		} else {
			names = append(names, w[0]+">"+w[1], w[1]+">"+w[0])
		}
	}
	return names
}

// Storm draws what goes wrong from a seed: what lasts beforehand, the rest while the
// run goes. It implements [sim.Faults].
type Storm struct {
	*Script
	seed     uint64
	until    time.Duration
	nodes    []string
	strategy Strategy
	steps    []chance // at any step
	rare     []chance // at the few steps that they fit
	messages []chance
	most     uint64 // no step with a greater draw is struck
}

// chance is a kind with its odds.
type chance struct {
	Odds
	spec  *spec
	share uint64
}

// A quarter of the places in the code is active in a run, and struck more often
// than the others: so also what a rare place needs twice comes up.
const (
	activeSites  = 4
	activeFactor = 10 // in quarters
	quietFactor  = 2
)

// slowSite: one site in so many is slow, where the strategy has slow sites.
const slowSite = 5

// A quarter of the trades has nearly all the troubles of a run: what goes wrong needs two
// of them more often than not, such as a query that lags and a notice that never comes.
const (
	troubledTrades = 4
	troubledFactor = 21 // in sixths, so that all trades together have as many as ever
	calmFactor     = 1
)

// NewStorm returns the storm of a seed. It ends at true time until.
func NewStorm(seed uint64, profile Profile, targets Targets, until time.Duration) *Storm {
	s := &Storm{seed: seed, until: until, nodes: targets.Nodes}
	var plan Plan
	for _, o := range profile.Odds {
		if profile.Subset && sim.Draw(seed, "swarm", sim.HashName(string(o.Kind)))%2 == 0 {
			continue
		}
		c := chance{o, o.Kind.spec(), o.Rate.share()}
		switch {
		case !c.spec.drawnOnTheWay():
			plan = append(plan, s.drawLasting(&c, &targets)...)
		case c.spec.anchor == atMessage:
			s.messages = append(s.messages, c)
		case c.spec.rare:
			s.rare = append(s.rare, c)
		default:
			s.steps = append(s.steps, c)
			s.most += c.share * activeFactor / 4
		}
	}
	if len(profile.Odds) > 0 {
		s.strategy = profile.StrategyOf(seed)
		stalls := s.strategy.stalls(seed)
		s.steps = append(s.steps, chance{stalls, Stall.spec(), stalls.Rate.share()})
		s.most += stalls.Rate.share()
	}
	s.Script = NewScript(plan)
	return s
}

// drawLasting draws which targets a kind strikes, and when.
func (s *Storm) drawLasting(c *chance, t *Targets) Plan {
	var plan Plan
	for _, target := range t.of(c.spec) {
		name := sim.HashName(target)
		rate := c.Rate
		if c.spec.anchor == atTrade {
			rate = s.troubles(rate, name)
		}
		if !rate.hit(sim.Draw(s.seed, string(c.Kind), name)) {
			continue
		}
		p := s.fill(c, target, name)
		if c.Kind == SameNumber {
			p.Text = s.otherTrade(t, target, name)
		}
		if c.Kind == SameNumber && (p.Text == "" || plan.hasNumber(p)) {
			continue
		}
		plan = append(plan, p)
	}
	return plan
}

// troubles returns how often a kind strikes this trade.
func (s *Storm) troubles(usual Rate, trade uint64) Rate {
	factor := uint64(calmFactor)
	if sim.Draw(s.seed, "troubled", trade)%troubledTrades == 0 {
		factor = troubledFactor
	}
	return Rate{usual.N * factor, usual.Of * 6}
}

// hasNumber says whether another trade of the same channel is to have the number: no
// channel uses one twice.
func (p Plan) hasNumber(n Perturbation) bool {
	return slices.ContainsFunc(p, func(o Perturbation) bool {
		return o.Kind == SameNumber && o.Text == n.Text && actorOf(o.At) == actorOf(n.At)
	})
}

// otherTrade draws a trade of another channel, whose number the trade's own channel does
// not give by itself.
func (s *Storm) otherTrade(t *Targets, trade string, name uint64) string {
	var others []string
	for _, o := range t.Trades {
		number := o[len(actorOf(o))+1:]
		if actorOf(o) != actorOf(trade) && !slices.Contains(t.Trades, actorOf(trade)+"/"+number) {
			others = append(others, number)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return others[sim.Draw(s.seed, "number", name)%uint64(len(others))]
}

// fill draws the parameters of a perturbation.
func (s *Storm) fill(c *chance, at string, name uint64) Perturbation {
	p := Perturbation{Kind: c.Kind, At: at}
	draw := func(f field) uint64 { return sim.Draw(s.seed, string(c.Kind)+string(f), name) }
	for _, one := range c.spec.params {
		switch one.field {
		case fieldFor:
			p.For = c.For.Draw(draw(fieldFor))
		case fieldBy:
			p.By = c.By.Draw(draw(fieldBy))
			if one.least < 0 && draw("sign")%2 == 0 {
				p.By = -p.By
			}
		case fieldN:
			p.N = c.N[0] + int64(draw(fieldN)%uint64(c.N[1]-c.N[0]+1))
			if p.N == 0 {
				p.N = c.N[1] // nothing is no perturbation
			}
		case fieldText:
			if choices := c.spec.choices; len(choices) > 0 {
				p.Text = choices[draw(fieldText)%uint64(len(choices))]
			}
		}
	}
	for _, one := range c.spec.params {
		if one.field == fieldFrom {
			p.From = time.Duration(draw(fieldFrom) % uint64(s.until)).Truncate(ms)
		}
	}
	if c.spec.clock != nil && c.spec.lasts() || c.spec.anchor == atWay || c.spec.anchor == atDatabase {
		p.For = min(p.For, s.until-p.From) // healed when the storm ends
	}
	if c.spec.takes(forLong.word) && p.For == 0 {
		p.For = s.until - p.From
	}
	return p
}

// Step implements sim.Faults.
func (s *Storm) Step(step sim.Step) (strike sim.Strike) {
	s.suffer(&step, &strike)
	if p, ok := s.drawn(&step); ok {
		s.Script.strike(p.Kind.spec(), &step, &strike, p)
	}
	return strike
}

// drawn returns what the seed has for a step: mostly nothing.
func (s *Storm) drawn(step *sim.Step) (Perturbation, bool) {
	if step.At >= s.until || s.most == 0 {
		return Perturbation{}, false
	}
	name := step.Hash()
	for i := range s.rare {
		if c := &s.rare[i]; c.spec.suits(step) && c.Rate.hit(sim.Draw(s.seed, string(c.Kind), name)) {
			return s.fill(c, step.Name(), name), true
		}
	}
	draw := sim.Draw(s.seed, "step", name) >> 32
	if draw >= s.most {
		return Perturbation{}, false
	}
	site, sum := siteOf(step), uint64(0)
	factor := s.siteFactor(site)
	for i := range s.steps {
		c := &s.steps[i]
		switch {
		case c.Kind == Stall:
			if c = s.stallAt(c, step, site); c != nil {
				sum += c.share
			}
		case c.spec.suits(step) && slices.Contains(s.nodes, step.Node):
			sum += c.share * factor / 4
		}
		if draw < sum {
			return s.fill(c, step.Name(), name), true
		}
	}
	return Perturbation{}, false
}

// stallAt returns the chance of a stall at a step, nil if the strategy has none there.
func (s *Storm) stallAt(c *chance, step *sim.Step, site uint64) *chance {
	switch {
	case s.strategy.at != nil && !s.strategy.at(step):
		return nil
	case !s.strategy.slowSites:
		return c
	case sim.Draw(s.seed, "slow", site)%slowSite != 0:
		return nil
	}
	slow := *c
	by := c.For
	if !onBehalf(step) {
		by = s.strategy.inLoops
	}
	d := by.Draw(sim.Draw(s.seed, "slow by", site))
	slow.For = Range{d / 2, d}
	return &slow
}

// siteOf names a step's place in the code.
func siteOf(step *sim.Step) uint64 {
	return sim.HashName(sim.Role(step.Task) + "/" + step.Op + step.Phase.String())
}

// siteFactor says, in quarters, how much more often than usual a place in the code is
// struck in this run.
func (s *Storm) siteFactor(site uint64) uint64 {
	if sim.Draw(s.seed, "site", site)%activeSites == 0 {
		return activeFactor
	}
	return quietFactor
}

// Message implements sim.Faults.
func (s *Storm) Message(m *sim.Message) (passage sim.Passage) {
	if m.At >= s.until {
		return passage
	}
	name := m.Hash()
	draw, sum := sim.Draw(s.seed, "message", name)>>32, uint64(0)
	for i := range s.messages {
		c := &s.messages[i]
		if !c.spec.fitsMessage(m) {
			continue
		}
		if sum += c.share; draw < sum {
			p := s.fill(c, m.Name(), name)
			c.spec.pass(&passage, p)
			s.add(p, m.At)
			return passage
		}
	}
	return passage
}

// Armed implements sim.Foresight.
func (s *Storm) Armed(step sim.Step) bool {
	_, drawn := s.drawn(&step)
	return drawn || s.Script.Armed(step)
}

// Over implements sim.Foresight.
func (s *Storm) Over(loop string, at time.Duration) bool {
	return at >= s.until && s.Script.Over(loop, at)
}

// Unreached returns nothing: what is drawn may find nothing to strike.
func (s *Storm) Unreached() Plan { return nil }
