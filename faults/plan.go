package faults

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Kind is what a perturbation does.
type Kind string

const (
	Crash     Kind = "crash"     // the process dies at a step and boots again after For
	Stall     Kind = "stall"     // the task is held up for For at a step
	Drop      Kind = "drop"      // a message is lost
	Delay     Kind = "delay"     // a message takes For longer
	Duplicate Kind = "duplicate" // a request is delivered once more, For after the first time
)

// verbs are the words of a plan's text, and what stands before the duration.
var verbs = []struct {
	kind       Kind
	verb, word string
}{
	{Crash, "crashes", "restarts"},
	{Stall, "stalls", "for"},
	{Drop, "drops", ""},
	{Delay, "delays", "by"},
	{Duplicate, "duplicates", "after"},
}

// Kinds returns the kinds in the order of the docs.
func Kinds() []Kind {
	kinds := make([]Kind, len(verbs))
	for i, v := range verbs {
		kinds[i] = v.kind
	}
	return kinds
}

// Describe returns the kind's meaning in one sentence.
func (k Kind) Describe() string {
	return map[Kind]string{
		Crash:     "the process dies at a step and boots again later",
		Stall:     "the task is held up at a step",
		Drop:      "a request or an answer is lost",
		Delay:     "a request or an answer arrives later",
		Duplicate: "a request arrives once more",
	}[k]
}

// ofMessage says whether the kind is anchored to a message, not to a step.
func (k Kind) ofMessage() bool { return k == Drop || k == Delay || k == Duplicate }

// Perturbation is one thing that goes wrong.
type Perturbation struct {
	Kind Kind          `json:"kind"`
	At   string        `json:"at"` // the name of a step (crash, stall) or of a message
	For  time.Duration `json:"for_ns,omitempty"`
}

// network stands for the actor of what happens to messages.
const network = "network"

// String returns the perturbation as a line of an incident file's faults section:
// "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s".
func (p Perturbation) String() string {
	actor, anchor := network, p.At
	if !p.Kind.ofMessage() {
		actor, anchor, _ = strings.Cut(p.At, "/")
	}
	for _, v := range verbs {
		if v.kind != p.Kind {
			continue
		}
		line := quote(actor) + "  " + v.verb + "  " + quote(anchor)
		if v.word != "" {
			line += "  " + v.word + " " + p.For.String()
		}
		return line
	}
	return fmt.Sprintf("unknown perturbation %q at %s", p.Kind, p.At)
}

