package scenarios

import (
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// survey keeps the names of a run's steps and answers until the run is over: until
// nothing is pending, no buyer waits, and what was under way has arrived.
type survey struct {
	// node and from ask only for the steps of one node after a certain step.
	node, from string
	begun      bool

	settled    func() bool
	busy       time.Duration   // when something was last pending
	steps      []string        // of what may crash
	answers    []string        // messages
	statements map[string]bool // that were reached, see statementNames
	counted    struct{ steps, answers int }
}

// grace is how long after the last thing that was pending the run goes on: the
// longest that anybody waits for an answer.
const grace = patience

// begin prepares for a run, the first or another.
func (s *survey) begin(w *world) {
	*s = survey{node: s.node, from: s.from, begun: s.from == "", settled: w.evidence.Settled, statements: map[string]bool{}}
}

// end forgets what came after the run was over.
func (s *survey) end() { s.steps, s.answers = s.steps[:s.counted.steps], s.answers[:s.counted.answers] }

// whole says that the survey is of the whole run: then no run of a loop may be left
// out.
func (s *survey) whole() bool { return s.from == "" }

func (s *survey) step(step sim.Step) {
	if name := step.Name(); s.begun && mayCrash(step.Node) && (s.node == "" || s.node == step.Node) {
		s.steps = append(s.steps, name)
	} else if name == s.from {
		s.begun = true
	}
	if s.whole() {
		s.statements[folderOf(step.Node)+"/"+step.Op] = true
		s.statements["system/sqldb/"+step.Op] = true
	}
	s.count(step.At, step.Node)
}

func (s *survey) message(m *sim.Message) {
	if m.Leg == sim.Answer {
		s.answers = append(s.answers, m.Name())
		s.count(m.At, m.From)
	}
}

func (s *survey) count(at time.Duration, node string) {
	if !s.settled() || node == "buyer" {
		s.busy = at
	}
	if at <= s.busy+grace {
		s.counted.steps, s.counted.answers = len(s.steps), len(s.answers)
	}
}

// mayCrash spares those who are no part of the system.
func mayCrash(node string) bool { return node != "buyer" && node != "staff" }

// folderOf returns where the code of a node comes from.
func folderOf(node string) string {
	switch {
	case strings.HasPrefix(node, "shop"):
		return "system"
	case node == "stock":
		return "system/inventory"
	}
	return "system/channel"
}

// surveyed is a plan in a run that is surveyed.
type surveyed struct {
	*faults.Script
	survey *survey
}

// Step implements [sim.Faults].
func (s surveyed) Step(step sim.Step) sim.Strike {
	s.survey.step(step)
	return s.Script.Step(step)
}

// Message implements [sim.Faults].
func (s surveyed) Message(m *sim.Message) sim.Passage {
	s.survey.message(m)
	return s.Script.Message(m)
}

// Armed implements [sim.Foresight].
func (s surveyed) Armed(step sim.Step) bool { return s.survey.whole() || s.Script.Armed(step) }

// Over implements [sim.Foresight].
func (s surveyed) Over(at time.Duration) bool { return !s.survey.whole() && s.Script.Over(at) }
