package checker

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// jobs are the runs of the jobs of which one is to be at work at a time.
type jobs struct {
	grants  int
	runs    map[string]*jobRun // by task
	lastRun map[string]*jobRun // that had an effect, by job
	claimed map[rowKey]claimed // the last claim of each item
}

// claimed is a task's claim of an item.
type claimed struct {
	task    string
	untilMs int64 // when it runs out, if its task does not end it before
}

// jobRun is a run that was granted its job's lease.
type jobRun struct {
	grant  int    // in the order of granting
	knows  bool   // it has heard of the grant
	effect string // the last that it had
}

func newJobs() jobs {
	return jobs{runs: map[string]*jobRun{}, lastRun: map[string]*jobRun{}, claimed: map[rowKey]claimed{}}
}

// A claim takes an item of a table: it counts a try, and says how long nobody else is to
// take it.
var claims = map[string]struct{ tries, until string }{
	"outbox":         {"tries", "next_ms"},
	"payment_orders": {"query_tries", "next_query_ms"},
	"refunds":        {"query_tries", "next_query_ms"},
	"bill_days":      {"tries", "next_ms"},
}

// observeJobExclusive finds two runs of one job that both have an effect on one item. By
// the rows that is: an order is closed by a scan whose lease another has got, and used,
// meanwhile, or is closed again; an item is claimed while a claim of it lasts, or its try
// is ended by another than who began it; an hour is reconciled again.
//
// A message may be delivered twice, when its claim has run out: that is no fault here.
func observeJobExclusive(e *Evidence, r *sim.Record) {
	switch {
	case r.Event == sim.EventLease:
		e.jobs.lease(r)
	case r.Change == nil || r.Change.Database != shopDB || e.old == nil || r.Change.Deleted() || r.Node == sim.Operator:
	case r.Change.Table == "orders":
		e.observeClosing(r)
	case r.Change.Table == "reconcile_jobs":
		e.observeHour(r)
	case claims[r.Change.Table].tries != "":
		e.observeClaim(r)
	}
}

// lease notes who is granted a job's lease, and that he knows: one whose grant was lost on
// the way works without.
func (j *jobs) lease(r *sim.Record) {
	op, name, _ := strings.Cut(r.Op, " ")
	name, _, _ = strings.Cut(name, "#")
	if name != sim.Role(r.Task) {
		return // an order's lock
	}
	switch run := j.runs[taskOf(r)]; {
	case op == "acquire" && (r.Detail == "granted" || r.Detail == sim.LeaseShared):
		j.grants++
		j.runs[taskOf(r)] = &jobRun{grant: j.grants}
	case op == "ask" && run != nil:
		run.knows = true
	}
}

func (e *Evidence) observeClosing(r *sim.Record) {
	if r.Change.Text("status") != "CLOSED" {
		return
	}
	if e.old.Text("status") == "CLOSED" {
		if before, now := e.old.Int("closed_ms"), r.Change.Int("closed_ms"); before != now {
			e.failJob(r, "close again", fmt.Sprintf("was closed again, %d ms after the first time", now-before))
		}
		return
	}
	run, job := e.jobs.runs[taskOf(r)], sim.Role(r.Task)
	if run == nil || !run.knows {
		return
	}
	run.effect = e.at(r)
	if last := e.jobs.lastRun[job]; last != nil && last.grant > run.grant {
		e.failJob(r, "close without the lease", fmt.Sprintf("was closed by a run of %s that has lost its lease to the run that was at work at %s", job, last.effect))
		return
	}
	e.jobs.lastRun[job] = run
}

func (e *Evidence) observeHour(r *sim.Record) {
	if r.Change.Text("job") != "reconcile" || sim.Role(r.Task) != "reconcile" || r.Change.Int("hour") > e.old.Int("hour") {
		return
	}
	e.failJob(r, "claim the same hour", "is in an hour that is reconciled again")
}

func (e *Evidence) observeClaim(r *sim.Record) {
	row, task := r.Change, taskOf(r)
	claim, key := claims[row.Table], rowKey{row.Database, row.Table, row.RowID}
	last := e.jobs.claimed[key]
	switch {
	case row.Int(claim.tries) != e.old.Int(claim.tries):
		if early := last.untilMs - e.trace.Start.Add(r.At).UnixMilli(); early > 0 {
			e.failJob(r, "claim the same of "+row.Table, fmt.Sprintf("has a row of %s that was claimed %d ms before the claim of %s had run out", row.Table, early, last.task))
		}
		e.jobs.claimed[key] = claimed{task, row.Int(claim.until)}
	case last.task == task:
		e.jobs.claimed[key] = claimed{task: task}
	case row.Table == "outbox" && row.Text("state") != "DELIVERED":
		e.failJob(r, "end the same try of "+row.Table, "has a message whose try was ended by another than "+last.task)
	}
}

func (e *Evidence) failJob(r *sim.Record, roles, what string) {
	order := e.subjectOf(r.Change)
	about := fmt.Sprintf("order %s of %s", order, e.price(order))
	if e.orders[order] == nil {
		about = order + " of " + r.Change.Table
	}
	e.fail(Failure{Order: order, Stake: e.price(order), Seq: r.Seq, Roles: "two of " + sim.Role(r.Task) + " " + roles, Message: fmt.Sprintf(
		"%s %s, at %s", about, what, e.at(r))})
}

// subjectOf returns the order that a row is about; the name of the row, where it is about
// none.
func (e *Evidence) subjectOf(row *sim.Change) string {
	if order := row.Text("order_no"); order != "" {
		return order
	}
	key := row.Text("message_key")
	if about := cmp.Or(e.attempts[key], e.accounts.intents[key]); about != nil {
		return about.Text("order_no")
	}
	return strings.TrimSpace(cmp.Or(key, row.Text("job"), row.Text("channel")+" "+row.Text("bill_day")))
}
