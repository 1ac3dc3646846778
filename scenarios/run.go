package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// Verdict is what a run comes to.
type Verdict string

const (
	Pass             Verdict = "pass"
	Broken           Verdict = "broken"           // a property is broken
	Unknown          Verdict = "unknown"          // a check ran out of its budget
	Stale            Verdict = "stale"            // something planned was never reached
	Nondeterministic Verdict = "nondeterministic" // the same seed gave two traces
)

// ExitCode returns the process's exit code for the verdict.
func (v Verdict) ExitCode() int {
	return map[Verdict]int{Pass: 0, Broken: 1, Unknown: 3, Stale: 4, Nondeterministic: 5}[v]
}

// Case is what a run is made of.
type Case struct {
	// File is the incident file that the case was read from; "" for one drawn from a seed.
	File     string
	Seed     uint64
	Start    time.Time // the usual start if zero
	Workload Workload
	Policy   Policy
	// PayWindow is how long an order waits for its money; 15 minutes if zero.
	PayWindow time.Duration
	// Stock is what the stock service begins with, by SKU, where that is not the usual.
	Stock map[string]int64
	// Shop and Channels are how the shops and the channels differ from the usual.
	Shop     []Setting
	Channels []ChannelSetup
	// Pins hold the system's own steps until their times.
	Pins []Pin
	// Expect is what the run must come to, besides that the properties hold.
	Expect []checker.Expectation
	// Journal is how the databases lock.
	Journal sim.Journal
	// Profile is what faults are drawn from, with the seed. It is ignored if there
	// is a plan.
	Profile faults.Profile
	// Plan is what goes wrong, where that is known beforehand.
	Plan faults.Plan
	// Added is tried on top of the plan. Then it alone must come to pass: it may keep
	// the plan from doing so.
	Added faults.Plan
	// Defect is planted in this build, for the lines to paste; "" if none is.
	Defect string
	// Vary draws the network's latencies from the seed, beside the plan.
	Vary bool

	maxSteps int       // for tests; by the number of orders if zero
	tape     *sim.Tape // for the benchmark: keeps the run's SQL
	short    bool      // for the crash enumeration: the run does not wait for bills
	survey   *survey   // for the crash enumeration: keeps the names of the run's steps
}

// defaultOrders is the number of orders in a run that is drawn from a seed.
const defaultOrders = 12

// Draw returns the case of a seed under a profile.
func Draw(seed uint64, profile faults.Profile) Case {
	c := Case{Seed: seed, Start: drawStart(seed), Workload: drawWorkload(seed, defaultOrders), Policy: drawPolicy(seed), Profile: profile}
	c.Channels, c.Shop = drawTimings(seed, c.Workload.channels()), drawShop(seed)
	return c
}

// Result is what became of a run.
type Result struct {
	Case       Case
	Verdict    Verdict
	Failures   []checker.Failure // the most money first
	Undecided  []string          // the properties whose check ran out of its budget
	Misfits    []checker.Misfit  // the histories of the linearizability properties that are broken
	Fired      []faults.Firing   // what went wrong, in order
	Unreached  faults.Plan       // what was planned and did not
	Missed     []missedPin       // the pins that were not kept
	Probes     map[string]int    // how often the run came to an interesting place
	Operations map[string]int    // what became of the buyers' operations
	Steps      int
	Statements int
	SimTime    time.Duration
	TraceHash  uint64
	Trace      *sim.Trace // valid until the arena's next run
}

// horizon is how long the storm lasts, at least: all usual deadlines have passed by
// then. No run ends before its last operation.
const horizon = 20 * time.Minute

// settleLimit is how long a run may take to come to rest after the storm: the longest
// resend schedule of a channel, and more.
const settleLimit = 80 * time.Hour

// billTakes is how long after the end of a day its bill has been compared, even if it
// was late.
const billTakes = 18 * time.Hour

// injector is what a run needs of its faults.
type injector interface {
	sim.Faults
	Fired() []faults.Firing
	Arm(*sim.World, faults.Hands)
}

// Run runs a case in an arena and judges it. The error is about the harness, never
// about the system under test.
func Run(c Case, arena *sim.Arena, running ...func(*sim.World)) (*Result, error) {
	inject := c.injector()
	w, err := build(&c, arena, inject)
	if err != nil {
		return nil, fmt.Errorf("setting up: %w", err)
	}
	defer w.Close()
	w.arm(inject)
	for _, f := range running {
		f(w.World)
	}
	if c.survey != nil {
		c.survey.begin(&c, w)
	}
	w.runUntil(max(horizon, c.Workload.end())) // the storm; injectors stop by themselves at the horizon
	w.settle(!c.short)
	if w.failed != nil {
		return nil, fmt.Errorf("setting up: %w", w.failed)
	}
	return w.judge(c, inject), nil
}

