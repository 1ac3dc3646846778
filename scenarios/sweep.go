package scenarios

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
	// Progress, if set, is called now and then from one goroutine at a time.
	Progress func(done, failed int)

	adjust func(*Case) // changes each case, for tests of one policy
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

// recheckEvery is how often a seed is run twice, the second time in an arena of its
// own, and the traces compared: the first of a sweep, and each fiftieth from there.
const recheckEvery = 50

// Report is what became of a sweep. Its JSON is the contract with CI.
type Report struct {
	Seeds            int            `json:"seeds"`
	Passed           int            `json:"passed"`
	Broken           int            `json:"broken"`
	Unknown          int            `json:"unknown"`
	Stale            int            `json:"stale"`
	Nondeterministic int            `json:"nondeterministic"`
	Failures         []SeedFailure  `json:"failures"`
	Steps            int            `json:"steps"`
	Statements       int            `json:"statements"`
	SimNs            int64          `json:"sim_ns"`
	WallNs           int64          `json:"wall_ns"`
	TraceHash        string         `json:"trace_hash"` // of all seeds, in their order
	FaultsFired      map[string]int `json:"faults_fired"`
	Probes           map[string]int `json:"probes"`
	Unreached        []string       `json:"unreached"`
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

// outcome is what a sweep keeps of one run.
type outcome struct {
	seed     uint64
	verdict  Verdict
	hash     uint64
	result   Result // without its trace
	failures []SeedFailure
}

// Run runs the sweep. It ends early, with what it has, when the context does. An
// error is about the harness.
func (s Sweep) Run(ctx context.Context) (*Report, error) {
	began := time.Now()
	if s.Workers <= 0 {
		s.Workers = runtime.GOMAXPROCS(0)
	}
	if s.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.For)
		defer cancel()
	}
	var (
		mu       sync.Mutex
		outcomes []outcome
		errs     []error
		failed   int
		workers  sync.WaitGroup
	)
	next := s.seeds(ctx)
	for range s.Workers {
		workers.Go(func() {
			w := newWorker(s)
			defer w.close()
			for seed, twice, ok := next(); ok; seed, twice, ok = next() {
				o, err := w.run(seed, twice)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
					mu.Unlock()
					return
				}
				outcomes = append(outcomes, o)
				if o.verdict != Pass {
					failed++
				}
				if s.Progress != nil {
					s.Progress(len(outcomes), failed)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := s.report(outcomes)
	r.WallNs = time.Since(began).Nanoseconds()
	return r, nil
}

// seeds returns a function that hands out the shard's seeds in order, and says which
// to run twice.
func (s Sweep) seeds(ctx context.Context) func() (seed uint64, twice, ok bool) {
	var mu sync.Mutex
	handed := 0
	step, seed := uint64(1), s.Seeds.First
	if s.Shard.N > 0 {
		step, seed = uint64(s.Shard.N), s.Seeds.First+uint64(s.Shard.I-1)
	}
	return func() (uint64, bool, bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || seed > s.Seeds.Last {
			return 0, false, false
		}
		handed++
		seed += step
		return seed - step, handed%recheckEvery == 1, true
	}
}

// report adds up the outcomes, in the order of the seeds.
func (s Sweep) report(outcomes []outcome) *Report {
	slices.SortFunc(outcomes, func(a, b outcome) int { return int(int64(a.seed) - int64(b.seed)) })
	r := &Report{Seeds: len(outcomes), Failures: []SeedFailure{}, FaultsFired: map[string]int{}, Probes: map[string]int{}, Unreached: []string{}}
	for _, kind := range faults.Kinds() {
		r.FaultsFired[string(kind)] = 0
	}
	hash := fnv.New64a()
	for _, o := range outcomes {
		fmt.Fprintf(hash, "%d %016x\n", o.seed, o.hash)
		r.count(o)
	}
	r.TraceHash = fmt.Sprintf("%016x", hash.Sum64())
	return r
}

func (r *Report) count(o outcome) {
	switch o.verdict {
	case Pass:
		r.Passed++
	case Broken:
		r.Broken++
	case Unknown:
		r.Unknown++
	case Stale:
		r.Stale++
	case Nondeterministic:
		r.Nondeterministic++
	}
	r.Failures = append(r.Failures, o.failures...)
	r.Steps += o.result.Steps
	r.Statements += o.result.Statements
	r.SimNs += o.result.SimTime.Nanoseconds()
	for _, p := range o.result.Fired {
		r.FaultsFired[string(p.Kind)]++
	}
	for name, n := range o.result.Probes {
		r.Probes[name] += n
	}
}

// Verdict returns the worst that came up: a difference between two runs of a seed
// stops everything else.
func (r *Report) Verdict() Verdict {
	switch {
	case r.Nondeterministic > 0:
		return Nondeterministic
	case r.Broken > 0:
		return Broken
	case r.Unknown > 0:
		return Unknown
	case r.Stale > 0:
		return Stale
	}
	return Pass
}

// worker runs one seed after the other in one arena.
type worker struct {
	sweep Sweep
	arena *sim.Arena
	watch *watchdog
}

func newWorker(s Sweep) *worker {
	return &worker{sweep: s, arena: s.Journal.NewArena(), watch: startWatchdog()}
}

func (w *worker) close() { w.watch.stop(); w.arena.Close() }

func (w *worker) run(seed uint64, twice bool) (outcome, error) {
	c := Draw(seed, w.sweep.Profile)
	if w.sweep.adjust != nil {
		w.sweep.adjust(&c)
	}
	w.watch.name(replayLine(seed, w.sweep.Profile, w.sweep.Journal))
	r, err := Run(c, w.arena, w.watch.observe)
	if err != nil {
		return outcome{}, fmt.Errorf("seed %d: %w", seed, err)
	}
	o := outcome{seed: seed, verdict: r.Verdict, hash: r.TraceHash, failures: explainAll(r, w.sweep.Profile)}
	if twice {
		if err := w.recheck(c, r, &o); err != nil {
			return outcome{}, err
		}
	}
	o.result = *r
	o.result.Trace = nil
	return o, nil
}

// recheck runs the case again and compares the traces, record by record.
func (w *worker) recheck(c Case, first *Result, o *outcome) error {
	difference, err := Recheck(c, first, w.watch.observe)
	if err != nil || difference == "" {
		return err
	}
	o.verdict = Nondeterministic
	o.failures = []SeedFailure{{
		Seed: c.Seed, Verdict: Nondeterministic, Property: string(Nondeterministic), Fingerprint: string(Nondeterministic),
		Message: difference, Repro: replayLine(c.Seed, w.sweep.Profile, w.sweep.Journal),
	}}
	o.failures[0].Text = fmt.Sprintf("seed %d is nondeterministic: %s\n\n%s", c.Seed, difference, reproduceText(first, w.sweep.Profile))
	return nil
}

// Recheck runs a case again, in a new arena of the same kind, and tells the first record in
// which its trace differs from the first run's, "" if none does.
func Recheck(c Case, first *Result, running ...func(*sim.World)) (difference string, err error) {
	fresh := first.Journal.NewArena()
	defer fresh.Close()
	again, err := Run(c, fresh, running...)
	if err != nil {
		return "", fmt.Errorf("seed %d, second run: %w", c.Seed, err)
	}
	if again.TraceHash == first.TraceHash {
		return "", nil
	}
	return firstDifference(first.Trace, again.Trace), nil
}

// firstDifference tells the first record in which two traces of a seed differ.
func firstDifference(a, b *sim.Trace) string {
	for i := range min(len(a.Records), len(b.Records)) {
		if first, second := a.Line(&a.Records[i]), b.Line(&b.Records[i]); first != second {
			return fmt.Sprintf("record %d differs:\n  first run:  %s\n  second run: %s", i+1, first, second)
		}
	}
	return fmt.Sprintf("one run has %d records, the other %d", len(a.Records), len(b.Records))
}