// quote keeps a name one word, whatever it has inside: it is as it stands unless it
// is empty, begins a comment, has a blank, or can't be printed.
func quote(name string) string {
	quoted := strconv.Quote(name)
	if name == "" || name[0] == '#' || strings.Contains(name, " ") || quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// Plan is a list of perturbations.
type Plan []Perturbation

// String returns the plan, one line for each perturbation.
func (p Plan) String() string {
	var b strings.Builder
	for _, one := range p {
		b.WriteString(one.String() + "\n")
	}
	return b.String()
}

// ParsePlan reads what String writes. Blank lines and comments after # stand for
// nothing. The error names line and column.
func ParsePlan(text string) (Plan, error) {
	var plan Plan
	for i, line := range strings.Split(text, "\n") {
		words, err := splitWords(line)
		if err == nil && len(words) == 0 {
			continue
		}
		var p Perturbation
		if err == nil {
			p, err = parsePerturbation(words)
		}
		if err != nil {
			var at *wordError
			errors.As(err, &at)
			return nil, fmt.Errorf("%d:%d: %s", i+1, at.column, at.message)
		}
		plan = append(plan, p)
	}
	return plan, nil
}

func parsePerturbation(words []word) (Perturbation, error) {
	if len(words) < 3 {
		return Perturbation{}, words[0].errorf("a fault is: ACTOR VERB ANCHOR [WORD DURATION], for example %q",
			Perturbation{Crash, "shop-1/callback(A)#1/COMMIT:before", 2 * time.Second})
	}
	for _, v := range verbs {
		if words[1].text != v.verb {
			continue
		}
		p := Perturbation{Kind: v.kind, At: words[2].text}
		switch {
		case v.kind.ofMessage() && words[0].text != network:
			return p, words[0].errorf("only the %s %s, not %q", network, v.verb, words[0].text)
		case !v.kind.ofMessage():
			p.At = words[0].text + "/" + p.At
			if !strings.HasSuffix(p.At, ":before") && !strings.HasSuffix(p.At, ":after") {
				return p, words[2].errorf("a step's name ends in :before or :after")
			}
		case v.kind == Duplicate && strings.HasSuffix(p.At, ":answer"):
			return p, words[2].errorf("only a request can be duplicated, not an answer")
		}
		return p, parseDuration(&p, v.word, words)
	}
	return Perturbation{}, words[1].errorf("unknown verb %q: a node crashes or stalls, the %s drops, delays or duplicates", words[1].text, network)
}

func parseDuration(p *Perturbation, before string, words []word) error {
	if before == "" {
		if len(words) > 3 {
			return words[3].errorf("%q is too much here", words[3].text)
		}
		return nil
	}
	if len(words) != 5 || words[3].text != before {
		return words[min(3, len(words)-1)].errorf("%q must be followed by %q and a duration, for example %s 2s", words[2].text, before, before)
	}
	d, err := time.ParseDuration(words[4].text)
	if err != nil || d < 0 {
		return words[4].errorf("%q is not a duration such as 2s or 150ms", words[4].text)
	}
	p.For = d
	return nil
}

// Script makes the plan happen, and nothing else. It implements [sim.Faults].
type Script struct {
	log
	plan    Plan
	planned map[uint64][]Perturbation // by the hash of the name
}

// NewScript returns a script of the plan.
func NewScript(plan Plan) *Script {
	s := &Script{plan: plan, planned: map[uint64][]Perturbation{}}
	for _, p := range plan {
		h := sim.HashName(p.At)
		s.planned[h] = append(s.planned[h], p)
	}
	return s
}

// Step implements sim.Faults.
func (s *Script) Step(step sim.Step) (strike sim.Strike) {
	for _, p := range s.planned[step.Hash()] {
		if !p.Kind.ofMessage() && p.At == step.Name() {
			s.strike(&step, &strike, p)
		}
	}
	return strike
}

// Armed implements sim.Foresight.
func (s *Script) Armed(step sim.Step) bool {
	for _, p := range s.planned[step.Hash()] {
		if !p.Kind.ofMessage() && p.At == step.Name() {
			return true
		}
	}
	return false
}

// Over implements sim.Foresight.
func (s *Script) Over(time.Duration) bool { return len(s.planned) == 0 }

// Message implements sim.Faults.
func (s *Script) Message(m *sim.Message) (passage sim.Passage) {
	for _, p := range s.planned[m.Hash()] {
		if p.Kind.ofMessage() && p.At == m.Name() {
			s.pass(m, &passage, p)
		}
	}
	return passage
}

// Unreached returns what was planned and never came to pass.
func (s *Script) Unreached() Plan {
	var missed Plan
	for _, p := range s.plan {
		if !slices.ContainsFunc(s.fired, func(f Firing) bool { return f.Perturbation == p }) {
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
type log struct{ fired []Firing }

// Fired returns what was done so far, in the order in which it happened.
func (l *log) Fired() []Firing { return l.fired }

func (l *log) strike(step *sim.Step, s *sim.Strike, p Perturbation) {
	l.fired = append(l.fired, Firing{p, step.At})
	if p.Kind == Crash {
		s.Crash, s.Restart = true, p.For
	} else {
		s.Stall += p.For
	}
}

func (l *log) pass(message *sim.Message, passage *sim.Passage, p Perturbation) {
	l.fired = append(l.fired, Firing{p, message.At})
	switch p.Kind {
	case Drop:
		passage.Drop = true
	case Delay:
		passage.Delay += p.For
	case Duplicate:
		passage.Copies = append(passage.Copies, p.For)
	}
}
