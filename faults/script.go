package faults

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Script makes a plan happen, and nothing else. It implements [sim.Faults].
type Script struct {
	log
	plan    Plan
	planned map[uint64][]Perturbation // those of steps and messages, by the hash of the name
	ways    []way
	lasting []Perturbation   // those of databases
	loops   map[string]*loop // by node
	// aimed are the tasks, NODE/NAME, whose steps some are of, and until when: for
	// ever, as long as the world's start is not known, and with it what runs are called.
	aimed map[string]time.Duration
	until time.Duration // when the last of databases ends
	board *board        // nil without pins
}

// NewScript returns a script of the plan. What is not anchored to steps and messages
// needs Arm besides.
func NewScript(plan Plan) *Script {
	s := &Script{plan: plan, planned: map[uint64][]Perturbation{}, loops: map[string]*loop{}, aimed: map[string]time.Duration{}}
	for _, p := range plan {
		switch of := p.Kind.spec(); {
		case of == nil:
		case of.drawnOnTheWay():
			h := sim.HashName(p.At)
			s.planned[h] = append(s.planned[h], p)
			if of.anchor == atStep {
				s.aimed[tasksOf(p.At)] = forEver
			}
		case of.anchor == atWay:
			s.ways = append(s.ways, wayOf(p, of))
		case of.anchor == atDatabase:
			s.lasting = append(s.lasting, p)
			s.until = max(s.until, p.From+p.For)
		}
	}
	return s
}

// Hands does to a world what only its wiring knows how to: what concerns channels,
// bills and rows. It calls fired when that has come to pass.
type Hands func(p Perturbation, fired func())

// Arm puts what the plan has for clocks, channels and operators into a world that
// has not begun yet.
func (s *Script) Arm(w *sim.World, hands Hands) {
	clear(s.aimed)
	for _, p := range s.plan {
		of := p.Kind.spec()
		if of != nil && of.anchor == atStep {
			tasks := tasksOf(p.At)
			s.aimed[tasks] = max(s.aimed[tasks], w.RunOf(taskOf(p.At)))
		}
		fired := func() { s.once(p, w.Now()) }
		switch {
		case of == nil, of.strike != nil, of.pass != nil, of.way != nil:
		case of.clock == nil:
			hands(p, fired)
		default:
			armClock(w, p, of, fired)
		}
	}
}

func armClock(w *sim.World, p Perturbation, of *spec, fired func()) {
	for _, n := range w.Nodes() {
		if n.Name != p.At {
			continue
		}
		const first = "" // of what happens at that instant: nobody sees the time before
		w.At(p.From, first, func() { of.clock(n.Clock, p); fired() })
		if p.For > 0 {
			w.At(p.From+p.For, first, n.Clock.SetRight)
		}
	}
}

// Step implements sim.Faults.
func (s *Script) Step(step sim.Step) (strike sim.Strike) {
	s.suffer(&step, &strike)
	return strike
}

// suffer adds to a strike what the plan has for the step.
func (s *Script) suffer(step *sim.Step, strike *sim.Strike) {
	if s.board != nil {
		strike.Stall += max(0, s.board.hold(step))
	}
	if l := s.loops[step.Node]; l != nil && l.dies() {
		crash(strike, l.p)
	}
	for i := range s.lasting {
		if p := &s.lasting[i]; s.slows(p, step) {
			p.Kind.spec().strike(strike, *p)
			s.once(*p, step.At)
		}
	}
	if len(s.aimed) == 0 {
		return
	}
	for _, p := range s.planned[step.Hash()] {
		if of := p.Kind.spec(); of.strike != nil && p.At == step.Name() && of.suits(step) {
			s.strike(of, step, strike, p)
		}
	}
}

func (s *Script) strike(of *spec, step *sim.Step, strike *sim.Strike, p Perturbation) {
	of.strike(strike, p)
	s.add(p, step.At)
	if p.Kind == CrashLoop {
		s.loops[step.Node] = newLoop(p)
	}
}

// slows says whether a perturbation of a database strikes the step.
func (s *Script) slows(p *Perturbation, step *sim.Step) bool {
	return step.Database == p.At && step.SQL != "" && p.within(step.At) && p.Kind.spec().fits(step)
}

func (s *spec) suits(step *sim.Step) bool { return s.fits == nil || s.fits(step) }

// Armed implements sim.Foresight.
func (s *Script) Armed(step sim.Step) bool {
	if l := s.loops[step.Node]; l != nil && l.left > 0 {
		return true
	}
	if s.board != nil && s.board.awaits(&step) {
		return true
	}
	for i := range s.lasting {
		if s.slows(&s.lasting[i], &step) {
			return true
		}
	}
	return slices.ContainsFunc(s.planned[step.Hash()], func(p Perturbation) bool {
		of := p.Kind.spec()
		return of.strike != nil && p.At == step.Name() && of.suits(&step)
	})
}

// Over implements sim.Foresight.
func (s *Script) Over(loop string, at time.Duration) bool {
	for _, l := range s.loops { // order-free: any will do
		if l.left > 0 {
			return false
		}
	}
	if s.board != nil && !s.board.over(loop, at) {
		return false
	}
	aimed, ok := s.aimed[loop]
	return (!ok || at > aimed) && at >= s.until
}

// Message implements sim.Faults.
func (s *Script) Message(m *sim.Message) (passage sim.Passage) {
	if s.board != nil {
		s.board.passage(m, &passage)
	}
	for _, p := range s.planned[m.Hash()] {
		if of := p.Kind.spec(); of.pass != nil && p.At == m.Name() && of.fitsMessage(m) {
			of.pass(&passage, p)
			s.add(p, m.At)
		}
	}
	return passage
}

// Unreached returns what was planned and never came to pass.
func (s *Script) Unreached() Plan {
	fired := map[Perturbation]bool{}
	for _, f := range s.fired {
		fired[f.Perturbation] = true
	}
	var missed Plan
	for _, p := range s.plan {
		if !fired[p] {
			missed = append(missed, p)
		}
	}
	return missed
}

// Firing is a perturbation that came to pass.
type Firing struct {
	Perturbation
	When time.Duration // true time since the world's start
}

// PlanOf returns the plan that makes the firings happen again.
func PlanOf(fired []Firing) Plan {
	plan := make(Plan, len(fired))
	for i, f := range fired {
		plan[i] = f.Perturbation
	}
	return plan
}

// log keeps what was done.
type log struct {
	fired []Firing
	begun map[Perturbation]bool // of those that last
}

// Fired returns what was done so far, in the order in which it happened.
func (l *log) Fired() []Firing { return l.fired }

func (l *log) add(p Perturbation, at time.Duration) { l.fired = append(l.fired, Firing{p, at}) }

// once notes a perturbation that lasts, at its first effect.
func (l *log) once(p Perturbation, at time.Duration) {
	if l.begun[p] {
		return
	}
	if l.begun == nil {
		l.begun = map[Perturbation]bool{}
	}
	l.begun[p] = true
	l.add(p, at)
}

const forEver = time.Duration(math.MaxInt64)

// taskOf is the task of a step's anchor.
func taskOf(at string) string {
	_, rest, _ := strings.Cut(at, "/")
	task, _, _ := strings.Cut(rest, "/")
	return task
}

// tasksOf is what the tasks of a step's anchor are called, NODE/NAME.
func tasksOf(at string) string {
	node, rest, _ := strings.Cut(at, "/")
	return node + "/" + sim.Role(rest)
}

// actorOf is the first part of an anchor: a node, or a channel.
func actorOf(at string) string {
	actor, _, _ := strings.Cut(at, "/")
	return actor
}
