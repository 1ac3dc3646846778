package sim

import (
	"bytes"
	"cmp"
	"context"
	"strconv"
	"time"
)

// Broker is a message broker of the world. It takes messages and hands each, after
// its delay, to one of the processes that subscribe to its topic, and again until
// one of them has handled it. It outlives the processes.
type Broker struct {
	Name string
	// LoseAll makes it lose every message that it has taken, as a broker does that
	// restarts with its delayed messages in memory.
	LoseAll bool

	w           *World
	subscribers map[string][]subscriber // by topic
}

type subscriber struct {
	p      *Process
	handle func(context.Context, Delivery) error
}

// Delivery is a message as a subscriber gets it. A message that comes again keeps
// its ID.
type Delivery struct {
	ID, Topic, Key string
	Body           []byte
}

// The broker delivers again when a handler failed, or has not ended after a while.
const (
	redeliverAfter = 5 * time.Second
	handlerTime    = 30 * time.Second
)

// Broker adds a broker to the world.
func (w *World) Broker(name string) *Broker {
	return &Broker{Name: name, w: w, subscribers: map[string][]subscriber{}}
}

// BrokerClient is a process's connection to a broker.
type BrokerClient struct {
	p *Process
	b *Broker
}

// Broker connects the process to a broker.
func (p *Process) Broker(b *Broker) BrokerClient { return BrokerClient{p, b} }

// Subscribe hands the messages of a topic to handle, as long as the process lives.
func (c BrokerClient) Subscribe(topic string, handle func(context.Context, Delivery) error) {
	c.p.enter("Subscribe")
	c.b.subscribers[topic] = append(c.b.subscribers[topic], subscriber{c.p, handle})
}

// Publish gives the broker a message. It returns once the broker has taken it.
func (c BrokerClient) Publish(ctx context.Context, topic, key string, body []byte, delay time.Duration) error {
	t := c.p.enter("Publish")
	w := c.p.w
	m := &Message{Leg: Request, Kind: topic, Key: key, From: c.p.node.Name, To: c.b.Name, Method: MethodPublish, Path: topic, Body: bytes.Clone(body)}
	o := t.begin("publish "+topic, key)
	if err := ended(ctx); err != nil {
		return err
	}
	w.number(m)
	t.record(Record{Event: EventSend, Op: m.Name(), Message: m})
	err := t.ask(ctx, c.b.Name, func() { c.b.accept(m, delay) })
	if err != nil {
		t.record(Record{Event: EventFail, Op: m.Name(), Detail: err.Error()})
	}
	o.end()
	return cmp.Or(err, ended(ctx))
}

// accept keeps the message, or loses it.
func (b *Broker) accept(m *Message, delay time.Duration) {
	passage := b.w.passage(m)
	if passage.Drop || b.LoseAll {
		b.w.lose(m, b.Name, "")
		return
	}
	due := b.w.timing.Link + max(0, delay) + passage.Delay
	b.deliver(&delivery{b: b, m: m, name: m.Exchange}, due)
	for i, later := range passage.Copies {
		copied := &delivery{b: b, m: m, name: m.Exchange + "+" + strconv.Itoa(i+1)}
		b.w.trace.add(Record{At: b.w.now, Node: b.Name, Event: EventCopy, Op: copied.name, Message: m})
		b.deliver(copied, due+later)
	}
}

// delivery is a message on its way to whoever handles it.
type delivery struct {
	b     *Broker
	m     *Message
	name  string
	tries int
	done  bool
}

// deliver lets the next attempt follow; of several, the first makes the others void.
func (b *Broker) deliver(d *delivery, after time.Duration) {
	tries := d.tries
	b.w.after(after, d.name, func() {
		if d.tries == tries && !d.done {
			d.attempt()
		}
	})
}

// attempt hands the message to one of the live subscribers.
func (d *delivery) attempt() {
	s, ok := d.b.pick(d)
	if !ok {
		d.b.deliver(d, redeliverAfter)
		return
	}
	d.tries++
	w := d.b.w
	way := w.way(d.b.Name, s.p.node.Name)
	if way.Cut {
		w.lose(d.m, s.p.node.Name, cut(d.b.Name, s.p.node.Name))
		d.b.deliver(d, redeliverAfter)
		return
	}
	if way.Slow > 0 {
		w.after(way.Slow, d.name, func() { d.arrive(s) })
	} else {
		d.arrive(s)
	}
	d.b.deliver(d, way.Slow+handlerTime)
}

// arrive starts the handler, if the subscriber still lives.
func (d *delivery) arrive(s subscriber) {
	if s.p.dead {
		return
	}
	w := d.b.w
	w.trace.add(Record{At: w.now, Node: s.p.node.Name, Event: EventDeliver, Op: d.name, Message: d.m})
	t := s.p.newTask(s.p.unique(d.name), d.m.Key, nil)
	t.run = func() { d.handle(t, s) }
	w.ready(t)
}

// handle runs the subscriber. A handler that dies with its process has not handled it.
func (d *delivery) handle(t *task, s subscriber) {
	t.begin("receive", "").end()
	err := s.handle(s.p.context(), Delivery{ID: d.m.Exchange, Topic: d.m.Kind, Key: d.m.Key, Body: bytes.Clone(d.m.Body)})
	o := t.begin("acknowledge", "")
	switch {
	case err == nil && d.b.w.way(s.p.node.Name, d.b.Name).Cut: // the broker will hand it out again
	case err == nil:
		d.done = true
	default:
		t.record(Record{Event: EventFail, Op: d.name, Detail: err.Error()})
		d.b.deliver(d, redeliverAfter)
	}
	o.end()
}

// pick chooses among the live subscribers by the name of what is delivered, and
// forgets the dead ones.
func (b *Broker) pick(d *delivery) (subscriber, bool) {
	var live []subscriber
	for _, s := range b.subscribers[d.m.Kind] {
		if !s.p.dead {
			live = append(live, s)
		}
	}
	b.subscribers[d.m.Kind] = live
	if len(live) == 0 {
		return subscriber{}, false
	}
	return live[Draw(uint64(d.tries), "route", HashName(d.name))%uint64(len(live))], true
}
