package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/sim"
)

// rates hit often enough to be counted.
func rates() Profile {
	short := Range{time.Millisecond, time.Second}
	return Profile{
		Name: "test", Crash: Rate{1, 20}, Restart: Range{10 * time.Millisecond, time.Minute}, Stall: []Rate{{1, 5}}, StallFor: short,
		Drop: Rate{1, 10}, Delay: Rate{2, 7}, DelayFor: short, Duplicate: Rate{1, 8}, DuplicateAfter: short,
	}
}

// watcher remembers the steps that a world asks about.
type watcher struct{ steps []sim.Step }

func (w *watcher) Step(s sim.Step) sim.Strike             { w.steps = append(w.steps, s); return sim.Strike{} }
func (w *watcher) Message(m *sim.Message) (p sim.Passage) { return p }

// someSteps returns steps of two nodes, with distinct names, as a world makes them.
func someSteps() []sim.Step { return slices.Clone(worldSteps()) }

var worldSteps = sync.OnceValue(func() []sim.Step {
	w := &watcher{}
	world := sim.New(sim.Config{Faults: w})
	defer world.Close()
	for _, node := range []string{"shop-1", "buyer"} {
		world.Node(node, func(p *sim.Process) {
			for i := range 25 {
				p.Go(fmt.Sprintf("loop(%c)", 'A'+i%10), func(ctx context.Context) {
					for range 20 {
						_ = p.Clock().Sleep(ctx, time.Millisecond)
					}
				})
			}
		})
	}
	world.Run(time.Hour)
	return w.steps
})

func TestStepsHaveNamesOfTheirOwn(t *testing.T) {
	steps := someSteps()
	names := map[string]bool{}
	for _, s := range steps {
		names[s.Name()] = true
		assert.Equal(t, sim.HashName(s.Name()), s.Hash(), s.Name())
	}
	assert.Len(t, names, len(steps))
	assert.Greater(t, len(names), 1500)
}

func someMessages() []*sim.Message {
	var all []*sim.Message
	for i := range 3000 {
		m := &sim.Message{Exchange: fmt.Sprintf("callback(A%d)#%d", i/20, i%10+1), Leg: sim.Request}
		if i/10%2 == 1 {
			m.Leg = sim.Answer
		}
		all = append(all, m)
	}
	return all
}

// storms lets a storm pass over steps and messages, and returns its plan, sorted.
func storms(s *Storm, steps []sim.Step, messages []*sim.Message) Plan {
	for _, step := range steps {
		s.Step(step)
	}
	for _, m := range messages {
		s.Message(m)
	}
	return sorted(PlanOf(s.Fired()))
}

func sorted(plan Plan) Plan {
	slices.SortFunc(plan, func(a, b Perturbation) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind))
	})
	return plan
}

func newStorm(seed uint64) *Storm {
	return &Storm{Profile: rates(), Seed: seed, Until: time.Hour, MayCrash: func(node string) bool { return node != "buyer" }}
}

// near says that n of all draws is what the rate promises, within a quarter.
func near(t *testing.T, r Rate, n, all int) {
	want := float64(all) * float64(r.N) / float64(r.Of)
	assert.InDelta(t, want, n, want/4, "%v of %d", r, all)
}

func TestStormHitsItsRates(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	count := map[Kind]int{}
	for seed := range uint64(4) {
		for _, p := range storms(newStorm(seed), steps, messages) {
			count[p.Kind]++
		}
	}
	p, all := rates(), 4*len(messages)
	near(t, p.Stall[0], count[Stall], 4*len(steps))
	near(t, p.Crash, count[Crash], 4*len(steps)/2) // the buyer is spared
	near(t, p.Drop, count[Drop], all)
	near(t, Rate{p.Delay.N * 9, p.Delay.Of * 10}, count[Delay], all)               // a lost message is not late
	near(t, Rate{p.Duplicate.N * 9, p.Duplicate.Of * 10}, count[Duplicate], all/2) // and only requests
}

