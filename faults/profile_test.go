package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/sim"
)

func TestStormHasEveryKind(t *testing.T) {
	for _, name := range []string{"storm", "chaos", "swarm"} {
		have := map[Kind]int{}
		for _, kind := range named(t, name).Kinds() {
			have[kind]++
			assert.Contains(t, Kinds(), kind)
		}
		for _, k := range kinds {
			assert.Equal(t, 1, have[k.name], "%s in %s", k.name, name)
		}
	}
	for _, kind := range named(t, "flaky").Kinds() {
		assert.Contains(t, []string{network, ""}, kind.spec().actor)
		assert.True(t, kind == Stall || kind.spec().actor == network, kind)
	}
}

// Each kind's odds have what its words need, and nothing that nobody reads.
func TestOddsHaveWhatTheirKindsNeed(t *testing.T) {
	for _, profile := range Profiles() {
		for _, o := range profile.Odds {
			needs := map[field]bool{}
			for _, one := range o.Kind.spec().params {
				needs[one.field] = true
			}
			untilTheEnd := o.Kind == Skew || o.Kind == Drift
			assert.Equal(t, needs[fieldFor] && !untilTheEnd, o.For != Range{}, "%s: For", o.Kind)
			assert.Equal(t, needs[fieldBy], o.By != Range{}, "%s: By", o.Kind)
			assert.Equal(t, needs[fieldN], o.N != [2]int64{}, "%s: N", o.Kind)
			assert.LessOrEqual(t, o.For.Min, o.For.Max, o.Kind)
			assert.LessOrEqual(t, o.By.Min, o.By.Max, o.Kind)
			assert.LessOrEqual(t, o.N[0], o.N[1], o.Kind)
			assert.True(t, 0 < o.Rate.N && o.Rate.N <= o.Rate.Of, "%s: %v", o.Kind, o.Rate)
		}
	}
}

func TestChaosIsTwiceTheStorm(t *testing.T) {
	storm, chaos := named(t, "storm").Odds, named(t, "chaos").Odds
	require.Len(t, chaos, len(storm))
	for i, o := range storm {
		o.Rate.N *= 2
		assert.Equal(t, o, chaos[i])
	}
	assert.Equal(t, Rate{3, 3}, oftener([]Odds{{Rate: Rate{2, 3}}}, 2)[0].Rate, "at most always")
	named(t, "storm").Odds[0].Rate = Rate{0, 1}
	assert.Equal(t, storm, named(t, "storm").Odds, "nobody can change the profile for others")
}

func TestProfileNamed(t *testing.T) {
	for _, p := range Profiles() {
		found, err := ProfileNamed(p.Name)
		require.NoError(t, err)
		assert.Equal(t, p, found)
		assert.NotEmpty(t, p.Sentence)
	}
	_, err := ProfileNamed("hurricane")
	assert.EqualError(t, err, `there is no profile "hurricane"; there are calm, flaky, storm, chaos, swarm`)
}

func TestRate(t *testing.T) {
	for _, r := range []Rate{{0, 1}, {0, 0}, {1, 1}, {1, 2}, {3, 7}, {1, 400}} {
		hits, shares := 0, 0
		for i := range uint64(40_000) {
			draw := sim.Draw(1, "rate", i)
			if r.hit(draw) {
				hits++
			}
			if draw>>32 < r.share() {
				shares++
			}
		}
		for _, n := range []int{hits, shares} {
			switch {
			case r.N == 0:
				assert.Zero(t, n)
			case r.N == r.Of:
				assert.Equal(t, 40_000, n)
			default:
				near(t, r, r, n, 40_000)
			}
		}
	}
}

func TestRangeStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "min")
		r := Range{time.Duration(low), time.Duration(rapid.Int64Range(low, int64(1000*time.Hour)).Draw(t, "max"))}
		d := r.Draw(rapid.Uint64().Draw(t, "bits"))
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
		d := r.Draw(sim.Draw(1, "range", i))
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
	assert.NotEqual(t, zero.Draw(1), zero.Draw(2))
	assert.Zero(t, Range{}.Draw(12345))
	assert.Equal(t, time.Second, Range{time.Second, time.Second}.Draw(99))
}
