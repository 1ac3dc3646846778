package scenarios

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

var plansFlag = flag.Uint64("plans", 20, "how many drawn plans TestPlansReplay replays")

// small returns the case of a seed with few orders.
func small(seed uint64, p faults.Profile) Case {
	c := Draw(seed, p)
	c.Workload = drawWorkload(seed, 2)
	return c
}

// The storm that a seed draws is a plan: written down, read again and replayed without
// being drawn, it gives the same trace; and with one perturbation taken away, the
// others still strike where they did.
func TestPlansReplay(t *testing.T) {
	arena := sim.NewArena()
	defer arena.Close()
	for seed := range *plansFlag {
		drawn := small(seed, storm(t))
		first, err := Run(drawn, arena)
		require.NoError(t, err)
		plan := faults.PlanOf(first.Fired)
		require.NotEmpty(t, plan)
		parsed, err := faults.ParsePlan(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan, parsed)

		drawn.Plan = parsed
		again, err := Run(drawn, arena)
		require.NoError(t, err)
		require.Equal(t, first.TraceHash, again.TraceHash, "seed %d", seed)
		require.Empty(t, again.Unreached)

		without := int(sim.Draw(seed, "without", 0) % uint64(len(plan)))
		drawn.Plan = slices.Delete(slices.Clone(plan), without, without+1)
		less, err := Run(drawn, arena)
		require.NoError(t, err)
		gone := first.Fired[without]
		assert.Equal(t, struckBefore(first, gone.When), struckBefore(less, gone.When), "seed %d: until %s was taken away, nothing changes", seed, gone)
		for _, f := range less.Fired {
			assert.Contains(t, plan, f.Perturbation, "seed %d: nothing strikes elsewhere", seed)
		}
	}
}

// struckBefore returns what struck before a time.
func struckBefore(r *Result, at time.Duration) []faults.Firing {
	return slices.DeleteFunc(slices.Clone(r.Fired), func(f faults.Firing) bool { return f.When >= at })
}
