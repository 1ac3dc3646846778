package sim

import (
	"cmp"
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
	// Away makes it answer nobody.
	Away bool

	w        *World
	token    int64
	held     map[string][]heldLease   // by name; several only when something went wrong
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
	return &Leases{Name: name, w: w, held: map[string][]heldLease{}, keys: map[string]time.Duration{}}
}

// LeaseClient is a process's connection to a lease service.
type LeaseClient struct {
	p *Process
	l *Leases
}

// Leases connects the process to a lease service.
func (p *Process) Leases(l *Leases) LeaseClient { return LeaseClient{p, l} }

// OpAcquire begins the name of the operation that acquires a lease.
const OpAcquire = acquire + " "

const (
	acquire = "acquire"
	release = "release"
)

// Outcomes of an operation of a lease service, as the trace tells them.
const (
	leaseGranted = "granted"

	LeaseTaken  = "taken"  // not granted: another owner has it
	LeaseShared = "shared" // granted, though another owner has it
	LeaseLost   = "lost"   // its time is over, or another owner has it
)

// call is one operation of the service: a step, and the way there and back. f returns
// what the trace tells of its outcome.
func (c LeaseClient) call(ctx context.Context, op, name string, f func(Strike) string) error {
	t := c.p.enter("Leases")
	o := t.operation(op+" "+name, "")
	o.taken = op == acquire && len(c.l.owners(name)) > 0
	o.strike = o.step(Before)
	if err := ended(ctx); err != nil {
		return err
	}
	outcome := ""
	err := c.l.ask(ctx, t, func() { outcome = f(o.strike) })
	if err != nil {
		outcome = "error: " + err.Error()
	}
	t.record(Record{Event: EventLease, Op: o.name(), Detail: outcome})
	switch {
	case op == release:
		t.leases--
	case outcome == leaseGranted || outcome == LeaseShared:
		t.leases++
	}
	o.end()
	return cmp.Or(err, ended(ctx))
}

func (l *Leases) ask(ctx context.Context, t *task, f func()) error {
	if l.Away {
		return t.silence(ctx)
	}
	return t.ask(ctx, l.Name, f)
}

// owners returns who holds the name now.
func (l *Leases) owners(name string) []heldLease {
	l.held[name] = slices.DeleteFunc(l.held[name], func(h heldLease) bool { return h.until <= l.w.now })
	return l.held[name]
}

// Acquire takes a free name for ttl; false when somebody has it.
func (c LeaseClient) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (lease Lease, ok bool, err error) {
	err = c.call(ctx, acquire, name, func(s Strike) string {
		owners := c.l.owners(name)
		if len(owners) > 0 && !s.Grant && !c.l.GrantAll {
			return LeaseTaken
		}
		if s.Ends > 0 {
			ttl = min(ttl, s.Ends)
		}
		c.l.token++
		lease, ok = Lease{name, owner, c.l.token}, true
		c.l.held[name] = append(owners, heldLease{lease, c.l.w.now + ttl})
		if len(owners) > 0 {
			return LeaseShared
		}
		return leaseGranted
	})
	return lease, ok && err == nil, err
}

// Release frees the name if the lease is the one that holds it.
func (c LeaseClient) Release(ctx context.Context, lease Lease) error {
	return c.call(ctx, release, lease.Name, func(Strike) string {
		c.l.held[lease.Name] = slices.DeleteFunc(c.l.owners(lease.Name), func(h heldLease) bool { return h.Lease == lease })
		return ""
	})
}

// Held says whether the lease is the one that holds its name.
func (c LeaseClient) Held(ctx context.Context, lease Lease) (held bool, err error) {
	err = c.call(ctx, "ask", lease.Name, func(Strike) string {
		held = c.l.GrantAll || slices.ContainsFunc(c.l.owners(lease.Name), func(h heldLease) bool { return h.Lease == lease })
		if !held {
			return LeaseLost
		}
		return "held"
	})
	return held, err
}

// Expire sets a key that ends after ttl.
func (c LeaseClient) Expire(ctx context.Context, key string, ttl time.Duration) error {
	return c.call(ctx, "expire", key, func(Strike) string {
		end := c.l.w.now + ttl
		c.l.keys[key] = end
		c.l.w.after(ttl, "expire "+key, func() {
			if c.l.keys[key] == end {
				delete(c.l.keys, key)
				c.l.notify(c.p, key)
			}
		})
		return ""
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
	m := &Message{Leg: Request, Kind: kind, Key: about, From: l.Name, To: from.node.Name, Method: MethodExpired, Path: key}
	l.w.number(m)
	passage := l.w.passage(m)
	if len(live) == 0 || passage.Drop {
		l.w.lose(m, l.Name, "")
		return
	}
	chosen := live[Draw(0, "route", m.Hash())%uint64(len(live))]
	way := l.w.way(l.Name, chosen.p.node.Name)
	if way.Cut {
		l.w.lose(m, l.Name, cut(l.Name, chosen.p.node.Name))
		return
	}
	for _, delay := range append([]time.Duration{0}, passage.Copies...) {
		l.w.after(l.w.timing.Link+way.Slow+passage.Delay+delay, m.Exchange, func() { chosen.tell(m, key) })
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
