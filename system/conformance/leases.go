package conformance

import (
	"context"
	"time"

	"github.com/tillstorm/tillstorm/system"
)

// CheckLeases checks that a name has one owner at a time, that only the owner frees it, that it frees itself, and that
// the end of keys is notified.
func CheckLeases(ctx context.Context, s Subject) error {
	r := &run{Subject: s, ctx: ctx, subject: "leases"}
	r.checkExclusion()
	r.checkExpiry()
	r.checkKeys()
	return r.result()
}

// acquire returns a lease, and whether it was granted.
func (r *run) acquire(name, owner string, ttl time.Duration) (system.Lease, bool) {
	lease, ok, err := r.Leases.Acquire(r.ctx, name, owner, ttl)
	if r.must(err, "acquire "+name) && ok {
		r.expect(lease.Name == name && lease.Owner == owner, "%s acquired %s, and was given %+v", owner, name, lease)
	}
	return lease, ok
}

func (r *run) release(l system.Lease) { r.must(r.Leases.Release(r.ctx, l), "release "+l.Name) }

func (r *run) held(l system.Lease) bool {
	held, err := r.Leases.Held(r.ctx, l)
	r.must(err, "ask for "+l.Name)
	return held
}

func (r *run) checkExclusion() {
	const name, long = "conformance-lock", 1000
	first, ok := r.acquire(name, "a", long*r.Unit)
	r.expect(ok && r.held(first), "a free name is not granted")
	_, ok = r.acquire(name, "b", long*r.Unit)
	r.expect(!ok, "a name was granted to two owners")
	_, ok = r.acquire(name, "a", long*r.Unit)
	r.expect(!ok, "a name was granted to its owner again")
	_, ok = r.acquire(name+"-2", "b", long*r.Unit)
	r.expect(ok, "a name that is held keeps another name from being granted")

	r.release(system.Lease{Name: name, Owner: "b", Token: first.Token})
	r.release(system.Lease{Name: name, Owner: "a", Token: first.Token - 1})
	r.release(system.Lease{Name: name, Owner: "a", Token: first.Token + 1})
	r.expect(r.held(first), "a stranger freed a name")
	r.expect(!r.held(system.Lease{Name: name, Owner: "b", Token: first.Token}), "a name is held by who never acquired it")

	r.release(first)
	r.expect(!r.held(first), "a released lease is held")
	r.release(first)
	second, ok := r.acquire(name, "b", long*r.Unit)
	r.expect(ok, "a released name is not granted")
	r.expect(second.Token > first.Token, "the token went from %d to %d", first.Token, second.Token)
	r.release(first)
	r.expect(r.held(second), "an old lease freed its successor's name")
}

func (r *run) checkExpiry() {
	const name = "conformance-ttl"
	first, ok := r.acquire(name, "a", 3*r.Unit)
	r.expect(ok, "a free name is not granted")
	r.wait(1)
	r.expect(r.held(first), "a lease of %v ended before", 3*r.Unit)
	r.expect(r.eventually(func() bool { return !r.held(first) }), "a lease of %v never ends", 3*r.Unit)
	second, ok := r.acquire(name, "a", 1000*r.Unit)
	r.expect(ok, "a name whose lease has ended is not granted")
	r.expect(second.Token > first.Token, "the token went from %d to %d", first.Token, second.Token)
	r.release(first)
	r.expect(r.held(second) && !r.held(first), "a lease that has ended counts for its successor")
}

func (r *run) checkKeys() {
	type end struct {
		key string
		at  time.Time
	}
	var ends log[end]
	r.Leases.OnExpire("conformance:", func(_ context.Context, key string) { ends.add(end{key, r.Clock.Now()}) })
	start := r.Clock.Now()
	r.must(r.Leases.Expire(r.ctx, "conformance:soon", r.Unit), "set a key")
	r.must(r.Leases.Expire(r.ctx, "conformance:later", 3*r.Unit), "set a key")
	r.must(r.Leases.Expire(r.ctx, "conformance:later", 6*r.Unit), "set a key anew")
	r.must(r.Leases.Expire(r.ctx, "other:key", r.Unit), "set a key")
	r.expect(r.eventually(func() bool { return ends.len() >= 2 }), "of two keys that ended %d were notified", ends.len())
	r.wait(2)
	counts := map[string]int{}
	for _, e := range ends.all() {
		counts[e.key]++
		early := e.key == "conformance:later" && e.at.Sub(start) < 6*r.Unit-2*time.Millisecond
		r.expect(!early, "a key that ends after %v was notified after %v", 6*r.Unit, e.at.Sub(start))
	}
	r.expect(counts["other:key"] == 0, "a key of another prefix was notified")
	r.expect(counts["conformance:later"] <= 1 && counts["conformance:soon"] <= 1, "the end of a key was notified twice")
}
