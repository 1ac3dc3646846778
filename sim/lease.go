package sim

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Leases is a lease service of the world: names that one owner holds for a while,
// and keys whose end is notified. It goes by true time and outlives the processes.
type Leases struct {
	Name string
	// GrantAll makes it grant every name to everyone, as a lease service in trouble
	// may. Nothing may depend on it for correctness.
	GrantAll bool

	w        *World
	token    int64
	held     map[string]heldLease
	keys     map[string]time.Duration // when they end
	watchers []watcher
}

// Lease is a name held by an owner. Token grows with every acquisition.
type Lease struct {
	Name, Owner string
	Token       int64
}

type heldLease struct {
	Lease
	until time.Duration
}

type watcher struct {
	p      *Process
	prefix string
	handle func(context.Context, string)
}

// Leases adds a lease service to the world.
func (w *World) Leases(name string) *Leases {
	return &Leases{Name: name, w: w, held: map[string]heldLease{}, keys: map[string]time.Duration{}}
}

// LeaseClient is a process's connection to a lease service.
type LeaseClient struct {
	p *Process
	l *Leases
}

// Leases connects the process to a lease service.
func (p *Process) Leases(l *Leases) LeaseClient { return LeaseClient{p, l} }

// call is one operation of the service: a step, and the way there and back.
func (c LeaseClient) call(ctx context.Context, op, name string, f func()) error {
	t := c.p.enter("Leases")
	o := t.begin(op+" "+name, "")
	if err := ended(ctx); err != nil {
		return err
	}
	t.sleepUntil(ctx, c.p.w.now+c.p.w.timing.Link)
	f()
	t.sleepUntil(ctx, c.p.w.now+c.p.w.timing.Link)
	o.end()
	return ended(ctx)
}

// Acquire takes a free name for ttl; false when somebody has it.
func (c LeaseClient) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease Lease, ok bool, err error) {
	err = c.call(ctx, "acquire", name, func() {
		if !c.l.GrantAll && c.l.held[name].until > c.l.w.now {
			return
		}
		c.l.token++
		lease, ok = Lease{name, owner, c.l.token}, true
		c.l.held[name] = heldLease{lease, c.l.w.now + ttl}
	})
	return lease, ok && err == nil, err
}

// Release frees the name if the lease is the one that holds it.
func (c LeaseClient) Release(ctx context.Context, lease Lease) error {
	return c.call(ctx, "release", lease.Name, func() {
		if c.l.held[lease.Name].Lease == lease {
			delete(c.l.held, lease.Name)
		}
	})
}

// Held says whether the lease is the one that holds its name.
func (c LeaseClient) Held(ctx context.Context, lease Lease) (held bool, err error) {
	err = c.call(ctx, "ask", lease.Name, func() {
		h := c.l.held[lease.Name]
		held = c.l.GrantAll || h.Lease == lease && h.until > c.l.w.now
	})
	return held, err
}

// Expire sets a key that ends after ttl.
func (c LeaseClient) Expire(ctx context.Context, key string, ttl time.Duration) error {
	return c.call(ctx, "expire", key, func() {
		end := c.l.w.now + ttl
		c.l.keys[key] = end
		c.l.w.after(ttl, "expire "+key, func() {
			if c.l.keys[key] == end {
				delete(c.l.keys, key)
				c.l.notify(c.p, key)
			}
		})
	})
}

// OnExpire hands keys with the prefix to handle when they end: at best once,
// perhaps never.
func (c LeaseClient) OnExpire(prefix string, handle func(ctx context.Context, key string)) {
	c.p.enter("OnExpire")
	c.l.watchers = append(c.l.watchers, watcher{c.p, prefix, handle})
}

// notify tells one of the live watchers that a key has ended, or none.
func (l *Leases) notify(from *Process, key string) {
	l.watchers = slices.DeleteFunc(l.watchers, func(w watcher) bool { return w.p.dead })
	var live []watcher
	for _, w := range l.watchers {
		if strings.HasPrefix(key, w.prefix) {
			live = append(live, w)
		}
	}
	kind, about := "expired", key
	if i := strings.LastIndexAny(key, "/:"); i >= 0 {
		kind, about = kind+" "+key[:i], key[i+1:]
	}
	m := &Message{Leg: Request, Kind: kind, Key: about, From: l.Name, To: from.node.Name, Method: "EXPIRED", Path: key}
	l.w.number(m)
	passage := l.w.passage(m)
	if len(live) == 0 || passage.Drop {
		l.w.trace.add(Record{At: l.w.now, Node: l.Name, Event: EventDrop, Op: m.Name(), Message: m})
		return
	}
	chosen := live[Draw(0, "route", m.Hash())%uint64(len(live))]
	for _, delay := range append([]time.Duration{0}, passage.Copies...) {
		l.w.after(l.w.timing.Link+passage.Delay+delay, m.Exchange, func() { chosen.tell(m, key) })
	}
}

func (w watcher) tell(m *Message, key string) {
	if w.p.dead {
		return
	}
	w.p.w.trace.add(Record{At: w.p.w.now, Node: w.p.node.Name, Event: EventDeliver, Op: m.Name(), Message: m})
	t := w.p.newTask(w.p.unique(m.Exchange), m.Key, nil)
	t.run = func() {
		t.begin("receive", "").end()
		w.handle(w.p.context(), key)
	}
	w.p.w.ready(t)
}
