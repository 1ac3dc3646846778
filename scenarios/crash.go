package scenarios

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/faults"
)

// CrashEnumeration runs an incident once for each step of it, with a crash there, and
// once for each answer in it, with that lost. With depth 2 it crashes the same node
// once more, at the steps of its recovery.
//
// The points are the steps of all nodes of the system, boot and idle polling
// included, until the incident is over: no buyer waits for an answer, nothing is
// pending, and five seconds more, in which what was under way arrives.
//
// The steps of a recovery are those of the node from its crash on, until the run is
// over, without the polling that finds nothing.
type CrashEnumeration struct {
	Incident *Incident
	Depth    int // 1 or 2
	// Budget is the most runs that depth 2 adds; beyond it, the pairs of crashes are
	// sampled evenly.
	Budget  int
	Workers int // worlds at once; by default one for each processor
	// Progress, if set, is told what comes next and how many runs that takes; what it
	// returns is called after each run.
	Progress func(what string, runs int) func(done, failed int)
}

// restart is how long a process that was crashed stays down.
const restart = time.Second

// CrashReport is what became of a crash enumeration. Its JSON is the contract with CI.
type CrashReport struct {
	File            string `json:"file"`
	Depth           int    `json:"depth"`
	Points          int    `json:"points"`          // steps at which a process can die
	Replies         int    `json:"replies"`         // answers that can be lost
	RecoveryPoints  int    `json:"recovery_points"` // of depth 2: pairs of crashes
	Tried           int    `json:"tried"`
	TriedInRecovery int    `json:"tried_in_recovery"` // of these, pairs of crashes
	Verdicts
	// StatementsWithoutPoint are the named statements that the run never came to.
	StatementsWithoutPoint []string      `json:"statements_without_point"`
	Failures               []SeedFailure `json:"failures"`
	WallNs                 int64         `json:"wall_ns"`
}

// Run runs the enumeration. It ends early, with what it has, when the context does.
// An incident that does not pass by itself is not crashed: its own failures are the
// report. An error is about the harness.
func (e CrashEnumeration) Run(ctx context.Context) (*CrashReport, error) {
	began := time.Now()
	r := &CrashReport{File: e.Incident.Name, Depth: e.Depth, Failures: []SeedFailure{}}
	whole := &survey{}
	c := e.Incident.Case()
	c.survey = whole
	own, _, err := runAll(1, slices.Values([]job{{c: c, twice: true}}), nil)
	if err != nil {
		return nil, err
	}
	r.Points, r.Replies = len(whole.steps), len(whole.answers)
	r.StatementsWithoutPoint = statementsWithout(whole.statements)
	if own[0].verdict == Pass {
		err = e.enumerate(ctx, r, whole)
	} else {
		r.add(own)
	}
	r.WallNs = time.Since(began).Nanoseconds()
	return r, err
}

func (e CrashEnumeration) enumerate(ctx context.Context, r *CrashReport, whole *survey) error {
	var tries []try
	for _, step := range whole.steps {
		tries = append(tries, try{faults.Plan{crashAt(step)}, &survey{node: nodeOf(step), from: step}})
	}
	points := tries
	for _, answer := range whole.answers {
		tries = append(tries, try{added: faults.Plan{{Kind: faults.Drop, At: answer}}})
	}
	outcomes, err := e.run(ctx, "crashes and lost replies", tries)
	if err != nil {
		return err
	}
	r.add(outcomes)
	if e.Depth == 1 {
		return nil
	}
	pairs, all := pairsOf(points[:min(len(points), len(outcomes))], e.Budget)
	r.RecoveryPoints = all
	outcomes, err = e.run(ctx, "crashes in recovery", pairs)
	if err != nil {
		return err
	}
	r.add(outcomes)
	r.TriedInRecovery = len(outcomes)
	return nil
}

// try is one run of an enumeration.
type try struct {
	added    faults.Plan
	recovery *survey // of the node that crashes, nil if that is not asked for
}

func crashAt(step string) faults.Perturbation {
	return faults.Perturbation{Kind: faults.Crash, At: step, For: restart}
}

// nodeOf returns the node in a step's name.
func nodeOf(step string) string { return step[:strings.IndexByte(step, '/')] }

// pairsOf returns the crashes with a second one in the recovery from each: all, or
// the most that are wanted, evenly spread over all.
func pairsOf(points []try, most int) (pairs []try, all int) {
	for _, point := range points {
		all += len(point.recovery.steps)
	}
	n := 0
	for _, point := range points {
		for _, step := range point.recovery.steps {
			if all <= most || n*most%all < most {
				pairs = append(pairs, try{added: append(slices.Clone(point.added), crashAt(step))})
			}
			n++
		}
	}
	return pairs, all
}

func (e CrashEnumeration) run(ctx context.Context, what string, tries []try) ([]outcome, error) {
	var progress func(done, failed int)
	if e.Progress != nil && len(tries) > 0 {
		progress = e.Progress(what, len(tries))
	}
	outcomes, _, err := runAll(e.Workers, e.jobs(ctx, tries), progress)
	return outcomes, err
}

func (e CrashEnumeration) jobs(ctx context.Context, tries []try) iter.Seq[job] {
	return func(yield func(job) bool) {
		for i, t := range tries {
			c := e.Incident.Case()
			c.Added, c.survey, c.short = t.added, t.recovery, true
			if ctx.Err() != nil || !yield(job{number: i, c: c, twice: i%recheckEvery == 0}) {
				return
			}
		}
	}
}

func (r *CrashReport) add(outcomes []outcome) {
	for _, o := range outcomes {
		r.count(o.verdict)
		r.Failures = append(r.Failures, o.failures...)
	}
	r.Tried += len(outcomes)
}
