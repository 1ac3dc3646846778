package conformance

import (
	"context"
	"sync/atomic"
	"time"
)

// CheckLoops checks that background work runs, as often as it should, and that no work keeps other work from running.
func CheckLoops(ctx context.Context, s Subject) error {
	r := &run{Subject: s, ctx: ctx, subject: "loops"}
	r.checkGo()
	r.checkEvery()
	r.checkNoOverlap()
	return r.result()
}

func (r *run) checkGo() {
	var runs, alive log[string]
	r.Loops.Go("conformance-slow", func(ctx context.Context) {
		_ = r.Clock.Sleep(ctx, 3*r.Unit)
		runs.add("slow")
	})
	r.Loops.Go("conformance-once", func(ctx context.Context) {
		runs.add("once")
		if ctx.Err() == nil {
			alive.add("")
		}
	})
	r.expect(r.eventually(func() bool { return runs.len() == 2 }), "of two tasks ran: %q", runs.all())
	first := runs.all()
	r.expect(len(first) == 0 || first[0] == "once", "a task waited for another one")
	r.expect(alive.len() == 1, "a task's context has ended before it began")
	r.wait(2)
	r.expect(runs.len() == 2, "two tasks ran %d times", runs.len())
}

func (r *run) checkEvery() {
	var runs log[time.Time]
	r.Loops.Every("conformance-every", r.Unit, func(context.Context) { runs.add(r.Clock.Now()) })
	const units = 8
	r.wait(units)
	// The first may come at once or only after an interval, and at the end one may be just due.
	count := runs.len()
	r.expect(count >= units-2 && count <= units+1, "in %d intervals a loop ran %d times", units, count)
}

func (r *run) checkNoOverlap() {
	var running, overlaps, ended atomic.Int64
	r.Loops.Every("conformance-long", r.Unit, func(ctx context.Context) {
		overlaps.Add(running.Add(1) - 1)
		_ = r.Clock.Sleep(ctx, 2*r.Unit+r.Unit/2)
		running.Add(-1)
		ended.Add(1)
	})
	r.wait(9)
	r.expect(overlaps.Load() == 0, "two runs of one loop ran at once")
	r.expect(ended.Load() >= 2, "a loop whose runs outlast its interval ran %d times in 9 intervals", ended.Load())
}
