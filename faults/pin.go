package faults

import (
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Pin holds a step of the system until a time, so that what the step does is there just
// then, whatever the seed. It is a stall whose end is known and whose length is not.
//
// A step is named by what stays the same in every run: who takes it, what it is about,
// which operation it is. Of several pins of one group, the first step that fits takes the
// first pin, the second step the second, and so on.
type Pin struct {
	Group string        // "channel callback A paid"
	Until time.Duration // when it is there, true time since the world's start
	Takes time.Duration // from the step to what it does
	Node  string        // only there; "" for any
	About string        // what the step is about; "" for anything
	// Within is how long before Until a step may be held; 0: however long.
	Within time.Duration
	Hold   Hold
	// Before are steps on the way to Hold at which most of the time is waited, until Lead
	// before it: where at Hold itself a lock is in hand, or a call's patience runs out.
	Before []Hold
	Lead   time.Duration
	// Sends is the kind of request that leaves right after the step, "" if none does. It
	// takes the usual time to its receiver: to the node To, where that is not "".
	Sends, To string
	// Trails says that the steps that nobody pins keep their distance from a pinned one.
	Trails bool
}

// Hold tells steps by role and operation.
type Hold struct {
	Nodes  []string // nil: any
	Roles  []string // of the task, see [sim.Role]
	Key    string   // how the task's key begins
	Op     string
	Phase  sim.Phase
	Passed string // an operation that the task must have passed since its last BEGIN
}

// tolerance is how late a pin may be: as long as another task needs to give up a lock.
const tolerance = time.Millisecond

// Missed is a pin that was not kept.
type Missed struct {
	Pin     int           // its place among the pins
	Late    time.Duration // how late it was reached; 0: never
	Nearest string        // the step that came nearest, "" if none did
	At      time.Duration // when that was
}

// board keeps the pins of a run, and what it must know of the tasks to tell their steps.
type board struct {
	pins  []Pin
	about func(text string) string
	state []pinned          // of each pin
	tasks map[string]*trail // by NODE/TASK
	shift map[string]time.Duration
	sends []Pin // that are about to send
}

// pinned is what has become of a pin.
type pinned struct {
	reached bool
	at      time.Duration // when it was
	near    string
	nearAt  time.Duration
}

// trail is what a task has done last.
type trail struct {
	about  string   // what its operations were about
	passed []string // since BEGIN
}

// Pin puts pins into the script. about finds what a key or an operation is about.
func (s *Script) Pin(pins []Pin, about func(text string) string) {
	if len(pins) > 0 {
		s.board = &board{
			pins: pins, about: about, state: make([]pinned, len(pins)),
			tasks: map[string]*trail{}, shift: map[string]time.Duration{},
		}
	}
}

// Missed returns the pins that were not kept.
func (s *Script) Missed() (missed []Missed) {
	if s.board == nil {
		return nil
	}
	for i, p := range s.board.state {
		late := p.at - s.board.pins[i].Until
		switch {
		case !p.reached:
			missed = append(missed, Missed{Pin: i, Nearest: p.near, At: p.nearAt})
		case late > tolerance:
			missed = append(missed, Missed{Pin: i, Late: late, Nearest: p.near, At: p.nearAt})
		}
	}
	return missed
}

// hold returns how long the step is to wait.
func (b *board) hold(s *sim.Step) (wait time.Duration) {
	t := b.follow(s)
	var taken []int
	for i := range b.pins {
		p := &b.pins[i]
		switch {
		case b.state[i].reached:
		case p.Hold.fits(s, t) && b.isOf(p, t) && p.isAt(s):
			if b.agree(taken, i) {
				taken = append(taken, i)
				wait = max(wait, p.Until-p.Takes-s.At)
			}
		case b.isOf(p, t) && p.resembles(s, t):
			b.state[i].compare(p, s)
		case b.isOf(p, t) && p.isAt(s) && b.isNext(i) && slices.ContainsFunc(p.Before, func(h Hold) bool { return h.fits(s, t) }):
			wait = max(wait, p.Until-p.Takes-p.Lead-s.At)
		}
	}
	for _, i := range taken {
		p, state := &b.pins[i], &b.state[i]
		state.reached, state.at, state.near, state.nearAt = true, s.At+wait+p.Takes, s.Name(), s.At
		b.shift[p.Group] = wait
		if p.Sends != "" {
			b.sends = append(b.sends, *p)
		}
	}
	if len(taken) == 0 {
		wait = max(wait, b.behind(s, t))
	}
	return wait
}

// agree says whether a step that has taken pins may take one more: of another group, for
// the same time.
func (b *board) agree(taken []int, i int) bool {
	return !slices.ContainsFunc(taken, func(j int) bool {
		return b.pins[j].Group == b.pins[i].Group || b.pins[j].Until != b.pins[i].Until
	})
}

// follow keeps the task's trail.
func (b *board) follow(s *sim.Step) *trail {
	name := s.Node + "/" + s.Task
	t := b.tasks[name]
	if t == nil {
		t = &trail{about: b.about(keyOf(s.Task))}
		b.tasks[name] = t
	}
	b.note(s, t)
	return t
}

func (b *board) note(s *sim.Step, t *trail) {
	for _, text := range []string{s.Key, s.Op} {
		if about := b.about(text); about != "" {
			t.about = about
			break
		}
	}
	switch {
	case s.Phase != sim.After:
	case s.SQL == sim.SQLBegin:
		t.passed = t.passed[:0]
	case s.SQL != "":
		t.passed = append(t.passed, s.Op)
	}
}

// keyOf returns a task's key: "A" of "callback(A)#2".
func keyOf(task string) string {
	_, key, _ := strings.Cut(task, "(")
	key, _, _ = strings.Cut(key, ")")
	return key
}

func (h *Hold) fits(s *sim.Step, t *trail) bool {
	return h.Op != "" && s.Op == h.Op && s.Phase == h.Phase &&
		slices.Contains(h.Roles, sim.Role(s.Task)) && strings.HasPrefix(keyOf(s.Task), h.Key) &&
		(h.Nodes == nil || slices.Contains(h.Nodes, s.Node)) &&
		(h.Passed == "" || slices.Contains(t.passed, h.Passed))
}

// resembles says whether a step does what the pin is about, whoever takes it and when.
func (p *Pin) resembles(s *sim.Step, t *trail) bool {
	h := p.Hold
	if s.Op != h.Op || s.Phase != h.Phase {
		return false
	}
	if h.Passed != "" || p.Sends != "" && !p.Trails {
		h.Roles = []string{sim.Role(s.Task)}
	}
	h.Nodes = nil
	return h.fits(s, t)
}

// isOf says whether a task is at what the pin is about.
func (b *board) isOf(p *Pin, t *trail) bool { return p.About == "" || p.About == t.about }

// isNext says whether all earlier pins about the same have been reached: what comes before
// them is not on the way to this one.
func (b *board) isNext(i int) bool {
	for j, p := range b.pins {
		if p.About == b.pins[i].About && p.Until < b.pins[i].Until && !b.state[j].reached {
			return false
		}
	}
	return true
}

// isAt says whether a step is where, and when, the pin looks for it.
func (p *Pin) isAt(s *sim.Step) bool {
	return (p.Node == "" || p.Node == s.Node) && (p.Within == 0 || s.At > p.Until-p.Takes-p.Within)
}

// compare keeps the step that came nearest to the pin: the same operation about the same,
// at another time or by somebody else.
func (state *pinned) compare(p *Pin, s *sim.Step) {
	if state.near == "" || (s.At-p.Until).Abs() < (state.nearAt-p.Until).Abs() {
		state.near, state.nearAt = s.Name(), s.At
	}
}

// behind holds what a pin does not speak of back by as much as the pin before it: the
// further copies of a notification keep their distance from it, and never overtake it.
func (b *board) behind(s *sim.Step, t *trail) (wait time.Duration) {
	for i := range b.pins {
		p := &b.pins[i]
		if p.Trails && b.state[i].reached && p.Hold.fits(s, t) && b.isOf(p, t) && s.At < p.Until-p.Takes {
			wait = max(wait, b.shift[p.Group])
		}
	}
	return wait
}

// passage directs a request that a pinned step sends.
func (b *board) passage(m *sim.Message, passage *sim.Passage) {
	if i := b.sending(m); i >= 0 {
		passage.To = b.sends[i].To
		b.sends = slices.Delete(b.sends, i, i+1)
	}
}

func (b *board) sending(m *sim.Message) int {
	return slices.IndexFunc(b.sends, func(p Pin) bool { return m.Leg == sim.Request && m.Kind == p.Sends && m.Key == p.About })
}

// IsPinned says whether a request is about to leave from a pinned step: it takes no more
// than the usual time.
func (s *Script) IsPinned(m *sim.Message) bool { return s.board != nil && s.board.sending(m) >= 0 }

// awaits says whether a pin would hold the step of a run that could be left out.
func (b *board) awaits(s *sim.Step) bool {
	for i := range b.pins {
		p := &b.pins[i]
		if !b.state[i].reached && p.About == "" && p.Hold.fits(s, &trail{}) && p.isAt(s) {
			return true
		}
	}
	return false
}

// over says that no pin is left for a loop, NODE/NAME, at or after a time.
func (b *board) over(loop string, at time.Duration) bool {
	_, name, _ := strings.Cut(loop, "/")
	for i := range b.pins {
		if p := &b.pins[i]; !b.state[i].reached && at < p.Until && slices.Contains(p.Hold.Roles, name) {
			return false
		}
	}
	return true
}
