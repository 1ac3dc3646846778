package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// Seeds is an inclusive range of seeds.
type Seeds struct{ First, Last uint64 }

// ParseSeeds reads "7" or "1-500".
func ParseSeeds(text string) (Seeds, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	const maxSeeds = 1_000_000_000_000
	a, errA := strconv.ParseUint(first, 10, 64)
	b, errB := strconv.ParseUint(last, 10, 64)
	if errA != nil || errB != nil || a > b || b-a >= maxSeeds {
		return Seeds{}, fmt.Errorf("seeds must be a number or a rising range such as 1-500, of at most a million million, not %q", text)
	}
	return Seeds{a, b}, nil
}

// String returns the range as ParseSeeds reads it.
func (s Seeds) String() string {
	if s.First == s.Last {
		return strconv.FormatUint(s.First, 10)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// Count returns the number of seeds.
func (s Seeds) Count() int { return int(s.Last - s.First + 1) }

// Shard is one part of a sweep that is split over several machines: the I-th of N,
// from 1. The zero Shard is the whole.
type Shard struct{ I, N int }

// ParseShard reads "2/8".
func ParseShard(text string) (Shard, error) {
	i, n, _ := strings.Cut(text, "/")
	s := Shard{}
	var errI, errN error
	s.I, errI = strconv.Atoi(i)
	s.N, errN = strconv.Atoi(n)
	if errI != nil || errN != nil || s.I < 1 || s.I > s.N {
		return Shard{}, fmt.Errorf("a shard is I/N with I from 1 to N, for example 2/8, not %q", text)
	}
	return s, nil
}

// Sweep runs many seeds side by side.
type Sweep struct {
	Seeds   Seeds
	Profile faults.Profile
	Journal sim.Journal // how the databases lock
	Shard   Shard
	Workers int           // worlds at once; by default one for each processor
	For     time.Duration // stop taking new seeds after this; zero runs them all
	// MaxFailures ends the sweep when so many seeds have failed; zero runs them all.
	MaxFailures int
	Cover       bool   // report the coverage
	Defect      string // planted in this build, for the lines to paste
	// Progress, if set, is called now and then from one goroutine at a time.
	Progress func(done, failed int)

	adjust func(*Case) // changes each case, for tests of one policy
	enough int         // for tests; enoughSeeds if zero
}

// Title tells what is swept: "seeds 1-500, profile storm".
func (s Sweep) Title() string {
	title := fmt.Sprintf("seeds %s, profile %s", s.Seeds, s.Profile.Name)
	if s.Profile.Strategy.Name != "" {
		title += ", strategy " + s.Profile.Strategy.Name
	}
	if s.Journal != sim.MemDB {
		title += " over " + s.Journal.String()
	}
	return title
}

// Count returns how many seeds the sweep runs, unless it is cut short.
func (s Sweep) Count() int {
	if s.Shard.N == 0 {
		return s.Seeds.Count()
	}
	return (s.Seeds.Count() - s.Shard.I + s.Shard.N) / s.Shard.N
}

// Check says what is wrong with a sweep that would prove nothing.
func (s Sweep) Check() error {
	if s.Count() == 0 {
		return fmt.Errorf("shard %d/%d of the seeds %s has no seed", s.Shard.I, s.Shard.N, s.Seeds)
	}
	return nil
}

// Report is what became of a sweep. Its JSON is the contract with CI.
type Report struct {
	Seeds int `json:"seeds"`
	Verdicts
	Failures []SeedFailure `json:"failures"`
	sums
	WallNs    int64     `json:"wall_ns"`
	TraceHash string    `json:"trace_hash"` // of all seeds, in their order
	Unreached []string  `json:"unreached"`
	Coverage  *Coverage `json:"coverage,omitempty"`

	vacuous []string // of the unreached: those for which there were seeds enough
}

// sums are added up over many runs, in whatever order they end.
type sums struct {
	Steps       int            `json:"steps"`
	Statements  int            `json:"statements"`
	SimNs       int64          `json:"sim_ns"`
	FaultsFired map[string]int `json:"faults_fired"`
	Probes      map[string]int `json:"probes"`
	Operations  map[string]int `json:"operations"`
}

// newSums returns those of no run: no kind of fault has fired.
func newSums() sums {
	s := sums{FaultsFired: map[string]int{}, Probes: map[string]int{}, Operations: map[string]int{}}
	for _, kind := range faults.Kinds() {
		s.FaultsFired[string(kind)] = 0
	}
	return s
}

// sumsOf returns those of one run.
func sumsOf(r *Result) sums {
	s := sums{r.Steps, r.Statements, r.SimTime.Nanoseconds(), map[string]int{}, r.Probes, r.Operations}
	for _, p := range r.Fired {
		s.FaultsFired[string(p.Kind)]++
	}
	return s
}

func (s *sums) add(o sums) {
	s.Steps += o.Steps
	s.Statements += o.Statements
	s.SimNs += o.SimNs
	addCounts(s.FaultsFired, o.FaultsFired)
	addCounts(s.Probes, o.Probes)
	addCounts(s.Operations, o.Operations)
}

func addCounts(all, more map[string]int) {
	for name, n := range more { // order-free: sums
		all[name] += n
	}
}

// Verdicts counts what many runs came to.
type Verdicts struct {
	Passed           int `json:"passed"`
	Broken           int `json:"broken"`
	Unknown          int `json:"unknown"`
	Stale            int `json:"stale"`
	Nondeterministic int `json:"nondeterministic"`
}

func (v *Verdicts) count(one Verdict) {
	switch one {
	case Pass:
		v.Passed++
	case Broken:
		v.Broken++
	case Unknown:
		v.Unknown++
	case Stale:
		v.Stale++
	case Nondeterministic:
		v.Nondeterministic++
	}
}

// Verdict returns the worst that came up: a difference between two runs of a case
// stops everything else.
func (v *Verdicts) Verdict() Verdict {
	switch {
	case v.Nondeterministic > 0:
		return Nondeterministic
	case v.Broken > 0:
		return Broken
	case v.Unknown > 0:
		return Unknown
	case v.Stale > 0:
		return Stale
	}
	return Pass
}

// SeedFailure is a seed that did not pass.
type SeedFailure struct {
	Seed        uint64  `json:"seed"`
	File        string  `json:"file"` // the incident file, "" for a seed
	Verdict     Verdict `json:"-"`
	Property    string  `json:"property"`
	Message     string  `json:"message"`
	Fingerprint string  `json:"fingerprint"`
	Repro       string  `json:"repro"`
	Text        string  `json:"-"` // for people: see Explain
}

// Run runs the sweep. It ends early, with what it has, when the context does. An
// error is about the harness.
func (s Sweep) Run(ctx context.Context) (*Report, error) {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.For > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.For)
		defer cancel()
	}
	progress := func(done, failed int) {
		if s.MaxFailures > 0 && failed >= s.MaxFailures {
			cancel()
		}
		if s.Progress != nil {
			s.Progress(done, failed)
		}
	}
	var cover *Coverage
	if s.Cover {
		cover = newCoverage(s.Profile)
	}
	outcomes, all, err := runAll(s.Workers, s.jobs(ctx, cover), progress)
	if err != nil {
		return nil, err
	}
	r := newReport(outcomes, all, began)
	if r.Coverage = cover; cover != nil {
		cover.estimate()
	}
	r.findUnreached(s.Profile, cmp.Or(s.enough, enoughSeeds))
	return r, nil
}

