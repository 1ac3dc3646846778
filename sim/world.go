package sim

import (
	"database/sql/driver"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// Timing is how long the undisturbed world takes for things. Zero fields get the
// defaults.
type Timing struct {
	Statement time.Duration // one SQL statement; 200us
	Commit    time.Duration // COMMIT, and a write outside a transaction: it waits for the disk; 1ms
	Link      time.Duration // one leg of a request between two nodes; 5ms
	Connect   time.Duration // a request without a deadline gives up on a silent peer; 2m
	Restart   time.Duration // a process that died by its own panic boots again; 1s
}

// DefaultTiming returns the timing of a world that names none.
func DefaultTiming() Timing { return Timing{}.withDefaults() }

func (t Timing) withDefaults() Timing {
	for _, f := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&t.Statement, 200 * time.Microsecond}, {&t.Commit, time.Millisecond}, {&t.Link, 5 * time.Millisecond},
		{&t.Connect, 2 * time.Minute}, {&t.Restart, time.Second},
	} {
		if *f.field == 0 {
			*f.field = f.standard
		}
	}
	return t
}

// Naming finds the stable names of what the kernel cannot understand by itself.
// Nil functions leave keys empty.
type Naming struct {
	// Request returns what kind of request this is ("callback") and the key of
	// the thing it is about ("A"). By default the kind is method and path.
	Request func(r *http.Request, body []byte) (kind, key string)
	// Statement returns the key of a statement, from its name and arguments.
	Statement func(name string, args []driver.NamedValue) string
}

// Config is what a world is made of.
type Config struct {
	// Start is the wall-clock time at which the world begins, and its zone.
	Start  time.Time
	Faults Faults // nil injects nothing
	Naming Naming
	Timing Timing
	// Arena lends connections, databases and coroutines to one world after the
	// other. Nil gives the world one of its own.
	Arena *Arena
	// Journal is that of the world's own arena, if Arena is nil.
	Journal Journal
	// Tape, if set, records the SQL statements that the world executes.
	Tape *Tape
}

// World is one simulated world. It is used by one goroutine.
type World struct {
	arena     *Arena
	ownArena  bool
	closed    bool
	faults    Faults
	foresight Foresight
	links     Links
	naming    Naming
	timing    Timing
	trace     Trace
	tape      *Tape

	now     time.Duration
	shared  atomic.Int64  // now, for database/sql's goroutines, which ask a context for its Err
	limit   time.Duration // Run goes no further than this
	queue   eventQueue
	ticks   eventQueue // the loops' next runs
	asleep  []*loop    // those that have left out runs
	seq     uint64
	current *task
	dying   []*Process
	steps   int
	sql     int
	running atomic.Pointer[string]
	resumes atomic.Uint64

	nodes     []*Node
	hosts     map[string][]*Node
	messages  map[string]int       // requests sent, by kind and key
	held      map[string][]*parcel // by way
	databases []*Database
}

// New returns an empty world at time zero. It must be closed.
func New(c Config) *World {
	w := &World{
		arena: c.Arena, faults: c.Faults, naming: c.Naming, timing: c.Timing.withDefaults(), tape: c.Tape,
		trace: Trace{Start: c.Start, hash: fnvOffset},
		hosts: map[string][]*Node{}, messages: map[string]int{}, held: map[string][]*parcel{},
	}
	if w.arena == nil {
		w.arena, w.ownArena = c.Journal.NewArena(), true
	}
	w.trace.Records = w.arena.takeRecords()
	w.foresight, _ = c.Faults.(Foresight)
	w.links, _ = c.Faults.(Links)
	return w
}

// Now returns the true time since the world's start.
func (w *World) Now() time.Duration { return w.now }

// Trace returns what has happened so far.
func (w *World) Trace() *Trace { return &w.trace }

// Journal returns how the world's databases lock.
func (w *World) Journal() Journal { return w.arena.journal }

// Steps returns how many steps were reached.
func (w *World) Steps() int { return w.steps }

// Statements returns how many SQL statements the processes executed, BEGIN, COMMIT
// and ROLLBACK among them.
func (w *World) Statements() int { return w.sql }

// Node adds a node and boots its first process at the current time, by running
// boot as a task of it; so for each life.
func (w *World) Node(name string, boot func(*Process)) *Node {
	if len(w.hosts[name]) > 0 {
		panic(fmt.Sprintf("sim: there is a node or host %q already", name))
	}
	n := &Node{Name: name, w: w, boot: boot, counts: map[string]int{}}
	n.Clock = &NodeClock{w: w}
	w.nodes = append(w.nodes, n)
	w.hosts[name] = []*Node{n}
	n.start()
	return n
}

// Host gives a group of nodes one name on the network, as a load balancer does:
// a request to it goes to one of them that is up.
func (w *World) Host(name string, nodes ...*Node) {
	if len(w.hosts[name]) > 0 {
		panic(fmt.Sprintf("sim: there is a node or host %q already", name))
	}
	w.hosts[name] = nodes
}

// Nodes returns the nodes in the order they were added.
func (w *World) Nodes() []*Node { return w.nodes }

