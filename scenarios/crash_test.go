package scenarios

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
)

var everyCrash = flag.Bool("every-crash", false, "TestCrashes crashes the longer incidents too")

// TestCrashes crashes each incident at each of its steps, loses each reply once, and
// crashes some of the recoveries.
func TestCrashes(t *testing.T) {
	for name, incident := range incidentFiles(t) {
		t.Run(name, func(t *testing.T) {
			if !*everyCrash && name != "pay.txtar" && name != "close.txtar" {
				t.Skip("its many steps take minutes: -every-crash")
			}
			const budget = 50
			r, err := CrashEnumeration{Incident: incident, Depth: 2, Budget: budget}.Run(t.Context())
			require.NoError(t, err)
			for _, f := range r.Failures {
				t.Errorf("%s", f.Text)
			}
			require.Equal(t, Pass, r.Verdict())
			assert.Equal(t, budget, r.TriedInRecovery)
			assert.Equal(t, r.Points+r.Replies+budget, r.Tried)
			assert.Equal(t, r.Tried, r.Passed)
			t.Logf("%d steps, %d replies, %d steps of recoveries; never reached: %s",
				r.Points, r.Replies, r.RecoveryPoints, strings.Join(r.StatementsWithoutPoint, " "))
		})
	}
}

const shortIncident = `-- setup --
order A 1.00 CNY sku S1
-- timeline --
14:00:00.000 buyer creates A
14:00:00.500 buyer cancels A
`

func shortOne(t *testing.T, more string) *Incident {
	x, err := ParseIncident("short.txtar", shortIncident+more)
	require.NoError(t, err)
	return x
}

func TestSurveySeesEachStepOnceUntilTheRunIsOver(t *testing.T) {
	c := shortOne(t, "").Case()
	c.survey = &survey{}
	_, err := Run(c, nil)
	require.NoError(t, err)
	steps := c.survey.steps
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(steps))), len(steps), "names are stable only if they are names of one step")
	for _, node := range []string{"shop-1", "shop-2", "wechat", "alipay", "stock"} {
		assert.Contains(t, steps, node+"/boot#1/ReadSchemaVersion:before")
	}
	assert.True(t, slices.ContainsFunc(steps, func(s string) bool { return strings.HasSuffix(s, "/cancel(A)#1/answer:after") }))
	assert.True(t, slices.ContainsFunc(steps, func(s string) bool { return strings.Contains(s, "/ListDueOrders:") }), "polling counts")
	assert.False(t, slices.ContainsFunc(steps, func(s string) bool { return strings.Contains(s, "@14:01:") }), "not when all is over")
	assert.Contains(t, c.survey.answers, "cancel(A)#1:answer")
	assert.NotContains(t, c.survey.answers, "callback(A)#1:answer")
}

func TestCrashReportDependsOnTheIncidentAlone(t *testing.T) {
	run := func(workers int) *CrashReport {
		r, err := CrashEnumeration{Incident: shortOne(t, ""), Depth: 2, Budget: 10, Workers: workers}.Run(t.Context())
		require.NoError(t, err)
		r.WallNs = 0
		return r
	}
	r := run(1)
	assert.Equal(t, r, run(3))
	assert.Equal(t, Pass, r.Verdict())
	assert.Greater(t, r.RecoveryPoints, r.Points)
	assert.Contains(t, r.StatementsWithoutPoint, "system/MarkOrderPaid")
	assert.NotContains(t, r.StatementsWithoutPoint, "system/MarkOrderClosed")
	assert.NotContains(t, r.StatementsWithoutPoint, "system/channel/InsertTrade")
}

// An incident that does not pass by itself is not crashed.
func TestCrashesOfAnIncidentThatFails(t *testing.T) {
	r, err := CrashEnumeration{Incident: shortOne(t, "-- faults --\nnetwork drops callback(A)#1\n"), Depth: 1}.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Stale, r.Verdict())
	assert.Equal(t, 1, r.Tried)
	require.Len(t, r.Failures, 1)
	assert.Equal(t, "go run ./cmd/tillstorm replay short.txtar", r.Failures[0].Repro)
}

// Whoever lets a crash enumeration fail gets the crash as part of the line to paste.
func TestCrashIsPartOfTheCommand(t *testing.T) {
	c := shortOne(t, "").Case()
	c.Added = append(c.Added, crashAt("shop-1/cancel(A)#1/COMMIT:before"))
	assert.Equal(t, []string{"go run ./cmd/tillstorm replay short.txtar --fault 'shop-1  crashes  cancel(A)#1/COMMIT:before  restarts 1s'"}, c.commands())
}

func TestPairsAreSampledEvenly(t *testing.T) {
	points := []try{
		{added: faults.Plan{crashAt("n/a:before")}, recovery: &survey{steps: []string{"n/0:after", "n/1:after", "n/2:after", "n/3:after"}}},
		{added: faults.Plan{crashAt("n/b:before")}, recovery: &survey{steps: []string{"n/4:after", "n/5:after", "n/6:after", "n/7:after", "n/8:after", "n/9:after"}}},
	}
	second := func(most int) (steps string) {
		pairs, all := pairsOf(points, most)
		assert.Equal(t, 10, all)
		for _, p := range pairs {
			steps += p.added[1].At[2:3]
		}
		return steps
	}
	assert.Equal(t, "0123456789", second(10))
	assert.Equal(t, "0358", second(4))
	assert.Equal(t, "0", second(1))
	assert.Empty(t, second(0))
}