// jobs draws the shard's seeds in order, until the context ends.
func (s Sweep) jobs(ctx context.Context, cover *Coverage) iter.Seq[job] {
	step, first := uint64(1), s.Seeds.First
	if s.Shard.N > 0 {
		step, first = uint64(s.Shard.N), s.Seeds.First+uint64(s.Shard.I-1)
	}
	return func(yield func(job) bool) {
		for n := 0; n < s.Count() && ctx.Err() == nil; n++ {
			c := Draw(first+uint64(n)*step, s.Profile)
			c.Journal, c.Defect = s.Journal, s.Defect
			if s.adjust != nil {
				s.adjust(&c)
			}
			if !yield(job{number: n, c: c, twice: n%recheckEvery == 0, cover: cover}) {
				return
			}
		}
	}
}

// newReport puts the outcomes together, in the order of the jobs.
func newReport(outcomes []outcome, all sums, began time.Time) *Report {
	r := &Report{Seeds: len(outcomes), Failures: []SeedFailure{}, sums: all, Unreached: []string{}}
	hash := fnv.New64a()
	for _, o := range outcomes {
		fmt.Fprintf(hash, "%d %016x\n", o.seed, o.traceHash)
		r.count(o.verdict)
		r.Failures = append(r.Failures, o.failures...)
		r.Unreached = append(r.Unreached, o.unreached...)
	}
	r.TraceHash = fmt.Sprintf("%016x", hash.Sum64())
	r.WallNs = time.Since(began).Nanoseconds()
	return r
}

// unreached tells what was planned, or pinned, and did not come to pass.
func (r *Result) unreached() (lines []string) {
	for _, p := range r.Unreached {
		lines = append(lines, p.String())
	}
	for _, m := range r.Missed {
		lines = append(lines, m.String())
	}
	return lines
}

// Verdict returns the worst that came up.
func (r *Report) Verdict() Verdict {
	if v := r.Verdicts.Verdict(); v != Pass || len(r.vacuous) == 0 {
		return v
	}
	return Stale
}

// enoughSeeds is how many seeds must come to everything, operationSeeds how many to a success
// of each operation. What must be reached is so frequent that so many miss it once in many
// thousand sweeps: of 40 seeds under each profile at most 6 had no success of an operation;
// if it were three in ten, ten seeds would miss one once in 170,000 times.
const (
	enoughSeeds    = 100
	operationSeeds = 10
)

// findUnreached finds what a sweep under the profile should have come to and did not: a fault
// that the profile arms, an operation that never succeeded, a required probe.
func (r *Report) findUnreached(profile faults.Profile, enough int) {
	miss := func(what string, enough int) {
		r.Unreached = append(r.Unreached, what)
		if r.Seeds >= enough {
			r.vacuous = append(r.vacuous, what)
		}
	}
	for _, kind := range profile.Kinds() {
		if r.FaultsFired[string(kind)] == 0 {
			miss("fault "+string(kind), enough)
		}
	}
	for _, verb := range drawn {
		if r.Operations[string(verb)+": "+checker.Succeeded] == 0 {
			miss("operation "+string(verb), min(enough, operationSeeds))
		}
	}
	for _, p := range checker.Probes() {
		if profile.Everything && p.Optional == "" && r.Probes[p.Name] == 0 {
			miss("probe "+p.Name, enough)
		}
	}
}

// Vacuous is what the sweep proves nothing about: there were enough seeds to come to it,
// and none did.
func (r *Report) Vacuous() []string { return r.vacuous }
