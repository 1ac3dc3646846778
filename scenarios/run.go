package scenarios

import (
	"fmt"
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
	Seed     uint64
	Workload Workload
	Policy   Policy
	// PayWindow is how long an order waits for its money; 15 minutes if zero.
	PayWindow time.Duration
	// Profile is what faults are drawn from, with the seed. It is ignored if there
	// is a plan.
	Profile faults.Profile
	// Plan is what goes wrong, where that is known beforehand.
	Plan faults.Plan

	tape *sim.Tape // for the benchmark: keeps the run's SQL
}

// defaultOrders is the number of orders in a run that is drawn from a seed.
const defaultOrders = 12

// Draw returns the case of a seed under a profile.
func Draw(seed uint64, profile faults.Profile) Case {
	return Case{Seed: seed, Workload: drawWorkload(seed, defaultOrders), Policy: drawPolicy(seed), Profile: profile}
}

// Result is what became of a run.
type Result struct {
	Seed       uint64
	Journal    sim.Journal // how the databases locked
	Verdict    Verdict
	Failures   []checker.Failure // the most money first
	Fired      []faults.Firing   // what went wrong, in order
	Unreached  faults.Plan       // what was planned and did not
	Probes     map[string]int    // how often the run came to an interesting place
	Steps      int
	Statements int
	SimTime    time.Duration
	TraceHash  uint64
	Trace      *sim.Trace // valid until the arena's next run
}

// horizon is how long the storm lasts: all deadlines have passed by then.
const horizon = 20 * time.Minute

// settleLimit is how long a run may take to come to rest after the storm: the
// longest resend schedule of a channel, and more.
const settleLimit = 26 * time.Hour

// injector is what a run needs of its faults.
type injector interface {
	sim.Faults
	Fired() []faults.Firing
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
	for _, f := range running {
		f(w.World)
	}
	w.World.Run(horizon) // the storm; injectors stop by themselves then
	w.settle()
	if w.failed != nil {
		return nil, fmt.Errorf("setting up: %w", w.failed)
	}
	return w.judge(c, inject), nil
}

func (c *Case) injector() injector {
	if c.Plan != nil {
		return faults.NewScript(c.Plan)
	}
	return &faults.Storm{Profile: c.Profile, Seed: c.Seed, Until: horizon, MayCrash: mayCrash}
}

// mayCrash spares the buyers: they are the witnesses.
func mayCrash(node string) bool { return node != "buyer" }

// settle lets the healed world run until nothing is pending, and what is under way
// then arrive.
func (w *world) settle() {
	w.RunUntil(settleLimit, w.evidence.Settled)
	w.World.Run(w.Now() + time.Minute)
}

func (w *world) judge(c Case, inject injector) *Result {
	r := &Result{
		Seed: c.Seed, Journal: w.Journal(), Verdict: Pass, Fired: inject.Fired(), Probes: w.evidence.Probes(),
		Steps: w.Steps(), Statements: w.Statements(), SimTime: w.Now(), TraceHash: w.Trace().Hash(), Trace: w.Trace(),
	}
	var unknown bool
	r.Failures, unknown = w.evidence.Finish()
	if script, ok := inject.(*faults.Script); ok {
		r.Unreached = script.Unreached()
	}
	switch {
	case len(r.Failures) > 0:
		r.Verdict = Broken
	case unknown:
		r.Verdict = Unknown
	case len(r.Unreached) > 0:
		r.Verdict = Stale
	}
	return r
}