// What happens at a name depends on the seed and that name alone: neither on the
// order of the questions nor on how many there are.
func TestStormDependsOnSeedAndNameAlone(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	plan := storms(newStorm(7), steps, messages)
	require.NotEmpty(t, plan)
	other := storms(newStorm(8), steps, messages)
	for _, kind := range Kinds() {
		rest := slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == kind })
		assert.NotEqual(t, names(without(plan, rest...)), names(without(other, rest...)), kind)
	}

	slices.Reverse(steps)
	slices.Reverse(messages)
	assert.Equal(t, plan, storms(newStorm(7), steps, messages))

	planned := map[Perturbation]bool{}
	for _, p := range plan {
		planned[p] = true
	}
	half := storms(newStorm(7), steps[:len(steps)/2], messages[:len(messages)/2])
	assert.Less(t, len(half), len(plan))
	for _, p := range half {
		require.True(t, planned[p], p)
	}
	later := steps[0]
	later.At += time.Minute
	assert.Equal(t, newStorm(7).Step(steps[0]), newStorm(7).Step(later), "nor on the time")

	// One profile's rate changes nothing of what another kind does.
	calmer := newStorm(7)
	calmer.Profile.Stall, calmer.Profile.Delay = nil, Rate{}
	assert.Equal(t, without(plan, Stall, Delay), storms(calmer, steps, messages))
}

func without(plan Plan, kinds ...Kind) Plan {
	return slices.DeleteFunc(slices.Clone(plan), func(p Perturbation) bool { return slices.Contains(kinds, p.Kind) })
}

func names(plan Plan) []string {
	var all []string
	for _, p := range plan {
		all = append(all, p.At)
	}
	return all
}

func TestStormStopsAtUntil(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	s := newStorm(1)
	always := Rate{1, 1}
	s.Profile.Crash, s.Profile.Stall, s.Profile.Drop = always, []Rate{always}, always
	step, message := steps[0], *messages[0]
	step.Node = "shop-1"
	for _, one := range []struct {
		at    time.Duration
		fires bool
	}{{0, true}, {s.Until - 1, true}, {s.Until, false}, {s.Until + time.Hour, false}} {
		step.At, message.At = one.at, one.at
		strike := s.Step(step)
		assert.Equal(t, one.fires, strike.Crash, one.at)
		assert.Equal(t, one.fires, strike.Stall > 0, one.at)
		assert.Equal(t, one.fires, s.Message(&message).Drop, one.at)
	}
	for i, want := range []time.Duration{0, 0, 0, s.Until - 1, s.Until - 1, s.Until - 1} {
		assert.Equal(t, want, s.Fired()[i].When)
	}
	assert.Len(t, s.Fired(), 6)
}

func TestStormSparesWhoMustNotCrash(t *testing.T) {
	steps := someSteps()
	s := newStorm(1)
	s.Profile.Crash = Rate{1, 1}
	for _, step := range steps {
		strike := s.Step(step)
		assert.Equal(t, step.Node != "buyer", strike.Crash)
	}
	s = newStorm(1)
	s.Profile.Crash, s.MayCrash = Rate{1, 1}, nil
	assert.False(t, s.Step(steps[0]).Crash)
}

func TestCalmDoesNothing(t *testing.T) {
	calm, err := ProfileNamed("calm")
	require.NoError(t, err)
	assert.Empty(t, storms(&Storm{Profile: calm, Until: time.Hour}, someSteps(), someMessages()))
}

func TestProfileNamed(t *testing.T) {
	for _, p := range Profiles() {
		found, err := ProfileNamed(p.Name)
		require.NoError(t, err)
		assert.Equal(t, p, found)
	}
	_, err := ProfileNamed("hurricane")
	require.Error(t, err)
	assert.Contains(t, err.Error(), `"hurricane"`)
	for _, p := range Profiles() {
		assert.Contains(t, err.Error(), p.Name)
	}
}

func TestRate(t *testing.T) {
	for _, r := range []Rate{{0, 1}, {0, 0}, {1, 1}, {1, 2}, {3, 7}, {1, 400}} {
		hits := 0
		for i := range uint64(40_000) {
			if r.hit(sim.Draw(1, "rate", i)) {
				hits++
			}
		}
		switch {
		case r.N == 0:
			assert.Zero(t, hits)
		case r.N == r.Of:
			assert.Equal(t, 40_000, hits)
		default:
			near(t, r, hits, 40_000)
		}
	}
}

func TestRangeStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "min")
		r := Range{time.Duration(low), time.Duration(rapid.Int64Range(low, int64(1000*time.Hour)).Draw(t, "max"))}
		d := r.draw(rapid.Uint64().Draw(t, "bits"))
		require.GreaterOrEqual(t, d, r.Min)
		require.LessOrEqual(t, d, r.Max)
	})
}

