package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

func TestScriptFiresWhatMatchesAndReportsTheRest(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	step, request, answer := steps[100], messages[0], messages[10]
	require.Equal(t, sim.Answer, answer.Leg)
	plan := Plan{
		{Kind: Stall, At: step.Name(), For: 2 * second},
		{Kind: Pause, At: step.Name(), For: 3 * second},
		{Kind: Crash, At: step.Name(), For: second},
		{Kind: Crash, At: "shop-9/never#1/COMMIT:before", For: second},
		{Kind: Stall, At: request.Name(), For: second}, // the name of a message is not a step
		{Kind: Drop, At: step.Name()},                  // nor the other way round
		{Kind: Delay, At: request.Name(), By: second},
		{Kind: Delay, At: request.Name(), By: minute},
		{Kind: Duplicate, At: request.Name(), For: minute},
		{Kind: Duplicate, At: request.Name(), For: time.Hour},
		{Kind: Drop, At: answer.Name()},
		{Kind: Drop, At: "callback(NOBODY)#1"},
		{Kind: "flood", At: step.Name()},
	}
	s := NewScript(plan)
	struck := 0
	for _, one := range steps {
		armed := s.Armed(one)
		strike := s.Step(one)
		assert.Equal(t, strike != (sim.Strike{}), armed, one.Name())
		if armed {
			struck++
			assert.Equal(t, step.Name(), one.Name())
			assert.Equal(t, sim.Strike{Stall: 2 * second, Pause: 3 * second, Crash: true, Restart: second}, strike)
		}
	}
	assert.Equal(t, 1, struck)
	assert.Equal(t, sim.Passage{Delay: second + minute, Copies: []time.Duration{minute, time.Hour}}, s.Message(request))
	assert.Equal(t, sim.Passage{Drop: true}, s.Message(answer))
	assert.Equal(t, sim.Passage{}, s.Message(messages[1]))
	assert.Equal(t, Plan{plan[3], plan[4], plan[5], plan[11], plan[12]}, s.Unreached())
	var fired []Firing
	for _, i := range []int{0, 1, 2} {
		fired = append(fired, Firing{plan[i], step.At})
	}
	for _, i := range []int{6, 7, 8, 9, 10} {
		fired = append(fired, Firing{plan[i], 0})
	}
	assert.Equal(t, fired, s.Fired())
	assert.Empty(t, NewScript(nil).Unreached())
}

// What lasts strikes many times, from its beginning to its end, and is counted once.
func TestScriptCountsWhatLastsOnce(t *testing.T) {
	p := Perturbation{Kind: Slow, At: "shop", By: 100 * ms, From: minute, For: 2 * minute}
	s := NewScript(Plan{p})
	for at, stall := range map[time.Duration]time.Duration{
		0: 0, minute - 1: 0, minute: p.By, 2 * minute: p.By, 3*minute - 1: p.By, 3 * minute: 0, time.Hour: 0,
	} {
		step := sim.Step{At: at, Node: "shop-1", Task: "boot#1", Op: "ReadOrder", Database: "shop", SQL: sim.SQLRead}
		assert.Equal(t, sim.Strike{Stall: stall}, s.Step(step), at)
		assert.Equal(t, stall > 0, s.Armed(step), at)
		step.Database = "inventory"
		assert.Zero(t, s.Step(step), at)
	}
	assert.Len(t, s.Fired(), 1)
	assert.Equal(t, Plan{p}, PlanOf(s.Fired()))

	w := Perturbation{Kind: Clog, At: "a>b", By: second, From: minute, For: minute}
	s = NewScript(Plan{w, w, {Kind: OneWay, At: "b>a", For: time.Hour}})
	assert.Zero(t, s.Way("a", "b", minute-1))
	assert.Equal(t, sim.Way{Slow: 2 * second}, s.Way("a", "b", minute))
	assert.Zero(t, s.Way("a", "b", 2*minute))
	assert.Equal(t, sim.Way{Cut: true}, s.Way("b", "a", minute))
	assert.Equal(t, []Firing{{w, minute}, {Perturbation{Kind: OneWay, At: "b>a", For: time.Hour}, minute}}, s.Fired())
}

// The world may leave out idle runs once nothing more can happen at a step.
func TestScriptIsOver(t *testing.T) {
	over := func(lines string, at time.Duration) bool {
		plan, err := ParsePlan(lines)
		require.NoError(t, err)
		return NewScript(plan).Over("shop-1/pay", at)
	}
	assert.True(t, over("", 0))
	assert.True(t, over("network drops pay(A)#1\nnetwork cuts a>b from 0s for 1h\nclock skews a by 1s for 1h", 0), "no step")
	assert.False(t, over("shop-1 stalls pay(A)#1/COMMIT:before for 1s", time.Hour), "it may still come")
	assert.True(t, over("shop-2 stalls pay(A)#1/COMMIT:before for 1s", time.Hour), "to another")
	assert.False(t, over("database slows shop by 1s from 1m for 1m", 2*minute-1))
	assert.True(t, over("database slows shop by 1s from 1m for 1m", 2*minute))

	s := NewScript(Plan{{Kind: CrashLoop, At: "shop-1/pay(A)#1/COMMIT:before", N: 2}})
	step := sim.Step{Node: "shop-1", Task: "pay(A)#1", Op: "COMMIT", N: 1}
	clear(s.aimed) // as in a storm, which draws its loops
	require.True(t, s.Over("shop-1/pay", 0))
	s.strike(CrashLoop.spec(), &step, &sim.Strike{}, s.plan[0])
	require.False(t, s.Over("shop-1/pay", time.Hour))
	for deaths := 0; deaths < 2; {
		other := step
		other.Node = "shop-2"
		assert.False(t, s.Armed(other))
		assert.True(t, s.Armed(step))
		if s.Step(step).Crash {
			deaths++
		}
	}
	assert.True(t, s.Over("shop-1/pay", 0))
	assert.False(t, s.Armed(step))
}
