package sim

import (
	"context"
	"database/sql/driver"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Foresight is what Faults may say of the future. With it, or without faults, the
// world leaves out periodic runs that would find nothing.
type Foresight interface {
	// Armed says whether Step would do anything at s. Asking changes nothing.
	Armed(s Step) bool
	// Over says that nothing will be done at or after true time at to the runs of a
	// loop, NODE/NAME.
	Over(loop string, at time.Duration) bool
}

// loop is a job that runs periodically, see Process.Every.
type loop struct {
	p                *Process
	name             string
	interval, offset time.Duration
	run              func(context.Context)
	idle             *idleRun // the last run, if it did nothing but look
	ticks            uint64   // which queued tick is valid
	due              time.Duration
}

// idleRun is a run of a loop that only read: what it asked, and what it saw. As long
// as nobody writes, another run differs from it only by db_now_ms().
type idleRun struct {
	looks []look
	steps []Step        // without time and task
	until time.Duration // the last run that would do nothing, as far as was known
}

// look is a SELECT outside a transaction.
type look struct {
	db      *Database
	version int // of the database
	after   time.Duration
	query   string
	args    []driver.NamedValue
	rows    [][]driver.Value
}

// next returns the loop's first scheduled time after now.
func (l *loop) next() time.Duration {
	now := l.p.w.now
	next := now - (now-l.offset)%l.interval
	for next <= now {
		next += l.interval
	}
	return next
}

// schedule queues the loop's next run.
func (l *loop) schedule(at time.Duration) {
	w := l.p.w
	w.seq++
	l.ticks++
	l.due = at
	valid := l.ticks
	w.ticks.push(event{at: at, name: l.p.node.Name + "/" + l.name, seq: w.seq, of: l.p, call: func() {
		if l.ticks == valid {
			l.tick(at)
		}
	}})
}

// sleep leaves out the runs up to true time at.
func (l *loop) sleep(at time.Duration) {
	l.p.w.asleep = append(l.p.w.asleep, l)
	l.schedule(at + l.interval)
}

// wake takes note that the loop's next run is not left out.
func (l *loop) wake() {
	w := l.p.w
	if i := slices.Index(w.asleep, l); i >= 0 {
		w.asleep = slices.Delete(w.asleep, i, i+1)
	}
}

// changed ends the sleep of the loops that look at the database: their next runs are
// to see what is written now, or to wait for who has begun a transaction.
func (d *Database) changed() {
	d.w.asleep = slices.DeleteFunc(d.w.asleep, func(l *loop) bool {
		if l.p.dead || !l.idle.looksAt(d) {
			return l.p.dead
		}
		if next := l.next(); next < l.due {
			l.schedule(next)
		}
		return true
	})
}

// tick starts the run that is scheduled for at, or leaves out all runs from there on
// that would do nothing.
func (l *loop) tick(at time.Duration) {
	p := l.p
	if p.dead {
		return
	}
	l.wake()
	if idle := l.idleUntil(at); idle >= at && at == p.w.now {
		l.sleep(idle)
		return
	}
	t := p.newTask(p.unique(l.label(at)), "", nil)
	t.idle, t.began = &idleRun{}, p.w.now
	t.run = func() {
		t.begin("timer", "").end()
		l.run(p.context())
		l.idle = t.idle
		l.schedule(l.next())
	}
	p.w.ready(t)
}

// RunOf returns the time for which the run of a periodic job with this name is
// scheduled, "close-scan@14:15:00.000"; the end of time for any other task.
func (w *World) RunOf(task string) time.Duration {
	_, label, _ := strings.Cut(task, "@")
	label, _, _ = strings.Cut(label, "#")
	start := w.trace.Start
	if at, err := time.ParseInLocation("2006-01-02T15:04:05.000", label, start.Location()); err == nil {
		return at.Sub(start)
	}
	at, err := time.ParseInLocation("2006-01-02T15:04:05.000", start.Format("2006-01-02T")+label, start.Location())
	if err != nil {
		return noDeadline
	}
	return at.Sub(start)
}

func (l *loop) label(at time.Duration) string { return l.name + "@" + l.p.w.label(at) }

// idleUntil returns the last of the scheduled times from first on at which the loop
// would do nothing, a time before first if there is none. It looks no further than
// the next thing that happens otherwise.
//
// It takes for granted that what a query does not find later it does not find
// sooner either, if nobody writes: that is what being due means.
func (l *loop) idleUntil(first time.Duration) time.Duration {
	none := first - l.interval
	w := l.p.w
	if l.idle == nil || w.faults != nil && w.foresight == nil {
		return none
	}
	horizon := w.limit + 1
	if e, ok := w.queue.peek(); ok {
		horizon = min(horizon, e.at)
	}
	if horizon <= first {
		return none
	}
	low, high := int64(-1), l.unarmed(first, int64((horizon-1-first)/l.interval))
	if high >= 0 && !l.idle.fresh() {
		if !l.idle.refresh(first) {
			return none
		}
		low = 0
	}
	// The furthest is tried first: mostly, nothing becomes due. Then what was found the
	// last time: mostly, what was written has changed nothing of it.
	last := int64((l.idle.until - first) / l.interval)
	for try := high; low < high; {
		if l.idle.seenAt(first + time.Duration(try)*l.interval) {
			low = try
		} else {
			high = try - 1
		}
		switch {
		case low < last && last <= high:
			try = last
		case low == last:
			try = last + 1
		default:
			try = (low + high + 1) / 2
		}
	}
	l.idle.until = first + time.Duration(low)*l.interval
	return l.idle.until
}

// unarmed returns the number of the last of the runs 0 to last before the first one
// that faults will strike, -1 if that is the first.
func (l *loop) unarmed(first time.Duration, last int64) int64 {
	w := l.p.w
	if w.foresight == nil || w.foresight.Over(l.p.node.Name+"/"+l.name, first) {
		return last
	}
	for n := range last + 1 {
		at := first + time.Duration(n)*l.interval
		prefix := hashString(hashString(hashString(fnvOffset, l.p.node.Name+"/"), l.label(at)), "/")
		for _, s := range l.idle.steps {
			s.At, s.Task, s.prefix = at+s.At, l.label(at), prefix
			if w.foresight.Armed(s) {
				return n - 1
			}
		}
	}
	return last
}

func (r *idleRun) looksAt(d *Database) bool {
	return slices.ContainsFunc(r.looks, func(l look) bool { return l.db == d })
}

// fresh says that nobody has written since.
func (r *idleRun) fresh() bool {
	return !slices.ContainsFunc(r.looks, func(l look) bool { return l.version != l.db.version })
}

// refresh says whether a run scheduled for at sees the same as before, though somebody
// has written.
func (r *idleRun) refresh(at time.Duration) bool {
	if !r.seenAt(at) {
		return false
	}
	for i := range r.looks {
		r.looks[i].version = r.looks[i].db.version
	}
	return true
}

// seenAt says whether a run scheduled for at would see the same.
func (r *idleRun) seenAt(at time.Duration) bool {
	for i := range r.looks {
		if !r.looks[i].seenAt(at) {
			return false
		}
	}
	return true
}

func (l *look) seenAt(at time.Duration) bool {
	s := l.db.slot
	now := s.now
	s.now = func() int64 { return l.db.w.trace.Start.Add(at + l.after).UnixMilli() }
	_, rows, err := s.anchor.readAll(l.query, l.args)
	s.now = now
	return err == nil && reflect.DeepEqual(rows, l.rows)
}

// look notes that the running task has read, if that is all it has done so far.
func (t *task) look(d *Database, query string, args []driver.NamedValue, rows [][]driver.Value) {
	if t.idle != nil {
		t.idle.looks = append(t.idle.looks, look{d, d.version, t.p.w.now - t.began, query, args, rows})
	}
}

// acted notes that the running task has done more than to read.
func (t *task) acted() { t.idle = nil }