// Each order of magnitude gets its share, the shortest as well as the longest.
func TestRangeIsEvenOverMagnitudes(t *testing.T) {
	r := Range{time.Millisecond, time.Millisecond << 10}
	const draws = 40_000
	var octave [11]int
	distinct := map[time.Duration]bool{}
	for i := range uint64(draws) {
		d := r.draw(sim.Draw(1, "range", i))
		distinct[d] = true
		for o := range octave {
			if d >= r.Min<<o && (d < r.Min<<(o+1) || o == 10) {
				octave[o]++
			}
		}
	}
	for o, n := range octave {
		assert.InEpsilon(t, draws/len(octave), n, 0.25, "octave %d", o)
	}
	assert.Greater(t, len(distinct), draws/2)
	zero := Range{0, time.Second}
	assert.NotEqual(t, zero.draw(1), zero.draw(2))
	assert.Zero(t, Range{}.draw(12345))
	assert.Equal(t, time.Second, Range{time.Second, time.Second}.draw(99))
}

func TestScriptRepeatsTheStorm(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	storm := newStorm(3)
	var strikes []sim.Strike
	var passages []sim.Passage
	for _, step := range steps {
		strikes = append(strikes, storm.Step(step))
	}
	for _, m := range messages {
		passages = append(passages, storm.Message(m))
	}
	plan, err := ParsePlan(PlanOf(storm.Fired()).String())
	require.NoError(t, err)
	require.NotEmpty(t, plan)

	script := NewScript(plan)
	assert.Equal(t, plan, script.Unreached())
	for i, step := range steps {
		require.True(t, strikes[i] == script.Step(step), step.Name())
	}
	for i, m := range messages {
		require.Equal(t, passages[i], script.Message(m), m.Name())
	}
	assert.Empty(t, script.Unreached())
	assert.Equal(t, storm.Fired(), script.Fired(), "each once, in the same order")
}

func TestScriptFiresWhatMatchesAndReportsTheRest(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	step, request, answer := steps[100], messages[0], messages[10]
	require.Equal(t, sim.Answer, answer.Leg)
	plan := Plan{
		{Stall, step.Name(), 2 * time.Second},
		{Crash, step.Name(), time.Second},
		{Crash, "shop-9/never#1/COMMIT:before", time.Second},
		{Stall, request.Name(), time.Second}, // the name of a message is not a step
		{Drop, step.Name(), 0},               // nor the other way round
		{Delay, request.Name(), time.Second},
		{Duplicate, request.Name(), time.Minute},
		{Duplicate, request.Name(), time.Hour},
		{Drop, answer.Name(), 0},
		{Drop, "callback(NOBODY)#1", 0},
	}
	s := NewScript(plan)
	struck := 0
	for _, one := range steps {
		if strike := s.Step(one); strike != (sim.Strike{}) {
			struck++
			assert.Equal(t, step.Name(), one.Name())
			assert.Equal(t, sim.Strike{Stall: 2 * time.Second, Crash: true, Restart: time.Second}, strike)
		}
	}
	assert.Equal(t, 1, struck)
	assert.Equal(t, sim.Passage{Delay: time.Second, Copies: []time.Duration{time.Minute, time.Hour}}, s.Message(request))
	assert.Equal(t, sim.Passage{Drop: true}, s.Message(answer))
	assert.Equal(t, sim.Passage{}, s.Message(messages[1]))
	assert.Equal(t, Plan{plan[2], plan[3], plan[4], plan[9]}, s.Unreached())
	assert.Equal(t, []Firing{
		{plan[0], step.At}, {plan[1], step.At}, {plan[5], 0}, {plan[6], 0}, {plan[7], 0}, {plan[8], 0},
	}, s.Fired())
	assert.Empty(t, NewScript(nil).Unreached())
}

// Each seed draws one of the profile's rates of stalls.
func TestStormDrawsItsStallRate(t *testing.T) {
	often := 0
	for seed := range uint64(300) {
		s := Storm{Profile: Profile{Stall: []Rate{{0, 1}, {1, 1}}}, Seed: seed}
		first := s.stalls(1)
		assert.Equal(t, first, s.stalls(2), "one rate for a seed")
		if first {
			often++
		}
	}
	assert.InDelta(t, 150, often, 40)
}
