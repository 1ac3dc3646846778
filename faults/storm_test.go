package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// watcher remembers the steps that a world asks about.
type watcher struct{ steps []sim.Step }

func (w *watcher) Step(s sim.Step) sim.Strike             { w.steps = append(w.steps, s); return sim.Strike{} }
func (w *watcher) Message(m *sim.Message) (p sim.Passage) { return p }

// someSteps returns steps of two nodes, with distinct names, as a world makes them.
func someSteps() []sim.Step { return slices.Clone(worldSteps()) }

var worldSteps = sync.OnceValue(func() []sim.Step {
	faults := &watcher{}
	w := &world{World: sim.New(sim.Config{Faults: faults}), t: nil}
	defer w.Close()
	d, err := w.Database("shop", shopSchema)
	if err != nil {
		panic(err)
	}
	leases := w.Leases("leases")
	for _, node := range []string{"shop-1", "buyer"} {
		w.Node(node, func(p *sim.Process) {
			db := p.OpenDB(d, sim.DBOptions{})
			for i := range 100 {
				p.Go(fmt.Sprintf("work%d(%c)", i%25, 'A'+i%10), func(ctx context.Context) {
					for range 3 {
						insertPayment(ctx, db, "A")
						db.ExecContext(ctx, insert, "B")
						p.Clock().Sleep(ctx, time.Millisecond)
						p.Leases(leases).Acquire(ctx, p.NewID(), "me", second)
						p.Leases(leases).Acquire(ctx, "the same", "me", time.Hour)
					}
				})
			}
		})
	}
	w.Run(time.Hour)
	return faults.steps
})

func TestStepsHaveNamesOfTheirOwn(t *testing.T) {
	steps := someSteps()
	names := map[string]bool{}
	for _, s := range steps {
		names[s.Name()] = true
		assert.Equal(t, sim.HashName(s.Name()), s.Hash(), s.Name())
	}
	assert.Len(t, names, len(steps))
	assert.Greater(t, len(names), 5000)
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

var someTargets = Targets{
	Nodes:     []string{"shop-1", "shop-2"},
	Ways:      [][2]string{{"shop-1", "wechat"}, {"shop-1", "buyer"}, {"shop-2", "wechat"}, {"shop-2", "leases"}},
	Databases: []string{"shop", "inventory"},
	Trades:    []string{"wechat/A", "wechat/B", "alipay/C", "alipay/D", "wechat/E/1"},
	Days:      []string{"wechat/2026-03-01", "alipay/2026-03-01"},
	Rows:      []string{"shop/payments/A", "shop/payments/B"},
}

// still holds nothing up.
var still = Strategy{Name: "still", stalls: func(uint64) Odds { return Odds{Kind: Stall, Rate: Rate{0, 1}} }}

// profileOf is a profile of some odds.
func profileOf(odds ...Odds) Profile { return Profile{Name: "test", Odds: odds, Strategy: still} }

func stormOf(seed uint64, p Profile) *Storm { return NewStorm(seed, p, someTargets, time.Hour) }

func named(t testing.TB, profile string) Profile {
	p, err := ProfileNamed(profile)
	require.NoError(t, err)
	return p
}

// rages lets a storm pass over steps and messages, and returns what it did, sorted.
func rages(s *Storm, steps []sim.Step, messages []*sim.Message) Plan {
	for _, step := range steps {
		s.Step(step)
	}
	for _, m := range messages {
		s.Message(m)
	}
	return sorted(PlanOf(s.Fired()))
}

func sorted(plan Plan) Plan {
	slices.SortStableFunc(plan, func(a, b Perturbation) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind))
	})
	return plan
}

// near says that n of all draws is what the rate promises, within a quarter.
func near(t *testing.T, what any, r Rate, n, all int) {
	t.Helper()
	want := float64(all) * float64(r.N) / float64(r.Of)
	assert.InDelta(t, want, n, want/4, "%v: %v of %d", what, r, all)
}

