// Package conformance checks implementations of what the system needs of its surroundings: a Clock, Loops, a Broker and
// Leases. Every implementation, real or simulated, is held to the same suite, so that what was learned of the system over
// one is true over the other.
//
// Like testing/fstest, a check returns one error that tells all the misbehaviour it has seen. It starts background work
// through the Loops and waits by the Clock, and by nothing else, so that it can run inside a simulated world. It asks
// only for what is promised: a broker may deliver twice, and out of order; the end of a key may be late.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tillstorm/tillstorm/system"
)

// Subject is what is checked. It must be fresh, and nothing may disturb it.
type Subject struct {
	Clock  system.Clock
	Loops  system.Loops
	Broker system.Broker
	Leases system.Leases
	// Unit is long against everything that takes no time, such as noticing that a message is due. Waits are multiples of
	// it: for an implementation in real time about a quarter of a second, in virtual time anything.
	Unit time.Duration
}

// patience is how many units something late may take, a broker's wait before the second delivery included.
const patience = 20

// Check runs every check for which the subject has something. The error tells all that is wrong.
func Check(ctx context.Context, s Subject) error {
	errs := []error{CheckClock(ctx, s), CheckLoops(ctx, s)}
	if s.Broker != nil {
		errs = append(errs, CheckBroker(ctx, s))
	}
	if s.Leases != nil {
		errs = append(errs, CheckLeases(ctx, s))
	}
	return errors.Join(errs...)
}

// run is one check under way: it collects what is wrong.
type run struct {
	Subject
	ctx     context.Context
	subject string
	errs    []error
}

// expect notes a misbehaviour unless ok.
func (r *run) expect(ok bool, format string, args ...any) {
	if !ok {
		r.errs = append(r.errs, fmt.Errorf(r.subject+": "+format, args...))
	}
}

// must notes an unexpected error, and reports whether there was none.
func (r *run) must(err error, doing string) bool {
	r.expect(err == nil, "%s: %v", doing, err)
	return err == nil
}

// wait lets so many units pass.
func (r *run) wait(units int) {
	r.must(r.Clock.Sleep(r.ctx, time.Duration(units)*r.Unit), "sleep")
}

// eventually waits until the condition holds, as long as patience goes, and reports whether it does.
func (r *run) eventually(condition func() bool) bool {
	for range patience * 4 {
		if condition() {
			return true
		}
		if r.Clock.Sleep(r.ctx, r.Unit/4) != nil {
			return false
		}
	}
	return condition()
}

func (r *run) result() error { return errors.Join(r.errs...) }

// log is a list that background work appends to.
type log[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *log[T]) add(item T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, item)
	return len(l.items)
}

func (l *log[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.items...)
}

func (l *log[T]) len() int { return len(l.all()) }