// At calls f at true time at, between two steps, as the hand of the operator or
// of the harness.
func (w *World) At(at time.Duration, name string, f func()) {
	w.push(event{at: max(at, w.now), name: name, call: f})
}

// Run lets everything happen that happens until true time until.
func (w *World) Run(until time.Duration) { w.RunUntil(until, func() bool { return false }) }

// RunUntil is Run, but ends early, after an event, when stop says so.
func (w *World) RunUntil(until time.Duration, stop func() bool) {
	w.limit = until
	for !stop() {
		w.bury()
		e, ok := w.take(until)
		if !ok {
			w.advance(until)
			return
		}
		if e.task != nil && (e.task.done || e.wakeup != e.task.wakeups) {
			continue
		}
		if e.of != nil && !e.of.dead && e.of.pausedUntil > e.at {
			e.at = e.of.pausedUntil
			w.queue.push(e)
			continue
		}
		w.advance(e.at)
		if e.call != nil {
			e.call()
			continue
		}
		w.resume(e.task)
	}
	w.limit = w.now
}

// take removes the next event, if it is due until then.
func (w *World) take(until time.Duration) (event, bool) {
	from := &w.queue
	next, ok := from.peek()
	if tick, due := w.ticks.peek(); due && (!ok || tick.before(next)) {
		from, next, ok = &w.ticks, tick, true
	}
	if !ok || next.at > until {
		return event{}, false
	}
	e := *next
	from.pop()
	return e, true
}

func (w *World) advance(to time.Duration) {
	w.now = max(w.now, to)
	w.shared.Store(int64(w.now))
}

// resume lets a task run until it gives way.
func (w *World) resume(t *task) {
	t.wakeups++
	if t.co == nil {
		t.co = w.arena.takeCoroutine()
		t.co.job = t.main
	}
	outer := w.current
	w.current = t
	w.running.Store(&t.full)
	w.resumes.Add(1)
	if t.stubborn {
		aside(func() { t.co.resume() })
	} else {
		t.co.resume()
	}
	w.current = outer
	w.running.Store(nil)
	if t.done {
		t.p.forget(t)
		if !t.stubborn {
			w.arena.giveCoroutine(t.co)
		}
		t.co = nil
	}
}

// bury unwinds the tasks of the processes that died.
func (w *World) bury() {
	for len(w.dying) > 0 {
		p := w.dying[0]
		w.dying = w.dying[1:]
		p.unwind()
	}
}

// Progress tells, from any goroutine, how often a task was resumed and which one
// runs now, as NODE/TASK ("" if none). When the first number stands still and the second does
// not, that task waits for something that no other task can give it.
func (w *World) Progress() (resumes uint64, running string) {
	if name := w.running.Load(); name != nil {
		running = *name
	}
	return w.resumes.Load(), running
}

// Close ends all processes and returns what the world borrowed. The trace stays
// readable until the arena's next world begins.
func (w *World) Close() {
	if w.closed {
		return
	}
	w.closed = true
	for _, n := range w.nodes {
		n.boots++
		if n.process != nil {
			n.process.kill()
		}
	}
	w.bury()
	for _, db := range w.databases {
		db.close()
	}
	w.arena.giveRecords(w.trace.Records)
	if w.ownArena {
		w.arena.Close()
	}
}

func (w *World) ready(t *task) { t.wakeAt(w.now) }

func (w *World) after(d time.Duration, name string, f func()) {
	w.push(event{at: w.now + d, name: name, call: f})
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	w.queue.push(e)
}

// idleBefore says that nothing is queued up to and including true time at.
func (w *World) idleBefore(at time.Duration) bool {
	e, ok := w.queue.peek()
	tick, ticks := w.ticks.peek()
	return (!ok || e.at > at) && (!ticks || tick.at > at) && len(w.dying) == 0
}

// label is a scheduled time as it stands in a task's name.
func (w *World) label(at time.Duration) string {
	when := w.trace.Start.Add(at)
	if when.YearDay() == w.trace.Start.YearDay() && when.Year() == w.trace.Start.Year() {
		return when.Format("15:04:05.000")
	}
	return when.Format("2006-01-02T15:04:05.000")
}

// event is something that will happen: a task wakes up, or the kernel acts.
type event struct {
	at     time.Duration
	name   string // breaks ties between events of one instant
	seq    uint64
	task   *task
	wakeup uint64
	of     *Process // whose doing it is, nil for the world's own: it waits while the process stands still
	call   func()
}

func (e *event) before(o *event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if e.name != o.name {
		return e.name < o.name
	}
	return e.seq < o.seq
}

// eventQueue is a binary heap. container/heap would box every event.
type eventQueue struct{ heap []event }

func (q *eventQueue) peek() (*event, bool) {
	if len(q.heap) == 0 {
		return nil, false
	}
	return &q.heap[0], true
}

func (q *eventQueue) push(e event) {
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *eventQueue) pop() {
	h := q.heap
	last := len(h) - 1
	h[0] = h[last]
	h[last] = event{}
	q.heap = h[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
