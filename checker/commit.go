package checker

import "github.com/tillstorm/tillstorm/sim"

// commit is the one that the trace is telling, row by row, and what is to be checked
// when it is whole: until then its rows may contradict each other.
type commit struct {
	last   sim.Record // the last of its rows so far
	checks []check
}

// check is one that a property wants made at a commit's end.
type check struct {
	property *Property
	run      func(by *sim.Record)
}

// atCommit has the current property check something when the commit that has the
// record is whole; run gets the commit's last row.
func (e *Evidence) atCommit(run func(by *sim.Record)) {
	e.commit.checks = append(e.commit.checks, check{e.current, run})
}

// follow takes note of a record, and before that ends the commit that it is no part of:
// the rows of one commit follow each other.
func (c *commit) follow(e *Evidence, r *sim.Record) {
	isRow, last := r.Change != nil, &c.last
	if len(c.checks) > 0 && !(isRow && last.Node == r.Node && last.Task == r.Task && last.Change.Database == r.Change.Database) {
		c.end(e)
	}
	if isRow {
		c.last = *r
	}
}

func (c *commit) end(e *Evidence) {
	for _, check := range c.checks {
		e.current = check.property
		check.run(&c.last)
	}
	c.checks = c.checks[:0]
}
