package sim

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Node is a machine's place in the world: a name, a clock, and the process that
// runs there now. It outlives its processes.
type Node struct {
	Name  string
	Clock *NodeClock

	w       *World
	boot    func(*Process)
	process *Process // nil while down
	lives   int
	boots   uint64         // which queued boot is valid
	counts  map[string]int // tasks started, by name, over all lives
}

// Up says whether a process runs on the node.
func (n *Node) Up() bool { return n.process != nil }

// Crash kills the node's process from outside, between two steps, and boots it
// again after restart. On a node that is down it does nothing.
func (n *Node) Crash(restart time.Duration) {
	if n.process != nil {
		n.crash(restart, "")
	}
}

// Pause lets the node's process stand still for d, between two steps: its timers
// come late, what arrives waits. On a node that is down it does nothing.
func (n *Node) Pause(d time.Duration) {
	if n.process != nil {
		n.process.pause(d, "")
	}
}

func (p *Process) pause(d time.Duration, step string) {
	p.pausedUntil = max(p.pausedUntil, p.w.now+d)
	p.w.trace.add(Record{At: p.w.now, Node: p.node.Name, Event: EventPause, Op: step, Detail: d.String(), OpenTx: p.holdsTx()})
}

// holdsTx says whether a task of the process holds an open transaction.
func (p *Process) holdsTx() bool {
	return slices.ContainsFunc(p.conns, func(c *conn) bool { return c.tx != nil && !c.tx.over })
}

func (n *Node) start() {
	n.lives++
	n.process = &Process{node: n, w: n.w}
	n.w.trace.add(Record{At: n.w.now, Node: n.Name, Event: EventBoot, Detail: "life " + strconv.Itoa(n.lives)})
	p := n.process
	p.spawn("boot", "", func() { n.boot(p) })
}

// crash ends the process: its memory, its tasks and its connections are gone, its
// open transactions are rolled back, its peers see a reset. step is where it
// happened.
func (n *Node) crash(restart time.Duration, step string) {
	p := n.process
	n.w.trace.add(Record{At: n.w.now, Node: n.Name, Event: EventCrash, Op: step, Detail: "restarts after " + restart.String(), OpenTx: p.holdsTx()})
	p.kill()
	n.boots++
	boot := n.boots
	n.w.after(restart, n.Name, func() {
		if n.boots == boot && n.process == nil {
			n.start()
		}
	})
}

// Process is one life of a node: what its boot function gets, and all that the
// code running in it may use of the world. All its effects end with it.
type Process struct {
	node        *Node
	w           *World
	dead        bool
	pausedUntil time.Duration // it stands still until this true time
	handler     http.Handler
	tasks       []*task
	conns       []*conn // open, in order of opening
	databases   []*sql.DB
	exchanges   []*exchange // requests it is answering
}

// Name returns the node's name.
func (p *Process) Name() string { return p.node.Name }

// Clock returns the process's clock.
func (p *Process) Clock() Clock { return Clock{p} }

// Serve answers the HTTP requests that reach the node from now on.
func (p *Process) Serve(handler http.Handler) { p.enter("Serve"); p.handler = handler }

// HTTPClient returns a client whose requests go through the world's network.
func (p *Process) HTTPClient() *http.Client { return &http.Client{Transport: transport{p}} }

// Go runs f in the background, as a task named after name; "kind(key)" gives the
// task a key.
func (p *Process) Go(name string, f func(ctx context.Context)) {
	p.enter("Go")
	kind, key := splitKey(name)
	p.spawn(kind, key, func() { f(p.context()) })
}

// Every runs f at each multiple of interval, shifted by an offset of the node's
// own so that the nodes don't run in step. A run that outlasts its interval makes
// the runs meanwhile fall out. A run is named by its scheduled time. Runs that would
// find nothing to do may be left out, see [Foresight].
func (p *Process) Every(name string, interval time.Duration, f func(ctx context.Context)) {
	p.enter("Every")
	if interval <= 0 {
		panic(fmt.Sprintf("sim: Every(%q): the interval is %v, it must be positive", name, interval))
	}
	offset := time.Duration(Draw(0, "every", HashName(p.node.Name+"/"+name))) % interval
	if offset < 0 {
		offset += interval
	}
	l := &loop{p: p, name: name, interval: interval, offset: offset.Truncate(time.Millisecond), run: f}
	l.schedule(l.next())
}

// NewID returns an identifier that is unique in the world and depends only on
// the task that asks and on how often it has asked.
func (p *Process) NewID() string {
	t := p.enter(callNewID)
	t.ids++
	return fmt.Sprintf("%016x", mix(hashUint(t.prefix, uint64(t.ids))))
}

