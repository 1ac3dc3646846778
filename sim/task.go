package sim

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// task is one thread of a process: a coroutine that runs until it gives way.
type task struct {
	p      *Process
	name   string // with its count, "callback(A)#2"
	full   string // "NODE/TASK"
	key    string
	prefix uint64 // hash of "NODE/TASK/", see Step.Hash
	run    func()
	co     *coroutine

	wakeups uint64 // which wake-up is valid: a queued event of an earlier one is stale
	done    bool
	counts  []opCount
	openTx  int // transactions this task holds open
	leases  int // that it was granted and has not given back
	ids     int
	idle    *idleRun // of a loop's run that has only read so far
	began   time.Duration
	waits   context.Context // whose end wakes the task, nil for none

	deaths   int  // how often it was told that its process died
	stubborn bool // it was told too often: its coroutine can't be used again
}

type opCount struct {
	op, key string
	n       int
}

// Role is a task's name without its key and count: "callback", "close-scan".
func Role(task string) string {
	if i := strings.IndexAny(task, "(#@"); i >= 0 {
		return task[:i]
	}
	return task
}

// crashed unwinds a task whose process died. It is unexported, and each further
// touch of the world throws it again, so that no recover in the system survives it.
type crashed struct{}

// maxDeaths is how often a task may recover from the death of its process, in a
// loop that would never end, before it is ended by force.
const maxDeaths = 1000

// coroutine runs one task after the other, so that its grown stack is reused.
type coroutine struct {
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	job    func()
}

