package scenarios

import (
	"slices"
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
	busy       time.Duration   // until when something was pending, or will be
	steps      []string        // of the system
	answers    []string        // messages
	statements map[string]bool // that were reached, see statementNames
}

// grace is how long after the last thing that was pending a run is over: the longest
// that anybody waits for an answer.
const grace = patience

// begin prepares for a run of a case, the first or another.
func (s *survey) begin(c *Case, w *world) {
	*s = survey{
		node: s.node, from: s.from, begun: s.whole(),
		settled: w.evidence.Settled, busy: c.Workload.end(), statements: map[string]bool{},
	}
}

// whole says that the survey is of the whole run: until that is over, no run of a
// loop may be left out.
func (s *survey) whole() bool { return s.from == "" }

// over says whether the run is over at true time at.
func (s *survey) over(at time.Duration) bool { return at > s.busy+grace }

func (s *survey) step(step sim.Step) {
	folder := folderOf(step.Node)
	if !s.settled() || step.Node == "buyer" {
		s.busy = max(s.busy, step.At)
	}
	if s.whole() {
		s.statements[folder+"/"+step.Op] = true
		s.statements["system/sqldb/"+step.Op] = true
	}
	switch name := step.Name(); {
	case !s.begun:
		s.begun = name == s.from
	case folder != "" && !s.over(step.At) && (s.node == "" || s.node == step.Node):
		s.steps = append(s.steps, name)
	}
}

func (s *survey) message(m *sim.Message) {
	if m.Leg == sim.Answer && !s.over(m.At) {
		s.answers = append(s.answers, m.Name())
	}
}

// folderOf returns where the code of a node comes from, "" for who is no part of the
// system.
func folderOf(node string) string {
	switch {
	case strings.HasPrefix(node, "shop-"):
		return "system"
	case node == "stock":
		return "system/inventory"
	case slices.Contains(channelNames, node):
		return "system/channel"
	}
	return ""
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
func (s surveyed) Armed(step sim.Step) bool { return s.everything(step.At) || s.Script.Armed(step) }

// Over implements [sim.Foresight].
func (s surveyed) Over(loop string, at time.Duration) bool {
	return !s.everything(at) && s.Script.Over(loop, at)
}

// everything says that no step may be left out.
func (s surveyed) everything(at time.Duration) bool { return s.survey.whole() && !s.survey.over(at) }