func TestStormHitsItsRates(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	odds := []Odds{
		{Kind: Crash, Rate: Rate{1, 50}}, {Kind: Pause, Rate: Rate{1, 70}}, {Kind: Busy, Rate: Rate{1, 20}}, {Kind: LostCommit, Rate: Rate{1, 10}},
		{Kind: Drop, Rate: Rate{1, 10}}, {Kind: Delay, Rate: Rate{2, 7}}, {Kind: LateAnswer, Rate: Rate{1, 6}}, {Kind: Duplicate, Rate: Rate{1, 8}},
		{Kind: LeaseEarly, Rate: Rate{1, 12}}, {Kind: TwoOwners, Rate: Rate{1, 5}},
	}
	const seeds = 60
	count := map[Kind]int{}
	for seed := range uint64(seeds) {
		for _, p := range rages(stormOf(seed, profileOf(odds...)), steps, messages) {
			count[p.Kind]++
		}
	}
	fits := map[Kind]int{}
	for _, o := range odds {
		s := o.Kind.spec()
		for i := range steps {
			spared := steps[i].Node == "buyer" && !s.rare // what the lease service does, it does to everyone
			if s.strike != nil && !spared && s.suits(&steps[i]) {
				fits[o.Kind]++
			}
		}
		for _, m := range messages {
			if s.pass != nil && s.fitsMessage(m) {
				fits[o.Kind]++
			}
		}
		near(t, o.Kind, o.Rate, count[o.Kind], seeds*fits[o.Kind])
	}
	assert.Less(t, fits[Busy], fits[Crash])
	assert.Len(t, count, len(odds), "and nothing else")
}

// What lasts is drawn for each of its targets.
func TestStormHitsItsRatesForWhatLasts(t *testing.T) {
	odds := []Odds{
		{Kind: Partition, Rate: Rate{1, 4}, For: Range{second, minute}}, {Kind: OneWay, Rate: Rate{1, 4}, For: Range{second, minute}},
		{Kind: Slow, Rate: Rate{1, 3}, For: Range{second, minute}}, {Kind: Skew, Rate: Rate{1, 5}}, {Kind: Silence, Rate: Rate{1, 6}},
		{Kind: BillLate, Rate: Rate{1, 2}}, {Kind: RowDeleted, Rate: Rate{2, 3}},
	}
	targets := map[Kind]int{Partition: 4, OneWay: 8, Slow: 2, Skew: 2, Silence: 5, BillLate: 2, RowDeleted: 2}
	const seeds = 1000
	count := map[Kind]int{}
	for seed := range uint64(seeds) {
		for _, p := range stormOf(seed, profileOf(odds...)).plan {
			count[p.Kind]++
		}
	}
	for _, o := range odds {
		near(t, o.Kind, o.Rate, count[o.Kind], seeds*targets[o.Kind])
	}
}

// What happens at a name depends on the seed and that name alone: neither on the
// order of the questions nor on how many there are.
func TestStormDependsOnSeedAndNameAlone(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	profile := named(t, "chaos")
	profile.Odds = slices.DeleteFunc(profile.Odds, func(o Odds) bool {
		return o.Kind == CrashLoop || o.Kind == Slow || o.Kind == Full // these go on for a while
	})
	for seed := range uint64(4) { // with several strategies
		plan := rages(stormOf(seed, profile), steps, messages)
		require.NotEmpty(t, plan)
		assert.NotEqual(t, plan, rages(stormOf(seed+100, profile), steps, messages))
		assert.NotEqual(t, stormOf(seed, profile).plan, stormOf(seed+100, profile).plan)
		assert.Equal(t, stormOf(seed, profile).plan, stormOf(seed, profile).plan)

		backwards, others := slices.Clone(steps), slices.Clone(messages)
		slices.Reverse(backwards)
		slices.Reverse(others)
		assert.Equal(t, plan, rages(stormOf(seed, profile), backwards, others))

		planned := map[Perturbation]bool{}
		for _, p := range plan {
			planned[p] = true
		}
		half := rages(stormOf(seed, profile), steps[:len(steps)/2], messages[:len(messages)/2])
		assert.Less(t, len(half), len(plan))
		for _, p := range half {
			require.True(t, planned[p], p)
		}
		for _, step := range steps[:500] {
			later := step
			later.At += minute
			require.Equal(t, stormOf(seed, profile).Step(step), stormOf(seed, profile).Step(later), "nor on the time")
		}
	}
}