func newCoroutine() *coroutine {
	c := &coroutine{}
	c.resume, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		for {
			c.job()
			c.job = nil
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return c
}

// main is the body of the task's coroutine.
func (t *task) main() {
	defer t.finish()
	t.run()
}

// finish ends the task, whichever way it came to its end. Like the death of a goroutine by a
// panic, a panic of the system's own takes the whole process with it.
func (t *task) finish() {
	t.done = true
	v := recover()
	if _, dead := v.(crashed); v == nil || dead || t.p.dead {
		return
	}
	t.record(Record{Event: EventPanic, Detail: fmt.Sprintf("%v\n%s", v, panicStack())})
	t.p.node.crash(t.p.w.timing.Restart, "panic")
}

// park gives way until the task is woken.
func (t *task) park() {
	t.co.yield(struct{}{})
	t.mustLive()
}

// mustLive ends the task if its process has died in the meantime.
func (t *task) mustLive() {
	if t.p.dead {
		t.die()
	}
}

// die unwinds the task. A panic does that, unless the system recovers from it for
// ever: then Goexit does, which no recover sees. It would end the world's goroutine
// too, so the task first gives way, to be resumed on one of its own.
func (t *task) die() {
	t.deaths++
	if t.deaths > maxDeaths {
		if !t.stubborn {
			t.stubborn = true
			t.co.yield(struct{}{})
		}
		runtime.Goexit()
	}
	panic(crashed{})
}

// abandon stops the task where it is, for ever. It is for a dead task that calls in
// a loop where neither a panic nor Goexit may pass, see errDead.
func (t *task) abandon() {
	t.done, t.stubborn = true, true
	t.co.yield(struct{}{})
}

// aside calls f on a goroutine that may end with it, and waits for that end.
func aside(f func()) {
	var g sync.WaitGroup
	g.Go(f)
	g.Wait()
}

// sleepUntil gives way until true time at, or until ctx ends. Where nothing else
// can happen before, it only advances the clock.
func (t *task) sleepUntil(ctx context.Context, at time.Duration) {
	w := t.p.w
	if deadline, ok := trueDeadline(ctx); ok {
		at = min(at, deadline)
	}
	if w.now < at && at <= w.limit && w.idleBefore(at) && ended(ctx) == nil {
		w.advance(at)
	}
	for w.now < at && ended(ctx) == nil {
		t.await(ctx, at)
	}
}

// await gives way until the task is woken or ctx ends, at the latest at true time at.
func (t *task) await(ctx context.Context, at time.Duration) {
	if deadline, ok := trueDeadline(ctx); ok {
		at = min(at, deadline)
	}
	if at < noDeadline {
		t.wakeAt(at)
	}
	t.waits = ctx
	t.park()
	t.waits = nil
}

// wakeAt queues a wake-up that is void once the task has been woken otherwise.
func (t *task) wakeAt(at time.Duration) {
	t.p.w.push(event{at: at, name: t.full, task: t, of: t.p, wakeup: t.wakeups})
}

// waitlist is who waits for something to become free.
type waitlist []*task

// wait parks the task until the list is woken or ctx ends, at the latest until true
// time at. The task stays on the list until it runs again.
func (l *waitlist) wait(t *task, ctx context.Context, at time.Duration) {
	*l = append(*l, t)
	defer l.remove(t)
	t.await(ctx, at)
}

func (l *waitlist) remove(t *task) {
	if i := slices.Index(*l, t); i >= 0 {
		*l = slices.Delete(*l, i, i+1)
	}
}

// wake lets everyone on the list try again.
func (l *waitlist) wake() {
	for _, t := range *l {
		t.p.w.ready(t)
	}
}

// begin reaches the step before an operation.
func (t *task) begin(op, key string) operation {
	o := t.operation(op, key)
	o.strike = o.step(Before)
	return o
}

func (t *task) operation(op, key string) operation {
	if key == t.key {
		key = ""
	}
	return operation{t: t, op: op, key: key, n: t.count(op, key)}
}

func (t *task) count(op, key string) int {
	for i := range t.counts {
		if c := &t.counts[i]; c.op == op && c.key == key {
			c.n++
			return c.n
		}
	}
	t.counts = append(t.counts, opCount{op, key, 1})
	return 1
}

func (t *task) record(r Record) {
	r.At, r.Node, r.Task, r.OpenTx = t.p.w.now, t.p.node.Name, t.name, t.openTx > 0
	t.p.w.trace.add(r)
}

// operation is something a task does to the world, between two steps.
type operation struct {
	t       *task
	op, key string
	n       int
	sql     sqlStep
	taken   bool
	strike  Strike // at the step before
}

// sqlStep is what a step tells of an SQL operation.
type sqlStep struct {
	database string
	kind     SQLKind
	waits    bool
}

// end reaches the step after the operation.
func (o operation) end() Strike { return o.step(After) }

// name tells the operation within its task, see Step.Operation.
func (o operation) name() string {
	return Step{Op: o.op, Key: o.key, N: o.n}.Operation()
}

// step gives the faults their chance and does what they say.
func (o operation) step(phase Phase) Strike {
	t := o.t
	w := t.p.w
	t.mustLive()
	w.steps++
	if w.faults == nil {
		return Strike{}
	}
	s := Step{
		At: w.now, Node: t.p.node.Name, Task: t.name, Op: o.op, Key: o.key, N: o.n, Phase: phase,
		Database: o.sql.database, SQL: o.sql.kind, Waits: o.sql.waits, Taken: o.taken, Leased: t.leases > 0, prefix: t.prefix,
	}
	if t.idle != nil {
		looked := s
		looked.At, looked.Task = w.now-t.began, ""
		t.idle.steps = append(t.idle.steps, looked)
	}
	strike := w.faults.Step(s)
	if strike != (Strike{}) {
		t.acted()
		t.suffer(&s, &strike)
	}
	t.mustLive() // the faults may have killed the process by themselves
	return strike
}

// suffer does what the strike says, but for what the operation itself must do.
func (t *task) suffer(s *Step, strike *Strike) {
	w := t.p.w
	where := s.Operation() + s.Phase.String()
	if strike.Stall > 0 {
		t.record(Record{Event: EventStall, Op: where, Detail: strike.Stall.String()})
		t.sleepUntil(context.Background(), w.now+strike.Stall)
	}
	t.mustLive()
	if strike.Pause > 0 {
		t.p.pause(strike.Pause, s.Name())
		t.sleepUntil(context.Background(), t.p.pausedUntil)
	}
	t.mustLive()
	if strike.Crash {
		t.p.node.crash(strike.Restart, s.Name())
		t.die()
	}
}
