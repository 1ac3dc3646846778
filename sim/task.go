package sim

import (
	"fmt"
	"iter"
	"time"
)

// task is one thread of a process: a coroutine that runs until it gives way.
type task struct {
	p      *Process
	name   string // with its count, "callback(A)#2"
	key    string
	prefix uint64 // hash of "NODE/TASK/", see Step.Hash
	run    func()
	co     *coroutine

	wakeups uint64 // which wake-up is valid: a queued event of an earlier one is stale
	done    bool
	counts  []opCount
	openTx  int // transactions this task holds open
	errors  int // calls made after the process died
	ids     int
}

type opCount struct {
	op, key string
	n       int
}

// crashed unwinds a task whose process died. It is unexported, and each further
// touch of the world throws it again, so that no recover in the system survives it.
type crashed struct{}

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
		panic(crashed{})
	}
}

// sleepUntil gives way until true time at. Where nothing else can happen before,
// it only advances the clock.
func (t *task) sleepUntil(at time.Duration) {
	w := t.p.w
	if at <= w.limit && w.idleBefore(at) {
		w.now = max(w.now, at)
	}
	for w.now < at {
		t.parkUntil(at)
	}
}

// parkUntil gives way until the task is woken, at the latest at true time at.
func (t *task) parkUntil(at time.Duration) {
	t.wakeAt(at)
	t.park()
}

// wakeAt queues a wake-up that is void once the task has been woken otherwise.
func (t *task) wakeAt(at time.Duration) {
	t.p.w.push(event{at: at, name: t.name, task: t, wakeup: t.wakeups})
}

// begin reaches the step before an operation.
func (t *task) begin(op, key string) operation {
	if key == t.key {
		key = ""
	}
	o := operation{t: t, op: op, key: key, n: t.count(op, key)}
	o.step(Before)
	return o
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
}

// end reaches the step after the operation.
func (o operation) end() { o.step(After) }

// name tells the operation within its task, see Step.Operation.
func (o operation) name() string {
	return Step{Op: o.op, Key: o.key, N: o.n}.Operation()
}

// step gives the faults their chance and does what they say.
func (o operation) step(phase Phase) {
	t := o.t
	w := t.p.w
	w.steps++
	if w.faults == nil {
		return
	}
	s := Step{At: w.now, Node: t.p.node.Name, Task: t.name, Op: o.op, Key: o.key, N: o.n, Phase: phase, prefix: t.prefix}
	strike := w.faults.Step(s)
	if strike.Stall > 0 {
		t.record(Record{Event: EventStall, Op: s.Operation() + phase.String(), Detail: strike.Stall.String()})
		t.sleepUntil(w.now + strike.Stall)
	}
	if strike.Crash {
		t.p.node.crash(strike.Restart, s.Name())
		panic(crashed{})
	}
}