// One kind's rate changes nothing of what lasting others do.
func TestLastingKindsAreDrawnIndependently(t *testing.T) {
	profile := named(t, "chaos")
	whole := stormOf(7, profile).plan
	require.NotEmpty(t, whole)
	for _, kind := range Kinds() {
		calmer := profile
		calmer.Odds = slices.DeleteFunc(slices.Clone(profile.Odds), func(o Odds) bool { return o.Kind == kind })
		want := slices.DeleteFunc(slices.Clone(whole), func(p Perturbation) bool { return p.Kind == kind })
		assert.Equal(t, want, stormOf(7, calmer).plan, kind)
	}
}

func TestStormStopsAtUntil(t *testing.T) {
	always := Rate{1, 1}
	profile := profileOf(Odds{Kind: Crash, Rate: always}, Odds{Kind: Drop, Rate: always}, Odds{Kind: LeaseEarly, Rate: always})
	profile.Strategy = Strategy{Name: "hold", stalls: func(uint64) Odds { return Odds{Kind: Stall, Rate: always, For: Range{second, second}} }}
	const until = time.Hour
	for at, fires := range map[time.Duration]bool{0: true, until - 1: true, until: false, until + time.Hour: false} {
		for _, step := range someSteps()[:200] {
			s := stormOf(1, profile)
			step.At = at
			assert.Equal(t, fires, s.Armed(step), at)
			assert.Equal(t, fires, s.Step(step) != sim.Strike{}, at)
			assert.Equal(t, fires, s.Message(&sim.Message{Exchange: "callback(A)#1", At: at}).Drop, at)
			assert.Len(t, s.Fired(), map[bool]int{true: 2}[fires])
			assert.Equal(t, !fires, s.Over("n/loop", at), at)
			for _, f := range s.Fired() {
				assert.Equal(t, at, f.When)
			}
		}
	}
}

// A crash loop that is under way when the storm ends goes on to its own end.
func TestStormIsNotOverInACrashLoop(t *testing.T) {
	s := stormOf(1, profileOf(Odds{Kind: CrashLoop, Rate: Rate{1, 1}, N: [2]int64{3, 3}}))
	steps := slices.DeleteFunc(someSteps(), func(s sim.Step) bool { return s.Node != "shop-1" })
	i := slices.IndexFunc(steps, func(step sim.Step) bool { return s.Step(step).Crash })
	require.GreaterOrEqual(t, i, 0)
	assert.False(t, s.Over("n/loop", 2*time.Hour))
	deaths := 0
	for _, step := range steps[i+1:] {
		step.At = 2 * time.Hour
		if s.Step(step).Crash {
			deaths++
		}
	}
	assert.Equal(t, 3, deaths)
	assert.True(t, s.Over("n/loop", 2*time.Hour))
	assert.Len(t, s.Fired(), 1)
}

// All that the storm has put on for a while is over when the storm is.
func TestWhatLastsEndsWithTheStorm(t *testing.T) {
	profile := named(t, "chaos")
	for seed := range uint64(300) {
		until := 9*minute + 777*time.Microsecond
		if seed%2 == 0 {
			until = 2500*time.Microsecond + time.Duration(seed)*time.Microsecond // where it matters how a beginning is rounded
		}
		for _, p := range NewStorm(seed, profile, someTargets, until).plan {
			s := p.Kind.spec()
			assert.GreaterOrEqual(t, p.From, time.Duration(0), p)
			assert.Less(t, p.From, until, p)
			if s.anchor == atWay || s.anchor == atDatabase || s.clock != nil && p.Kind != Zone {
				assert.Positive(t, p.For, p)
				assert.LessOrEqual(t, p.From+p.For, until, p)
			}
		}
	}
}

