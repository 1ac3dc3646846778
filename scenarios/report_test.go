package scenarios

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// Of many faults those are told that are about the failing order, and the last others.
func TestToldFaults(t *testing.T) {
	trace := &sim.Trace{}
	trace.Append(sim.Record{At: time.Hour})
	trace.Append(sim.Record{At: 2 * time.Hour})
	r := &Result{Case: Case{Workload: Workload{Orders: map[string]*Order{"A": {}, "B": {}}}}, Trace: trace}
	fired := func(when time.Duration, kind faults.Kind, at string) {
		r.Fired = append(r.Fired, faults.Firing{Perturbation: faults.Perturbation{Kind: kind, At: at}, When: when})
	}
	fired(time.Minute, faults.LateSettlement, "wechat/A-1")
	for i := range otherFaults + 3 {
		fired(2*time.Minute, faults.Drop, fmt.Sprintf("create(B)#%d", i))
	}
	fired(3*time.Minute, faults.Crash, "shop-1/callback(A)#1/COMMIT:before")
	fired(90*time.Minute, faults.Drop, "read(A)#1")

	told, left := r.ToldFaults()
	assert.Len(t, told, otherFaults+6, "nothing broke, so all may matter")
	assert.Zero(t, left)

	r.Failures = []checker.Failure{{Order: "A", Seq: 1}}
	told, left = r.ToldFaults()
	assert.Equal(t, 3, left)
	assert.Len(t, told, otherFaults+2)
	assert.Equal(t, "wechat/A-1", told[0].At)
	assert.Equal(t, "create(B)#3", told[1].At)
	assert.Equal(t, "shop-1/callback(A)#1/COMMIT:before", told[len(told)-1].At, "what came later did not do it")

	r.Failures[0].Seq = 2
	told, _ = r.ToldFaults()
	assert.Equal(t, "read(A)#1", told[len(told)-1].At)
}
