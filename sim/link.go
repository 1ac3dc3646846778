package sim

import (
	"context"
	"net"
	"slices"
	"syscall"
	"time"
)

// parcel is a message that waits for the next one of its way to pass.
type parcel struct {
	name   string
	arrive func()
	gone   bool
}

func (p *parcel) deliver() {
	if !p.gone {
		p.gone = true
		p.arrive()
	}
}

// carry lets a message arrive as its passage says, and behind it those that waited
// for it to pass.
func (w *World) carry(m *Message, name string, after, hold time.Duration, arrive func()) {
	w.after(after, name, func() {
		way := m.From + ">" + m.To
		if hold > 0 {
			w.hold(way, &parcel{name: name, arrive: arrive}, hold)
			return
		}
		arrive()
		if waiting := len(w.held[way]); waiting > 0 {
			w.passed(way, waiting)
		}
	})
}

// hold keeps a message back until the next one of its way has passed, or for d.
func (w *World) hold(way string, p *parcel, d time.Duration) {
	w.held[way] = append(w.held[way], p)
	w.after(d, p.name, func() {
		p.deliver()
		if i := slices.Index(w.held[way], p); i >= 0 {
			w.held[way] = slices.Delete(w.held[way], i, i+1)
			w.passed(way, i)
		}
	})
}

// passed lets the first n that are held on the way arrive, right behind the one that
// has passed: at the same instant, their names would decide who is first.
func (w *World) passed(way string, n int) {
	for _, p := range w.held[way][:n] {
		w.after(w.timing.Link, p.name, p.deliver)
	}
	w.held[way] = w.held[way][n:]
}

// way asks the faults for the state of the network from one node to another.
func (w *World) way(from, to string) Way {
	if w.links == nil {
		return Way{}
	}
	return w.links.Way(from, to, w.now)
}

// lose drops a message, and tells why if there is more to tell.
func (w *World) lose(m *Message, node, why string) {
	w.trace.add(Record{At: w.now, Node: node, Event: EventDrop, Op: m.Name(), Detail: why, Message: m})
}

// cut is why a message is lost on a way that is cut.
func cut(from, to string) string { return "the way from " + from + " to " + to + " is cut" }

var (
	errSilent error = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}
	errReset  error = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// ask is a call of a service that is no node of the world: the way there, f, and
// the way back. Over a way that is cut nobody answers.
func (t *task) ask(ctx context.Context, service string, f func()) error {
	w, here := t.p.w, t.p.node.Name
	there := w.way(here, service)
	if there.Cut {
		return t.silence(ctx)
	}
	t.sleepUntil(ctx, w.now+w.timing.Link+there.Slow)
	f()
	back := w.way(service, here)
	if back.Cut {
		return t.silence(ctx)
	}
	t.sleepUntil(ctx, w.now+w.timing.Link+back.Slow)
	return nil
}

// silence is the wait for an answer that never comes.
func (t *task) silence(ctx context.Context) error {
	t.sleepUntil(ctx, t.p.w.now+t.p.w.timing.Connect)
	if err := ended(ctx); err != nil {
		return err
	}
	return errSilent
}