func TestStormSparesWhoMustNotCrash(t *testing.T) {
	profile := named(t, "chaos")
	struck := map[string]map[Kind]int{"shop-1": {}, "buyer": {}}
	for seed := range uint64(20) {
		s := stormOf(seed, profile)
		for _, step := range someSteps() {
			if p, ok := s.drawn(&step); ok {
				struck[step.Node][p.Kind]++
			}
		}
	}
	for _, kind := range []Kind{Crash, Pause, Busy, SQLError, LostCommit, Stall} {
		assert.NotZero(t, struck["shop-1"][kind], kind)
	}
	for kind := range struck["buyer"] {
		assert.Contains(t, []Kind{Stall, LeaseEarly, TwoOwners}, kind, "a client is held up, and suffers from what its services do")
	}
	assert.NotZero(t, struck["buyer"][Stall])

	for seed := range uint64(20) {
		for _, p := range NewStorm(seed, profile, Targets{Nodes: []string{"shop-1"}}, time.Hour).plan {
			assert.Equal(t, "shop-1", p.At, "no other targets, and no other clock")
		}
	}
}

func TestCalmDoesNothing(t *testing.T) {
	for seed := range uint64(20) {
		s := stormOf(seed, named(t, "calm"))
		assert.Empty(t, s.plan)
		assert.Empty(t, rages(s, someSteps(), someMessages()))
		assert.Zero(t, s.Way("shop-1", "wechat", 0))
	}
	assert.Nil(t, named(t, "calm").Kinds())
}

// Whatever a storm draws can be written down and read again, and lies within the odds.
func TestWhatAStormDrawsCanBeWritten(t *testing.T) {
	steps, messages := someSteps(), someMessages()
	for _, m := range messages[:10] { // requests
		for _, method := range []string{sim.MethodPublish, sim.MethodExpired} {
			other := *m
			other.Exchange, other.Method = method+" "+m.Exchange, method
			messages = append(messages, &other)
		}
	}
	profile := named(t, "chaos")
	for i := range profile.Odds {
		switch o := &profile.Odds[i]; { // the rarest shall come up too
		case !o.Kind.spec().drawnOnTheWay():
			o.Rate = Rate{1, 2}
		case o.Kind.spec().anchor == atStep:
			o.Rate.Of = max(o.Rate.N, o.Rate.Of/20)
		}
	}
	odds := map[Kind]Odds{}
	for _, o := range profile.Odds {
		odds[o.Kind] = o
	}
	drawn := map[Kind]bool{}
	for seed := range uint64(8) {
		s := stormOf(seed, profile)
		plan := slices.Concat(rages(s, steps, messages), s.plan)
		read, err := ParsePlan(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan, read)
		for _, p := range plan {
			drawn[p.Kind] = true
			o, spec := odds[p.Kind], p.Kind.spec()
			if spec.drawnOnTheWay() && p.Kind != Stall {
				assert.GreaterOrEqual(t, p.For, o.For.Min, p)
				assert.LessOrEqual(t, p.For, o.For.Max, p)
			}
			assert.LessOrEqual(t, max(p.By, -p.By), o.By.Max, p)
			assert.GreaterOrEqual(t, max(p.By, -p.By), o.By.Min, p)
			assert.True(t, p.By >= 0 || p.Kind == Skew || p.Kind == Jump, p)
			assert.GreaterOrEqual(t, p.N, o.N[0], p)
			assert.LessOrEqual(t, p.N, o.N[1], p)
			assert.True(t, spec.choices == nil || slices.Contains(spec.choices, p.Text), p)
		}
	}
	for _, kind := range profile.Kinds() {
		assert.True(t, drawn[kind], "%s never came up", kind)
	}
}

// A charge gets the number of a trade of another channel, if there is one, and no other
// charge of its own channel has it.
func TestSameNumberIsOfAnotherChannel(t *testing.T) {
	profile := profileOf(Odds{Kind: SameNumber, Rate: Rate{1, 1}})
	seen := map[string]bool{}
	for seed := range uint64(50) {
		plan := stormOf(seed, profile).plan
		numbers := map[string]bool{}
		for _, p := range plan {
			number := actorOf(p.At) + " " + p.Text
			require.False(t, numbers[number], "no channel gives one number to two charges: %s", p)
			numbers[number] = true
			seen[p.At+" as "+p.Text] = true
		}
	}
	var want []string
	for _, wechat := range []string{"A", "B", "E/1"} {
		for _, alipay := range []string{"C", "D"} {
			want = append(want, "wechat/"+wechat+" as "+alipay, "alipay/"+alipay+" as "+wechat)
		}
	}
	assert.Len(t, seen, len(want))
	for _, one := range want {
		assert.True(t, seen[one], one)
	}
	assert.Empty(t, NewStorm(1, profile, Targets{Trades: []string{"wechat/A", "wechat/B"}}, time.Hour).plan)
}