func (c *Case) injector() injector {
	if c.Plan == nil {
		return c.storm(c.Profile)
	}
	script := faults.NewScript(slices.Concat(c.Plan, c.Added))
	script.Pin(c.holds(), c.about())
	switch {
	case c.survey != nil:
		return surveyed{script, c.survey}
	case c.Vary:
		return jitter{script, c.storm(latencies)}
	}
	return script
}

func (c *Case) storm(p faults.Profile) *faults.Storm {
	return faults.NewStorm(c.Seed, p, c.targets(), horizon)
}

// latencies are those of a network in which nothing is wrong.
var latencies = faults.Profile{Name: "latencies", Odds: []faults.Odds{
	{Kind: faults.Delay, Rate: faults.Rate{N: 1, Of: 1}, By: latency}, {Kind: faults.LateAnswer, Rate: faults.Rate{N: 1, Of: 1}, By: latency},
}}

var latency = faults.Range{Min: 10 * time.Microsecond, Max: 20 * time.Millisecond}

// jitter is a plan in a network whose latencies are drawn.
type jitter struct {
	*faults.Script
	network *faults.Storm
}

// Message implements [sim.Faults]. What a file has a time for, arrives at that time.
func (j jitter) Message(m *sim.Message) sim.Passage {
	written := j.Script.IsPinned(m) || m.Leg == sim.Request && slices.Contains(outsiders, m.From)
	passage := j.Script.Message(m)
	if !written {
		passage.Delay += j.network.Message(m).Delay
	}
	return passage
}

// outsiders are the nodes whose requests are stimuli.
var outsiders = []string{"buyer", "stranger"}

// Fired returns what the plan and the network did, in order: it is a plan again.
func (j jitter) Fired() []faults.Firing {
	fired := slices.Concat(j.Script.Fired(), j.network.Fired())
	slices.SortStableFunc(fired, func(a, b faults.Firing) int { return cmp.Compare(a.When, b.When) })
	return fired
}

// planned is an injector that knows what it has yet to do.
type planned interface {
	Unreached() faults.Plan
	Missed() []faults.Missed
}

// settle lets the healed world run until nothing is pending and, if asked to, the bills
// of its days have been compared, and what is under way then arrive. A crash enumeration
// does not ask to: a day and more of waiting would be most of its thousands of runs.
func (w *world) settle(bills bool) {
	end := w.Now()
	if bills {
		w.runUntil(w.billsCompared())
	}
	w.RunUntil(max(w.Now(), end+settleLimit), func() bool { return w.evidence.Settled() || w.isRestless() })
	w.runUntil(w.Now() + time.Minute)
}

// runUntil lets the world run until then, unless it does too much.
func (w *world) runUntil(at time.Duration) { w.RunUntil(at, w.isRestless) }

// isRestless says that the run has taken so many steps that something in it must go round
// in circles: a usual run has a thousand steps for each order, and one that asks a channel
// every few seconds for a day, a million.
func (w *world) isRestless() bool { return w.Steps() > w.maxSteps }

// stepsFor is the most steps that a run with so many orders may have.
func stepsFor(orders int) int { return 2_000_000 + 25_000*orders }

// billsCompared is when the bill of the day that it is now has been compared with our
// books, on all channels.
func (w *world) billsCompared() time.Duration {
	var last time.Duration
	began := w.Trace().Start
	for _, name := range w.channels {
		now := began.Add(w.Now()).In(personality(name).Zone)
		end := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location())
		last = max(last, end.Sub(began)+billTakes)
	}
	return last
}

func (w *world) judge(c Case, inject injector) *Result {
	r := &Result{
		Case: c, Verdict: Pass, Fired: inject.Fired(), Probes: w.evidence.Probes(), Operations: w.evidence.Operations(),
		Steps: w.Steps(), Statements: w.Statements(), SimTime: w.Now(), TraceHash: w.Trace().Hash(), Trace: w.Trace(),
	}
	if w.isRestless() {
		w.evidence.NeverRests(w.Steps())
	}
	var unknown bool
	r.Failures, unknown = w.evidence.Finish()
	r.Undecided, r.Misfits = w.evidence.Undecided(), w.evidence.Misfits()
	if plan, ok := inject.(planned); ok {
		r.Unreached, r.Missed = plan.Unreached(), c.missed(plan.Missed())
	}
	if len(c.Added) > 0 {
		r.Missed = nil
		r.Unreached = slices.DeleteFunc(r.Unreached, func(p faults.Perturbation) bool { return !slices.Contains(c.Added, p) })
	}
	switch {
	case len(r.Failures) > 0:
		r.Verdict = Broken
	case unknown:
		r.Verdict = Unknown
	case len(r.Unreached)+len(r.Missed) > 0:
		r.Verdict = Stale
	}
	return r
}
