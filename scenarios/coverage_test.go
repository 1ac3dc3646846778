package scenarios

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// coverageOf returns the coverage of one incident's run.
func coverageOf(t *testing.T, text string) *Coverage {
	incident, err := ParseIncident("covered.txtar", text)
	require.NoError(t, err)
	arena := sim.NewArena()
	defer arena.Close()
	r, err := Run(incident.Case(), arena)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%v never reached: %v", r.Failures, r.Unreached)
	c := newCoverage(faults.Profile{})
	c.add(r)
	c.estimate()
	return c
}

func TestCoverageKnowsTheStateOfTheOrder(t *testing.T) {
	c := coverageOf(t, `
-- setup --
order A 198.00 CNY
order B 99.00 CNY
-- timeline --
14:00:00.000 buyer creates A
14:00:00.000 buyer creates B
14:01:00.000 buyer pays A
-- faults --
shop-2 crashes create(A)#1/COMMIT:before restarts 1s
network drops prepay(B)#1
wechat settles-late A-1 by 2s
network duplicates callback(A)#1 after 3s
network duplicates callback(A)#2 after 3s
clock skews shop-2 by 1s for 10m0s
`)
	grid := c.Grid
	assert.Equal(t, 1, grid["none"][faults.Crash])
	assert.Equal(t, 1, grid["CREATED"][faults.Drop])
	assert.Equal(t, 1, grid["CREATED"][faults.LateSettlement])
	assert.Equal(t, 1, grid["CREATED"][faults.Duplicate], "the first callback")
	assert.Equal(t, 1, grid["PAID"][faults.Duplicate], "its second copy")
	for _, state := range OrderStates {
		assert.Zero(t, grid[state][faults.Skew], "it is about no order")
	}
	assert.Equal(t, 1, c.Crashes["none"]["COMMIT:before"])
	assert.Contains(t, c.Crashes["none"], "InsertOrder:after")
	assert.Contains(t, c.Crashes["CREATED"], "COMMIT:after", "a commit leads to the next state")
	assert.NotContains(t, c.Crashes["none"], "MarkOrderPaid:before")
	assert.Contains(t, c.Crashes["PAID"], "FindAttempt:before", "a callback is repeated")
	assert.Equal(t, 2, c.Orders)
	assert.Equal(t, 2, c.Shapes, "one is paid, the other is closed")
	assert.InDelta(t, 1, c.NextSeed, 0)
}

func TestOrdersOfOneFateHaveOneShape(t *testing.T) {
	c := coverageOf(t, `
-- setup --
order A 198.00 CNY
order B 99.00 CNY
order C 1.00 CNY
-- timeline --
14:00:00.000 buyer creates A
14:00:10.000 buyer creates B
14:00:20.000 buyer creates C
14:01:00.000 buyer pays A
14:01:30.000 buyer pays B
`)
	assert.Equal(t, 2, c.Shapes)
	assert.Equal(t, 1, c.Once)
	assert.InDelta(t, 1./3, c.NextOrder, 1e-9)
	assert.InDelta(t, 1-8./27, c.NextSeed, 1e-9, "a seed has three orders")
}

func TestCoverageDependsOnSeedsAlone(t *testing.T) {
	sweep := func(workers int) string {
		report, err := Sweep{Seeds: Seeds{1, 6}, Profile: storm(t), Workers: workers, Cover: true}.Run(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 6, report.Coverage.Seeds, "a seed that is run twice counts once")
		text, err := json.Marshal(report.Coverage)
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, sweep(1), sweep(3))
}
