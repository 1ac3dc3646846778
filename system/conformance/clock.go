package conformance

import (
	"context"
	"errors"
	"time"
)

// CheckClock checks that a Clock goes on, sleeps long enough, and ends contexts in time.
func CheckClock(ctx context.Context, s Subject) error {
	r := &run{Subject: s, ctx: ctx, subject: "clock"}
	r.checkSleep()
	r.checkTimeout()
	r.checkCancel()
	return r.result()
}

func (r *run) checkSleep() {
	before := r.Clock.Now()
	r.must(r.Clock.Sleep(r.ctx, r.Unit), "sleep")
	// A clock that drifts measures both ends; a thousandth is for how it rounds.
	passed := r.Clock.Now().Sub(before)
	r.expect(passed >= r.Unit-r.Unit/1000, "slept %v, of which the clock shows %v", r.Unit, passed)
	r.expect(r.Clock.Sleep(r.ctx, 0) == nil, "a sleep of nothing fails")

	ended, cancel := r.Clock.WithTimeout(r.ctx, 1000*r.Unit)
	cancel()
	before = r.Clock.Now()
	err := r.Clock.Sleep(ended, 100*r.Unit)
	r.expect(errors.Is(err, context.Canceled), "a sleep in a cancelled context returns %v", err)
	r.expect(r.Clock.Now().Sub(before) <= 100*r.Unit, "a sleep in a cancelled context goes on after it")
}

func (r *run) checkTimeout() {
	before := r.Clock.Now()
	timed, cancel := r.Clock.WithTimeout(r.ctx, 2*r.Unit)
	defer cancel()
	deadline, ok := timed.Deadline()
	r.expect(ok && !deadline.Before(before), "a context with a timeout has the deadline %v, %v", deadline, ok)
	r.expect(timed.Err() == nil, "a fresh context has ended: %v", timed.Err())

	err := r.Clock.Sleep(timed, 50*r.Unit)
	passed := r.Clock.Now().Sub(before)
	r.expect(errors.Is(err, context.DeadlineExceeded), "a sleep over its deadline returns %v", err)
	r.expect(errors.Is(timed.Err(), context.DeadlineExceeded), "after its deadline a context says %v", timed.Err())
	r.expect(passed >= 2*r.Unit-r.Unit/100 && passed < 40*r.Unit, "a timeout of %v came after %v", 2*r.Unit, passed)

	short, cancelShort := r.Clock.WithTimeout(r.ctx, r.Unit)
	defer cancelShort()
	long, cancelLong := r.Clock.WithTimeout(short, 50*r.Unit)
	defer cancelLong()
	err = r.Clock.Sleep(long, 40*r.Unit)
	r.expect(errors.Is(err, context.DeadlineExceeded), "an inner context outlives its outer's deadline: %v", err)
}

func (r *run) checkCancel() {
	timed, cancel := r.Clock.WithTimeout(r.ctx, time.Hour)
	cancel()
	cancel()
	r.expect(errors.Is(timed.Err(), context.Canceled), "a cancelled context says %v", timed.Err())
	r.expect(r.ctx.Err() == nil, "cancelling ends the outer context: %v", r.ctx.Err())
}