// A quarter of the places in the code is struck five times as often as the others.
func TestStormHasActiveSites(t *testing.T) {
	steps := slices.DeleteFunc(someSteps(), func(s sim.Step) bool { return s.Node != "shop-1" })
	site := func(s *sim.Step) string { return sim.Role(s.Task) + "/" + s.Op + s.Phase.String() }
	rate := Rate{1, 10}
	active, sites := 0, 0
	for seed := range uint64(12) {
		s := stormOf(seed, profileOf(Odds{Kind: Crash, Rate: rate}))
		all, hits := map[string]int{}, map[string]int{}
		factor := map[string]uint64{}
		for i := range steps {
			name := site(&steps[i])
			f := s.siteFactor(siteOf(&steps[i]))
			if factor[name] != 0 {
				require.Equal(t, factor[name], f, "a place is active or not, all through a run")
			}
			factor[name] = f
			all[name]++
			if s.Step(steps[i]).Crash {
				hits[name]++
			}
		}
		quiet, loud := [2]int{}, [2]int{}
		for name, f := range factor {
			sites++
			sum := &quiet
			if f == activeFactor {
				sum = &loud
				active++
			}
			sum[0] += hits[name]
			sum[1] += all[name]
		}
		near(t, "quiet", Rate{rate.N * quietFactor, rate.Of * 4}, quiet[0], quiet[1])
		near(t, "active", Rate{rate.N * activeFactor, rate.Of * 4}, loud[0], loud[1])
	}
	near(t, "active sites", Rate{1, activeSites}, active, sites)
}

// What the storm did is a plan; played without the seed, it makes the same run.
func TestScriptRepeatsTheStorm(t *testing.T) {
	profile := named(t, "chaos")
	for i := range profile.Odds {
		if r := &profile.Odds[i].Rate; profile.Odds[i].Kind.spec().anchor != atMessage {
			r.Of = max(r.N, r.Of/4) // the world is small
		}
	}
	targets := Targets{Nodes: []string{"shop-1", "shop-2"}, Ways: [][2]string{{"shop-1", "buyer"}, {"shop-2", "leases"}}, Databases: []string{"shop"}}
	seen := map[Kind]bool{}
	for seed := range uint64(40) {
		s := NewStorm(seed, profile, targets, 10*second)
		stormy := small(t, s, s.Script)
		plan, err := ParsePlan(PlanOf(s.Fired()).String())
		require.NoError(t, err)
		require.NotEmpty(t, plan)

		script := NewScript(plan)
		scripted := small(t, script, script)
		require.Empty(t, difference(stormy.Trace(), scripted.Trace()), "seed %d", seed)
		require.Equal(t, stormy.Trace().Hash(), scripted.Trace().Hash(), "seed %d", seed)
		require.Equal(t, s.Fired(), script.Fired(), "each once, in the same order")
		require.Empty(t, script.Unreached())
		for _, p := range plan {
			seen[p.Kind] = true
		}
		stormy.Close()
		scripted.Close()
	}
	for _, k := range kinds {
		byHands := k.anchor == atTrade || k.anchor == atDay || k.anchor == atRow
		elsewhere := k.name == BrokerLoss || k.name == BrokerDuplicate || k.name == ExpiryLost // no broker here
		assert.Equal(t, !byHands && !elsewhere, seen[k.name], k.name)
	}
}

// difference tells the first records in which two traces differ, "" if there are none.
func difference(a, b *sim.Trace) string {
	for i := range max(len(a.Records), len(b.Records)) {
		var lines [2]string
		for j, one := range []*sim.Trace{a, b} {
			if i < len(one.Records) {
				lines[j] = one.Line(&one.Records[i])
			}
		}
		if lines[0] != lines[1] {
			return lines[0] + "\n" + lines[1]
		}
	}
	return ""
}

