package sim

import (
	"context"
	"sync/atomic"
	"time"
)

// NodeClock is what a node takes for the time. The world's true time runs under
// it; no database and no property goes by a node's clock.
type NodeClock struct {
	w     *World
	base  time.Duration  // true time of the last change
	shown time.Duration  // what the clock showed then
	ppm   int64          // parts per million it runs fast (or, negative, slow)
	zone  *time.Location // whose time of day it shows, nil for the world's
}

const million = 1_000_000

func (c *NodeClock) elapsed() time.Duration {
	real := c.w.now - c.base
	drift := int64(real)/million*c.ppm + int64(real)%million*c.ppm/million
	return c.shown + real + time.Duration(drift)
}

func (c *NodeClock) rebase() {
	c.shown = c.elapsed()
	c.base = c.w.now
}

// Skew sets the clock ahead of true time, or behind it.
func (c *NodeClock) Skew(ahead time.Duration) { c.base, c.shown = c.w.now, c.w.now+ahead }

// Jump moves the clock by d at once.
func (c *NodeClock) Jump(d time.Duration) { c.rebase(); c.shown += d }

// Drift makes the clock run fast by the given parts per million from now on.
func (c *NodeClock) Drift(ppm int64) { c.rebase(); c.ppm = ppm }

// SetRight makes the clock show true time, at true speed, from now on.
func (c *NodeClock) SetRight() { c.Skew(0); c.ppm = 0 }

// Move sets the zone whose time of day the clock shows.
func (c *NodeClock) Move(zone *time.Location) { c.zone = zone }

// Now returns what the clock shows.
func (c *NodeClock) Now() time.Time {
	now := c.w.trace.Start.Add(c.elapsed())
	if c.zone != nil {
		return now.In(c.zone)
	}
	return now
}

// after returns the true time at which d will have passed on this clock, if it
// goes on as it does now.
func (c *NodeClock) after(d time.Duration) time.Duration {
	if d <= 0 {
		return c.w.now
	}
	if d > noDeadline/4 {
		return noDeadline
	}
	if c.ppm == 0 {
		return c.w.now + d
	}
	shown, speed := int64(c.elapsed()-c.shown+d), million+c.ppm
	return c.base + time.Duration(shown/speed*million+(shown%speed*million+speed-1)/speed)
}

// Clock is the clock of one process: it reads the node's clock and waits in
// virtual time.
type Clock struct{ p *Process }

// Now returns the node's time.
func (c Clock) Now() time.Time {
	c.asked()
	return c.p.node.Clock.Now()
}

// asked notes that the running task goes by the node's clock.
func (c Clock) asked() {
	if t := c.p.w.current; t != nil {
		t.acted()
	}
}

// Sleep waits until d has passed on the node's clock. It returns the context's
// error if that ends first.
func (c Clock) Sleep(ctx context.Context, d time.Duration) error {
	t := c.p.enter("Sleep")
	o := t.begin("sleep", "")
	t.sleepUntil(ctx, c.p.node.Clock.after(d))
	o.end()
	return ended(ctx)
}

// WithTimeout returns a context that ends when d has passed on the node's clock.
// Its Done channel is nil: a real one would make database/sql and context start
// goroutines that act at a real, random moment.
func (c Clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	c.asked()
	deadline := c.p.node.Clock.after(d)
	if outer, ok := trueDeadline(ctx); ok && outer < deadline {
		deadline = outer
	}
	v := &virtualContext{Context: ctx, p: c.p, deadline: deadline}
	return v, v.cancel
}

// virtualContext is a context in virtual time: a deadline and an Err, no Done.
type virtualContext struct {
	context.Context
	p        *Process
	deadline time.Duration
	canceled atomic.Bool
}

type virtualKey struct{}

const noDeadline = time.Duration(1<<63 - 1)

func (v *virtualContext) Done() <-chan struct{} { return nil }

func (v *virtualContext) Deadline() (time.Time, bool) {
	if v.deadline == noDeadline {
		return time.Time{}, false
	}
	return v.p.node.Clock.Now().Add(v.deadline - v.p.w.now), true
}

func (v *virtualContext) Err() error {
	if err := ended(v.Context); err != nil {
		return err
	}
	if v.canceled.Load() {
		return context.Canceled
	}
	if v.deadline <= time.Duration(v.p.w.shared.Load()) {
		return context.DeadlineExceeded
	}
	return nil
}

func (v *virtualContext) Value(key any) any {
	if key == (virtualKey{}) {
		return v
	}
	return v.Context.Value(key)
}

func (v *virtualContext) cancel() {
	if !v.p.dead && v.Err() == nil {
		v.canceled.Store(true)
		v.p.contextsEnded()
	}
}

// trueDeadline returns the true time at which ctx ends, if it ends.
func trueDeadline(ctx context.Context) (time.Duration, bool) {
	v, ok := ctx.Value(virtualKey{}).(*virtualContext)
	if !ok || v.deadline == noDeadline {
		return 0, false
	}
	if _, ok := ctx.Deadline(); !ok { // context.WithoutCancel
		return 0, false
	}
	return v.deadline, true
}

// ended returns the error of a context that has ended. A context that context.WithCancel
// derived from a virtual one is not told when that ends, so it is asked here.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil || ctx.Done() == nil {
		return err
	}
	if v, ok := ctx.Value(virtualKey{}).(*virtualContext); ok {
		return v.Err()
	}
	return nil
}
