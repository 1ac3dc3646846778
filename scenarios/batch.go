package scenarios

import (
	"context"
	"iter"
	"time"
)

// Batch runs incidents side by side: each exactly as it is written, or, with Seeds,
// once for each seed, which draws what a file leaves open: the network's latencies.
type Batch struct {
	Incidents []*Incident
	Seeds     *Seeds
	Workers   int // worlds at once; by default one for each processor
	// Progress, if set, is called after each run from one goroutine at a time.
	Progress func(done, failed int)
}

// Count returns how many runs there are.
func (b Batch) Count() int {
	if b.Seeds == nil {
		return len(b.Incidents)
	}
	return len(b.Incidents) * b.Seeds.Count()
}

// Run runs the batch. It ends early, with what it has, when the context does. An
// error is about the harness.
func (b Batch) Run(ctx context.Context) (*Report, error) {
	began := time.Now()
	outcomes, all, err := runAll(b.Workers, b.jobs(ctx), b.Progress)
	if err != nil {
		return nil, err
	}
	return newReport(outcomes, all, began), nil
}

// jobs are the files' runs, file by file. The first of each file is run twice.
func (b Batch) jobs(ctx context.Context) iter.Seq[job] {
	each := max(1, b.Count()/max(1, len(b.Incidents)))
	return func(yield func(job) bool) {
		for n := 0; n < b.Count() && ctx.Err() == nil; n++ {
			c := b.Incidents[n/each].Case()
			if b.Seeds != nil {
				c.Seed, c.Vary = b.Seeds.First+uint64(n%each), true
			}
			if !yield(job{number: n, c: c, twice: n%each == 0}) {
				return
			}
		}
	}
}
