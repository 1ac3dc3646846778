package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/tillstorm/tillstorm/sim"
)

// job is a case to run.
type job struct {
	number int // outcomes are told in this order
	c      Case
	twice  bool // run it again and compare the traces
	cover  *Coverage
}

// recheckEvery is how often a job is run twice, the second time in an arena of its
// own: the first, and each fiftieth from there.
const recheckEvery = 50

// outcome is what is kept of a job by itself. There may be a hundred thousand: it has only
// what must be told in order, and nothing of the run's faults and workload.
type outcome struct {
	number    int
	verdict   Verdict
	seed      uint64
	traceHash uint64
	failures  []SeedFailure
	unreached []string // what was planned, or pinned, and was not reached

	sums // until they have been added to those of all jobs
}

// runAll runs jobs side by side, on a number of workers (zero: one for each
// processor), and returns the outcomes in the order of the jobs, and the sums over them.
// progress, if not nil, is called after each job, from one goroutine at a time.
func runAll(workers int, jobs iter.Seq[job], progress func(done, failed int)) ([]outcome, sums, error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next, stop := iter.Pull(jobs)
	defer stop()
	var (
		mu       sync.Mutex
		outcomes []outcome
		all      = newSums()
		errs     []error
		failed   int
		running  sync.WaitGroup
	)
	take := func() (job, bool) {
		mu.Lock()
		defer mu.Unlock()
		return next()
	}
	keep := func(o outcome, err error) bool {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
			return false
		}
		all.add(o.sums)
		o.sums = sums{}
		outcomes = append(outcomes, o)
		if o.verdict != Pass {
			failed++
		}
		if progress != nil {
			progress(len(outcomes), failed)
		}
		return true
	}
	for range workers {
		running.Go(func() {
			w := newWorker()
			defer w.close()
			for j, ok := take(); ok; j, ok = take() {
				if !keep(w.run(j)) {
					return
				}
			}
		})
	}
	running.Wait()
	slices.SortFunc(outcomes, func(a, b outcome) int { return cmp.Compare(a.number, b.number) })
	return outcomes, all, errors.Join(errs...)
}

// worker runs one case after the other.
type worker struct {
	arenas map[sim.Journal]*sim.Arena
	watch  *watchdog
}

func newWorker() *worker {
	return &worker{arenas: map[sim.Journal]*sim.Arena{}, watch: startWatchdog()}
}

func (w *worker) close() {
	w.watch.stop()
	for _, a := range w.arenas { // order-free: each is closed
		a.Close()
	}
}

// arena returns the worker's arena for databases of that kind.
func (w *worker) arena(j sim.Journal) *sim.Arena {
	if w.arenas[j] == nil {
		w.arenas[j] = j.NewArena()
	}
	return w.arenas[j]
}

func (w *worker) run(j job) (outcome, error) {
	w.watch.name(j.c.commands()[0])
	r, err := Run(j.c, w.arena(j.c.Journal), w.watch.observe)
	if err != nil {
		return outcome{}, fmt.Errorf("%s: %w", j.c.Title(), err)
	}
	o := outcome{
		number: j.number, verdict: r.Verdict, seed: r.Case.Seed, traceHash: r.TraceHash,
		failures: explainAll(r), unreached: r.unreached(), sums: sumsOf(r),
	}
	if j.twice {
		difference, err := Recheck(r, w.watch.observe)
		if err != nil {
			return outcome{}, err
		}
		if difference != "" {
			o.verdict = Nondeterministic
			o.failures = []SeedFailure{j.c.fails(Nondeterministic, string(Nondeterministic), difference)}
		}
	}
	if j.cover != nil {
		j.cover.add(r)
	}
	return o, nil
}

// Recheck runs a case again, in an arena of its own, and tells the first record in
// which its trace differs from the first run's, "" if none does.
func Recheck(first *Result, running ...func(*sim.World)) (difference string, err error) {
	fresh := first.Case.Journal.NewArena()
	defer fresh.Close()
	again, err := Run(first.Case, fresh, running...)
	if err != nil {
		return "", fmt.Errorf("%s, second run: %w", first.Case.Title(), err)
	}
	if again.TraceHash == first.TraceHash {
		return "", nil
	}
	return firstDifference(first.Trace, again.Trace), nil
}

// firstDifference tells the first record in which two traces of a case differ.
func firstDifference(a, b *sim.Trace) string {
	for i := range min(len(a.Records), len(b.Records)) {
		if first, second := a.Line(&a.Records[i]), b.Line(&b.Records[i]); first != second {
			return fmt.Sprintf("record %d differs:\n  first run:  %s\n  second run: %s", i+1, first, second)
		}
	}
	return fmt.Sprintf("one run has %d records, the other %d", len(a.Records), len(b.Records))
}
