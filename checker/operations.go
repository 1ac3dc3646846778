package checker

import "github.com/tillstorm/tillstorm/sim"

// buyerNode is where the buyers' operations come from: each is a task there, named
// after its verb, and may take several requests.
const buyerNode = "buyer"

// Succeeded is the outcome of an operation that did what its buyer wanted. The others
// were refused for a reason of the buyer's, failed, or got no answer.
const Succeeded = "succeeded"

// deeds are what the buyers did, and the last that they heard of it.
type deeds struct {
	of       map[string]string // the task of each request
	outcomes map[string]string // by task
}

func newDeeds() deeds { return deeds{map[string]string{}, map[string]string{}} }

func (d *deeds) observe(r *sim.Record) {
	if r.Node != buyerNode {
		return
	}
	switch r.Event {
	case sim.EventSend:
		d.of[r.Op] = r.Task
		if d.outcomes[r.Task] == "" {
			d.outcomes[r.Task] = "no answer"
		}
	case sim.EventDeliver:
		d.outcomes[d.of[r.Message.Exchange]] = outcomeOf(r.Message.Status)
	}
}

func outcomeOf(status int) string {
	switch status / 100 {
	case 2:
		return Succeeded
	case 4:
		return "refused"
	}
	return "failed"
}

// Operations counts the buyers' operations, each under "VERB: OUTCOME".
func (e *Evidence) Operations() map[string]int {
	counts := map[string]int{}
	for task, outcome := range e.deeds.outcomes { // order-free: each by itself
		counts[sim.Role(task)+": "+outcome]++
	}
	return counts
}