// small runs a shop whose other instance has periodic work that takes a lease.
func small(t *testing.T, f sim.Faults, script *Script) *world {
	w := newWorld(t, f)
	w.addShop("A", "B", "C", "D", "E", "F")
	leases := w.Leases("leases")
	w.Node("shop-2", func(p *sim.Process) {
		db := p.OpenDB(w.shop, sim.DBOptions{Immediate: true, BusyTimeout: second})
		for _, scan := range []string{"scan", "second scan"} {
			p.Every(scan, second, func(ctx context.Context) {
				ctx, cancel := p.Clock().WithTimeout(ctx, 3*second)
				defer cancel()
				if lease, ok, err := p.Leases(leases).Acquire(ctx, "scan", scan, 5*second); ok && err == nil {
					insertPayment(ctx, db, p.Clock().Now().Format(time.RFC3339Nano))
					p.Leases(leases).Release(ctx, lease)
				}
			})
		}
		p.Every("look", 100*ms, func(ctx context.Context) {
			var n int
			db.QueryRowContext(ctx, "SELECT count(*) FROM payments WHERE number = 'none'").Scan(&n)
		})
	})
	script.Arm(w.World, nil)
	w.Run(minute)
	return w
}

// The world is told beforehand of each step that will be struck, and of no other.
func TestArmedIsWhatWillStrike(t *testing.T) {
	steps := someSteps()
	profile := named(t, "storm")
	struck := 0
	for seed := range uint64(8) {
		loops := seed%2 == 0
		if !loops {
			profile.Odds = slices.DeleteFunc(profile.Odds, func(o Odds) bool { return o.Kind == CrashLoop })
		}
		s := stormOf(seed, profile)
		for _, step := range steps {
			fired := len(s.Fired())
			armed := s.Armed(step)
			require.Len(t, s.Fired(), fired, "asking changes nothing")
			strikes := s.Step(step) != sim.Strike{}
			if strikes {
				struck++
			}
			if loops && !strikes { // a loop may strike at any step
				continue
			}
			require.Equal(t, strikes, armed, "seed %d, %s", seed, step.Name())
		}
		script := NewScript(PlanOf(s.Fired()))
		for _, step := range steps {
			armed := script.Armed(step)
			if strikes := script.Step(step) != (sim.Strike{}); strikes || !loops {
				require.Equal(t, strikes, armed, step.Name())
			}
		}
	}
	assert.Greater(t, struck, 200)
}

// A storm's kinds, drawn beforehand or to be drawn.
func kindsOf(s *Storm) map[Kind]bool {
	all := map[Kind]bool{}
	for _, p := range s.plan {
		all[p.Kind] = true
	}
	for _, c := range slices.Concat(s.steps, s.rare, s.messages) {
		all[c.Kind] = true
	}
	return all
}

// Under swarm, a half of the kinds is away, another half in each run.
func TestSwarmTurnsKindsOff(t *testing.T) {
	profile := named(t, "swarm")
	require.True(t, profile.Subset)
	for i := range profile.Odds {
		profile.Odds[i].Rate = Rate{1, 1}
	}
	const seeds = 200
	on := map[Kind]int{}
	runs := map[string]bool{}
	for seed := range uint64(seeds) {
		have := kindsOf(stormOf(seed, profile))
		assert.Equal(t, have, kindsOf(stormOf(seed, profile)))
		assert.True(t, have[Stall])
		assert.InDelta(t, len(Kinds())/2, len(have), 14, "seed %d", seed)
		runs[fmt.Sprint(have)] = true
		for kind := range have {
			on[kind]++
		}
	}
	assert.Len(t, runs, seeds)
	for _, o := range profile.Odds {
		near(t, o.Kind, Rate{1, 2}, on[o.Kind], seeds)
	}

	all := named(t, "chaos")
	for i := range all.Odds {
		all.Odds[i].Rate = Rate{1, 1}
	}
	for _, kind := range all.Kinds() {
		assert.True(t, kindsOf(stormOf(1, all))[kind], kind)
	}
}

