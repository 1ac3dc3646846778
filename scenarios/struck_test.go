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

// Of the faults of a failure those are told that struck what is shown of it, then the heaviest
// and rarest; delays that any network has come last.
func TestFaultsThatMatter(t *testing.T) {
	trace := &sim.Trace{}
	trace.Append(sim.Record{At: time.Hour, Node: "shop-1", Task: "callback(A)#1", Event: sim.EventAnswer})
	r := &Result{Case: Case{Workload: Workload{Orders: map[string]*Order{"A": {}, "B": {}}}}, Trace: trace}
	fired := func(kind faults.Kind, at string, lasts time.Duration) {
		r.Fired = append(r.Fired, faults.Firing{Perturbation: faults.Perturbation{Kind: kind, At: at, For: lasts}, When: time.Minute * time.Duration(len(r.Fired))})
	}
	fired(faults.BillWrong, "wechat/A-1", 0)
	for i := range 3 {
		fired(faults.Drop, fmt.Sprintf("create(A)#%d", i+1), 0)
	}
	fired(faults.Drop, "read(A)#1", 0)
	fired(faults.Crash, "shop-1/close-scan@14:00:00/BEGIN:before", time.Second)
	fired(faults.Stall, "shop-1/callback(A)#1/BEGIN:before", 5*time.Millisecond)
	fired(faults.Stall, "shop-1/callback(A)#1/COMMIT:before", 100*time.Microsecond)
	fired(faults.Stall, "shop-1/prepay(A)#1/BEGIN:before", 9*time.Second)
	fired(faults.Drop, "create(B)#1", 0)

	told := faultsThatMatter(r, checker.Failure{Order: "A", Seq: 1}, []int{0}, 5)
	for i, part := range []string{"misstates-row  A-1", "create(A)#1", "create(A)#2", "create(A)#3", "callback(A)#1/BEGIN"} {
		assert.Contains(t, told[i], part)
	}
	assert.Equal(t, "and 4 more, lighter or further away", told[5])

	told = faultsThatMatter(r, checker.Failure{Order: "A", Seq: 1}, []int{0}, 9)
	assert.Len(t, told, 9, "with the crash, and nothing that is about B")
}

// Of a run that passed the heaviest faults are told.
func TestToldFaultsOfAPass(t *testing.T) {
	r := &Result{}
	for i := range withstood + 5 {
		r.Fired = append(r.Fired, faults.Firing{Perturbation: faults.Perturbation{Kind: faults.Stall, At: fmt.Sprintf("shop-1/create(A)#%d/BEGIN:before", i), For: time.Duration(i)}, When: time.Duration(100 - i)})
	}
	told, left := r.ToldFaults()
	assert.Len(t, told, withstood)
	assert.Equal(t, 5, left)
	assert.Equal(t, time.Duration(withstood+4), told[0].For, "by time")
	assert.Equal(t, time.Duration(5), told[withstood-1].For)
}
