package faults

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Rate is a probability, N out of Of.
type Rate struct{ N, Of uint64 }

// hit says whether a draw falls within the rate.
func (r Rate) hit(draw uint64) bool { return r.N > 0 && draw%r.Of < r.N }

// Range is a range of durations. Draws are spread evenly over its orders of
// magnitude, since a race has a length that nobody knows.
type Range struct{ Min, Max time.Duration }

func (r Range) draw(bits64 uint64) time.Duration {
	least := max(r.Min, time.Microsecond) // zero has no order of magnitude
	if r.Max <= least {
		return r.Max
	}
	octaves := uint64(bits.Len64(uint64(r.Max / least)))
	low := least << (bits64 % octaves)
	span := uint64(min(low, r.Max-low))
	d := low + time.Duration(bits64>>8%max(span, 1))
	return min(max(d.Round(time.Microsecond), least), r.Max)
}

// Profile says how often things go wrong, and how badly.
type Profile struct {
	Name string
	// Crash is the chance of a crash at a step of a process that may crash; Restart
	// is how long it stays down: shorter and longer than clients are patient.
	Crash   Rate
	Restart Range
	// Stall is the chance of being held up at a step: up to longer than the
	// clients' patience and than the distance of two scans. Each seed draws one of
	// the rates: where much is held up, races are many but few things get far.
	Stall    []Rate
	StallFor Range
	// Drop is the chance of a message to be lost.
	Drop Rate
	// Delay is the chance of a message to be late: from a reordering of neighbours
	// to a callback that comes minutes after its order was closed.
	Delay    Rate
	DelayFor Range
	// Duplicate is the chance of a request to come twice: at once, or much later.
	Duplicate      Rate
	DuplicateAfter Range
}

// Profiles returns the profiles, the gentlest first.
func Profiles() []Profile {
	storm := Profile{
		Name:  "storm",
		Crash: Rate{1, 400}, Restart: Range{10 * time.Millisecond, time.Minute},
		Stall: []Rate{{1, 100}, {1, 40}, {1, 15}}, StallFor: Range{100 * time.Microsecond, 20 * time.Second},
		Drop:  Rate{1, 25},
		Delay: Rate{1, 4}, DelayFor: Range{100 * time.Microsecond, 4 * time.Minute},
		Duplicate: Rate{1, 12}, DuplicateAfter: Range{10 * time.Microsecond, time.Minute},
	}
	return []Profile{{Name: "calm"}, storm}
}

// ProfileNamed returns the profile of that name.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("there is no profile %q; there are %s", name, strings.Join(names, ", "))
}

// Storm draws what goes wrong from a seed. It implements [sim.Faults].
type Storm struct {
	log
	Profile Profile
	Seed    uint64
	// Until is the true time at which faults stop.
	Until time.Duration
	// MayCrash says which nodes crash; clients of the system should not. Nil spares all.
	MayCrash func(node string) bool
}

// Step implements sim.Faults.
func (s *Storm) Step(step sim.Step) (strike sim.Strike) {
	if step.At >= s.Until {
		return strike
	}
	p, name := &s.Profile, step.Hash()
	if s.stalls(name) {
		s.strike(&step, &strike, Perturbation{Stall, step.Name(), p.StallFor.draw(sim.Draw(s.Seed, "stall for", name))})
	}
	if p.Crash.hit(sim.Draw(s.Seed, "crash", name)) && s.MayCrash != nil && s.MayCrash(step.Node) {
		s.strike(&step, &strike, Perturbation{Crash, step.Name(), p.Restart.draw(sim.Draw(s.Seed, "restart", name))})
	}
	return strike
}

// stalls says whether the task is held up at the step.
func (s *Storm) stalls(name uint64) bool {
	rates := s.Profile.Stall
	if len(rates) == 0 {
		return false
	}
	rate := rates[sim.Draw(s.Seed, "stall rate", 0)%uint64(len(rates))]
	return rate.hit(sim.Draw(s.Seed, "stall", name))
}

// Message implements sim.Faults.
func (s *Storm) Message(m *sim.Message) (passage sim.Passage) {
	if m.At >= s.Until {
		return passage
	}
	p, name := &s.Profile, m.Hash()
	if p.Drop.hit(sim.Draw(s.Seed, "drop", name)) {
		s.pass(m, &passage, Perturbation{Kind: Drop, At: m.Name()})
		return passage
	}
	if p.Delay.hit(sim.Draw(s.Seed, "delay", name)) {
		s.pass(m, &passage, Perturbation{Delay, m.Name(), p.DelayFor.draw(sim.Draw(s.Seed, "delay by", name))})
	}
	if m.Leg == sim.Request && p.Duplicate.hit(sim.Draw(s.Seed, "duplicate", name)) {
		s.pass(m, &passage, Perturbation{Duplicate, m.Name(), p.DuplicateAfter.draw(sim.Draw(s.Seed, "duplicate after", name))})
	}
	return passage
}

// Armed implements sim.Foresight.
func (s *Storm) Armed(step sim.Step) bool {
	if s.Over(step.At) {
		return false
	}
	name := step.Hash()
	return s.stalls(name) ||
		s.Profile.Crash.hit(sim.Draw(s.Seed, "crash", name)) && s.MayCrash(step.Node)
}

// Over implements sim.Foresight.
func (s *Storm) Over(at time.Duration) bool { return at >= s.Until }
