package checker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// callbacks are those that have no answer yet.
type callbacks struct {
	served map[string]*serving      // by task
	paused map[string]time.Duration // nodes: until when they stand still
	sent   map[string]*sim.Message  // by the channel's task: the last one
	heard  map[string]*sim.Message  // answers that their channel has heard in time, by exchange
}

func newCallbacks() callbacks {
	return callbacks{map[string]*serving{}, map[string]time.Duration{}, map[string]*sim.Message{}, map[string]*sim.Message{}}
}

// serving is a callback that waits for its answer.
type serving struct {
	request *sim.Message
	node    string
	since   time.Duration
	seq     int           // of the record at which it came
	excused time.Duration // in which it, or whoever had the lock that it needs, was made to stand still
	waits   bool          // for a lock
}

// ackPatience is how long a channel waits for the answer to a callback.
const ackPatience = 5 * time.Second

// observeDefiniteAnswer finds a callback that gets no answer in time, or one that says
// nothing: a 5xx. Explained is what no-unexplained-error takes as explained; a task that
// was made to stand still has so much more time.
func observeDefiniteAnswer(e *Evidence, r *sim.Record) {
	e.observeAck(r)
	switch r.Event {
	case sim.EventDeliver:
		if m := r.Message; m.Leg == sim.Request && isCallback(m) && databaseOf(r.Node) == shopDB {
			e.callbacks.served[r.Node+"/"+r.Op] = &serving{
				request: m, node: r.Node, since: r.At, seq: r.Seq, excused: max(0, e.callbacks.paused[r.Node]-r.At),
			}
		}
	case sim.EventStall:
		if s := e.callbacks.served[taskOf(r)]; s != nil {
			s.excused += durationOf(r)
		}
	case sim.EventPause:
		e.callbacks.pause(r)
	case sim.EventCrash:
		e.callbacks.crash(r.Node)
	case sim.EventBusy, sim.EventSQL:
		if s := e.callbacks.served[taskOf(r)]; s != nil {
			e.excuseWait(s, r)
		}
	case sim.EventAnswer, sim.EventPanic:
		if s := e.callbacks.served[taskOf(r)]; s != nil {
			delete(e.callbacks.served, taskOf(r))
			e.judgeAnswer(s, r)
		}
	}
}

// pause excuses every callback of a process that stands still.
func (c *callbacks) pause(r *sim.Record) {
	from := max(r.At, c.paused[r.Node])
	until := max(from, r.At+durationOf(r))
	c.paused[r.Node] = until
	for _, s := range c.served { // order-free: each by itself
		if s.node == r.Node {
			s.excused += until - from
		}
	}
}

// crash forgets what dies with a process.
func (c *callbacks) crash(node string) {
	delete(c.paused, node)
	maps.DeleteFunc(c.served, func(_ string, s *serving) bool { return s.node == node })
}

// excuseWait excuses a wait for a lock as far as its holder was made to stand still.
func (e *Evidence) excuseWait(s *serving, r *sim.Record) {
	if since := e.trouble.waiting[taskOf(r)]; s.waits {
		s.excused += max(0, min(r.At, e.trouble.heldUp[databaseOf(r.Node)])-since)
	}
	s.waits = r.Event == sim.EventBusy
}

func (e *Evidence) judgeAnswer(s *serving, r *sim.Record) {
	late := r.At - s.since - s.excused
	switch {
	case e.trouble.upset[taskOf(r)]:
	case r.Event == sim.EventPanic:
		e.failAnswer(s, "a panic instead of an answer", "has no answer, for its task panicked")
	case r.Message.Status/100 == 5 && !e.explains(r):
		e.failAnswer(s, "an answer that says nothing", fmt.Sprintf("was answered %d", r.Message.Status))
	case late > ackPatience:
		e.failAnswer(s, "a late answer", fmt.Sprintf("was answered after %v", late.Round(time.Millisecond)))
	}
}

// endDefiniteAnswer finds what was never answered.
func endDefiniteAnswer(e *Evidence) {
	if len(e.trace.Records) == 0 {
		return
	}
	now := e.trace.Records[len(e.trace.Records)-1].At
	for _, task := range slices.Sorted(maps.Keys(e.callbacks.served)) {
		if s := e.callbacks.served[task]; now-s.since-s.excused > ackPatience && !e.trouble.upset[task] {
			e.failAnswer(s, "no answer", "was never answered")
		}
	}
}

func (e *Evidence) failAnswer(s *serving, roles, what string) {
	notice := parse(s.request)
	f := Failure{Order: notice.OrderNo, Stake: notice.amount(), Roles: s.request.Kind + " gets " + roles, Message: fmt.Sprintf(
		"order %s: the %s that tells of %s came to %s at %s and %s", notice.OrderNo, s.request.Kind, notice.amount(), s.node, e.trace.Clock(s.since), what)}
	if e.ending {
		f.Seq, f.AtEnd = s.seq, true
	}
	e.fail(f)
}

// observeAck finds an answer that says yes in words that its channel does not take for one:
// the channel then counts a send without an ack, and sends again.
func (e *Evidence) observeAck(r *sim.Record) {
	c := &e.callbacks
	switch {
	case r.Event == sim.EventSend && isCallback(r.Message):
		c.sent[taskOf(r)] = r.Message
	case r.Event == sim.EventDeliver && r.Message.Leg == sim.Answer && isCallback(r.Message) && !e.trouble.gone[r.Message.Exchange]:
		c.heard[r.Message.Exchange] = r.Message
	case r.Event == sim.EventSQL && c.sent[taskOf(r)] != nil && strings.HasPrefix(r.Op, "ReadNotification"):
		delete(c.sent, taskOf(r)) // it begins again, and may not come to send anything
	case isRow(r, "notifications") && e.old != nil && r.Change.Int("unacked") > e.old.Int("unacked"):
		sent := c.sent[taskOf(r)]
		if sent == nil || c.heard[sent.Exchange] == nil || c.heard[sent.Exchange].Status/100 != 2 {
			return
		}
		answer := c.heard[sent.Exchange]
		e.failAnswer(&serving{request: sent, node: answer.From, since: r.At}, "an answer that is no ack", fmt.Sprintf(
			"was answered %d %q, which %s takes for no ack: it will send again until it gives up", answer.Status, answer.Body, sent.From))
	}
}

// durationOf is how long a stall or a pause takes.
func durationOf(r *sim.Record) time.Duration {
	d, _ := time.ParseDuration(r.Detail) // the kernel's own
	return d
}