// Logger returns a logger whose warnings and errors go to the trace.
func (p *Process) Logger() *slog.Logger { return slog.New(logHandler{p: p}) }

// Note writes a line of the harness's own to the trace.
func (p *Process) Note(op, detail string) {
	p.enter("Note").record(Record{Event: EventNote, Op: op, Detail: detail})
}

// The calls that leave a run of a loop idle, see idleRun.
const (
	callSQL   = "database/sql"
	callNewID = "NewID"
)

// enter returns the running task, which must be one of this process. A task
// whose process has died gets no further than this.
func (p *Process) enter(call string) *task {
	t := p.w.current
	if t == nil || t.p != p {
		panic(fmt.Sprintf("sim: %s of %s used outside its tasks (by a goroutine, by another process, or after the run)", call, p.node.Name))
	}
	t.mustLive()
	if call != callSQL && call != callNewID {
		t.acted()
	}
	return t
}

// context is what the process's background work runs under.
func (p *Process) context() context.Context {
	return &virtualContext{Context: context.Background(), p: p, deadline: noDeadline}
}

// contextsEnded lets what is under a context that has just ended end with it: a
// wait, and an open transaction.
func (p *Process) contextsEnded() {
	for _, c := range p.conns {
		if c.tx != nil && ended(c.tx.ctx) != nil {
			c.rollBack()
		}
	}
	for _, t := range p.tasks {
		if t.waits != nil && ended(t.waits) != nil {
			p.w.ready(t)
		}
	}
}

// unique appends a count to names that come again.
func (p *Process) unique(name string) string {
	n := p.node
	n.counts[name]++
	if n.counts[name] == 1 {
		return name
	}
	return name + "#" + strconv.Itoa(n.counts[name])
}

// spawn starts a task with the next count of its name.
func (p *Process) spawn(kind, key string, run func()) *task {
	name := joinKey(kind, key)
	p.node.counts[name]++
	t := p.newTask(p.unique(name+"#"+strconv.Itoa(p.node.counts[name])), key, run)
	p.w.ready(t)
	return t
}

func (p *Process) newTask(name, key string, run func()) *task {
	t := &task{p: p, name: name, full: p.node.Name + "/" + name, key: key, run: run}
	t.prefix = hashString(hashString(fnvOffset, t.full), "/")
	p.tasks = append(p.tasks, t)
	return t
}

// forget drops a task that has ended.
func (p *Process) forget(t *task) {
	for i := range p.tasks {
		if p.tasks[i] == t {
			p.tasks = append(p.tasks[:i], p.tasks[i+1:]...)
			return
		}
	}
}

// kill makes every effect of the process inert and leaves its tasks to be
// unwound by the world.
func (p *Process) kill() {
	p.dead = true
	p.node.process = nil
	for _, c := range p.conns {
		c.abandon()
	}
	for _, x := range p.exchanges {
		x.reset("peer crashed")
	}
	p.conns, p.exchanges = nil, nil
	p.w.dying = append(p.w.dying, p)
}

// unwind runs the dead process's tasks to their end. None of them can give way or
// have an effect any more.
func (p *Process) unwind() {
	for len(p.tasks) > 0 {
		t := p.tasks[0]
		if t.co == nil { // never ran
			p.forget(t)
			continue
		}
		p.w.resume(t)
	}
	for _, db := range p.databases {
		db.Close()
	}
	p.databases = nil
}

func joinKey(kind, key string) string {
	if key == "" {
		return kind
	}
	return kind + "(" + key + ")"
}

func splitKey(name string) (kind, key string) {
	kind, rest, ok := strings.Cut(name, "(")
	if !ok || !strings.HasSuffix(rest, ")") {
		return name, ""
	}
	return kind, strings.TrimSuffix(rest, ")")
}

// logHandler writes the system's warnings and errors to the trace.
type logHandler struct {
	p     *Process
	attrs string
	group string
}

func (h logHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && !h.p.dead && h.p.w.current != nil
}

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Message + h.attrs)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&b, " %s%s=%v", h.group, a.Key, a.Value); return true })
	h.p.w.current.acted()
	h.p.w.current.record(Record{Event: EventLog, Op: r.Level.String(), Detail: b.String()})
	return nil
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.attrs += fmt.Sprintf(" %s%s=%v", h.group, a.Key, a.Value)
	}
	return h
}

func (h logHandler) WithGroup(name string) slog.Handler { h.group += name + "."; return h }