func TestStrategiesStrikeOnlyWhereTheySay(t *testing.T) {
	steps := someSteps()
	for name, c := range map[string]struct {
		where func(s *sim.Step) bool
		rates []Rate // one of these in each run
		least time.Duration
		most  time.Duration
	}{
		"random":  {func(*sim.Step) bool { return true }, []Rate{{1, 100}, {1, 40}, {1, 15}}, 100 * time.Microsecond, 20 * second},
		"latency": {func(s *sim.Step) bool { return s.Phase == sim.Before && s.Task != "boot#1" }, []Rate{{1, 3}}, 10 * time.Microsecond, 3 * second},
		"conflict": {func(s *sim.Step) bool {
			op, _, _ := strings.Cut(s.Operation(), "#")
			alone := op == "InsertPayment" && s.N%2 == 0 // outside a transaction
			first := op == "InsertPayment" && s.N%2 == 1 // inside, and before it has the lock
			return s.Phase == sim.Before && (op == "BEGIN" || op == "COMMIT" || alone || first || s.Leased)
		}, []Rate{{3, 4}}, 5 * ms, 4 * second},
	} {
		strategy, err := StrategyNamed(name)
		require.NoError(t, err)
		profile := profileOf(Odds{Kind: Drop, Rate: Rate{0, 1}})
		profile.Strategy = strategy
		there := 0
		for i := range steps {
			if c.where(&steps[i]) {
				there++
			}
		}
		require.NotZero(t, there, name)
		used := map[int]bool{}
		for seed := range uint64(12) {
			s := stormOf(seed, profile)
			stalls, there := 0, there
			if strategy.slowSites {
				there = 0
			}
			for i := range steps {
				if strategy.slowSites && c.where(&steps[i]) && sim.Draw(seed, "slow", siteOf(&steps[i]))%slowSite == 0 {
					there++
				}
				strike := s.Step(steps[i])
				if strike == (sim.Strike{}) {
					continue
				}
				stalls++
				require.True(t, c.where(&steps[i]), "%s strikes %s", name, steps[i].Name())
				require.Equal(t, sim.Strike{Stall: strike.Stall}, strike, "%s does more than to hold up", name)
				require.GreaterOrEqual(t, strike.Stall, c.least, name)
				require.LessOrEqual(t, strike.Stall, c.most, name)
			}
			rate := strategy.stalls(seed).Rate
			require.Contains(t, c.rates, rate, name)
			used[slices.Index(c.rates, rate)] = true
			near(t, name, rate, stalls, there)
		}
		assert.Len(t, used, len(c.rates), name)
	}
}

// Priority holds up one to three of a run's steps, for long.
func TestPriorityHoldsUpFewSteps(t *testing.T) {
	strategy, err := StrategyNamed("priority")
	require.NoError(t, err)
	profile := profileOf(Odds{Kind: Drop, Rate: Rate{0, 1}})
	profile.Strategy = strategy
	const seeds = 300
	wanted, stalls := map[uint64]int{}, map[uint64]int{}
	steps := someSteps()[:3000]
	for seed := range uint64(seeds) {
		n := strategy.stalls(seed).Rate.N
		wanted[n]++
		s := stormOf(seed, profile)
		for _, step := range steps {
			if strike := s.Step(step); strike != (sim.Strike{}) {
				require.Equal(t, sim.Strike{Stall: strike.Stall}, strike)
				require.GreaterOrEqual(t, strike.Stall, 500*ms)
				require.LessOrEqual(t, strike.Stall, 2*minute)
				stalls[n]++
			}
		}
	}
	require.Len(t, wanted, 3)
	for n := uint64(1); n <= 3; n++ {
		near(t, "seeds", Rate{1, 3}, wanted[n], seeds)
		near(t, "stalls", Rate{n, usualSteps}, stalls[n], wanted[n]*len(steps))
	}
}

func TestStrategyOfASeed(t *testing.T) {
	drawn := map[string]int{}
	const seeds = 400
	for seed := range uint64(seeds) {
		drawn[named(t, "storm").StrategyOf(seed).Name]++
		own := named(t, "storm")
		own.Strategy = Strategies()[2]
		assert.Equal(t, "priority", own.StrategyOf(seed).Name)
	}
	assert.Len(t, drawn, len(Strategies()))
	for name, n := range drawn {
		near(t, name, Rate{1, 4}, n, seeds)
	}
	_, err := StrategyNamed("luck")
	require.Error(t, err)
	assert.Equal(t, `there is no strategy "luck"; there are random, latency, priority, conflict`, err.Error())
}
