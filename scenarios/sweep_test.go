package scenarios

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
)

var (
	seedFlag    = flag.String("seed", "", "the one seed that TestSweep runs")
	seedsFlag   = flag.String("seeds", "1-60", "the seeds that TestSweep runs, A-B")
	profileFlag = flag.String("profile", "storm", "the profile that TestSweep runs under")
	strategy    = flag.String("strategy", "", "the strategy by which TestSweep varies its runs; by default each seed draws one")
	journalFlag sim.Journal

	policySeedsFlag = flag.String("policy-seeds", "1-15", "the seeds for each policy of TestSweepWithoutWhatNothingMayDependOn")
)

func init() {
	flag.TextVar(&journalFlag, "journal", sim.MemDB, "how the databases of TestSweep lock: memdb or wal")
}

// TestSweep runs the seeds of -seed, -seeds or TILLSTORM_SEED. A failure tells
// what happened to the money.
func TestSweep(t *testing.T) {
	text, from := *seedsFlag, "-seeds"
	if env := os.Getenv("TILLSTORM_SEED"); env != "" && !given("seeds") {
		text, from = env, "TILLSTORM_SEED"
	}
	if *seedFlag != "" {
		text, from = *seedFlag, "-seed"
	}
	seeds, err := ParseSeeds(text)
	require.NoError(t, err, from)
	profile, err := faults.ProfileNamed(*profileFlag)
	require.NoError(t, err, "-profile")
	if *strategy != "" {
		profile.Strategy, err = faults.StrategyNamed(*strategy)
		require.NoError(t, err, "-strategy")
	}
	report, err := Sweep{Seeds: seeds, Profile: profile, Journal: journalFlag}.Run(t.Context())
	require.NoError(t, err)
	told := map[string]bool{}
	for _, f := range report.Failures {
		if !told[f.Fingerprint] {
			told[f.Fingerprint] = true
			t.Errorf("%s", f.Text)
		}
	}
	require.Equal(t, Pass, report.Verdict(), "never reached: %v", report.Unreached)
	t.Logf("%d seeds passed, %d steps, faults %v, probes %v, trace hash %s",
		report.Passed, report.Steps, report.FaultsFired, report.Probes, report.TraceHash)
}

// given says whether a flag stands on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func storm(t *testing.T) faults.Profile {
	profile, err := faults.ProfileNamed("storm")
	require.NoError(t, err)
	return profile
}

// Whatever only accelerates closing or shortens races may fail altogether, and all
// properties still hold.
func TestSweepWithoutWhatNothingMayDependOn(t *testing.T) {
	for name, adjust := range map[string]func(*Case){
		"leases granted to everyone": func(c *Case) { c.Policy.LeasesGrantAll, c.Policy.LeasesAway = true, false },
		"lease service away":         func(c *Case) { c.Policy.LeasesGrantAll, c.Policy.LeasesAway = false, true },
		"all delayed messages lost":  func(c *Case) { c.Policy.MessagesLost, c.Policy.CloseBy = true, nil },
		"key expiry off":             func(c *Case) { c.Policy.CloseBy = []system.CloseBy{system.CloseByScan, system.CloseByMessage} },
	} {
		t.Run(name, func(t *testing.T) {
			seeds, err := ParseSeeds(*policySeedsFlag)
			require.NoError(t, err)
			report, err := Sweep{Seeds: seeds, Profile: storm(t), adjust: adjust}.Run(t.Context())
			require.NoError(t, err)
			for _, f := range report.Failures {
				t.Errorf("%s", f.Text)
			}
			require.Equal(t, report.Seeds, report.Passed)
		})
	}
}

func TestSweepHashDependsOnSeedsAlone(t *testing.T) {
	sweep := func(procs, workers int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		report, err := Sweep{Seeds: Seeds{1, 8}, Profile: storm(t), Workers: workers}.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, Pass, report.Verdict())
		return report.TraceHash
	}
	hash := sweep(1, 1)
	assert.Equal(t, hash, sweep(1, 3))
	assert.Equal(t, hash, sweep(2, 1))
	assert.Equal(t, hash, sweep(2, 2))
}

// Over WAL files a sweep is as deterministic, and another one: its readers wait for
// nobody.
func TestSweepOverWAL(t *testing.T) {
	sweep := func(j sim.Journal, workers int) string {
		report, err := Sweep{Seeds: Seeds{1, 10}, Profile: storm(t), Journal: j, Workers: workers}.Run(t.Context())
		require.NoError(t, err)
		for _, f := range report.Failures {
			t.Errorf("%s", f.Text)
		}
		return report.TraceHash
	}
	hash := sweep(sim.WAL, 1)
	assert.Equal(t, hash, sweep(sim.WAL, 3))
	assert.NotEqual(t, hash, sweep(sim.MemDB, 2))
}

func TestFailuresNameWhatTheyRanUnder(t *testing.T) {
	r := &Result{Case: Case{Seed: 9, Profile: storm(t)}, Verdict: Unknown, Undecided: []string{"linearizable-stock"}}
	assert.NotContains(t, explainAll(r)[0].Text, "journal")
	r.Case.Journal, r.Case.Profile.Strategy = sim.WAL, faults.Strategies()[0]
	told := explainAll(r)[0]
	assert.Equal(t, "go run ./cmd/tillstorm replay --seed 9 --profile storm --strategy random --journal wal", told.Repro)
	assert.Contains(t, told.Text, "-seed 9 -profile storm -strategy random -journal wal\n")
}

func TestUnreachedPlanIsStale(t *testing.T) {
	arena := sim.NewArena()
	defer arena.Close()
	c := Draw(1, faults.Profile{})
	c.Plan = faults.Plan{{Kind: faults.Drop, At: "callback(NOBODY)#1"}}
	r, err := Run(c, arena)
	require.NoError(t, err)
	assert.Equal(t, Stale, r.Verdict)
	assert.Equal(t, c.Plan, r.Unreached)
	assert.Equal(t, 4, r.Verdict.ExitCode())
}

// A fault that is armed and never fires makes a sweep stale, if it had the seeds to; so
// does whatever else never came.
func TestVacuousSweepIsStale(t *testing.T) {
	planted := faults.Profile{Name: "planted", Odds: []faults.Odds{{Kind: faults.Crash}}, Everything: true}
	sweep := Sweep{Seeds: Seeds{1, 2}, Profile: planted, adjust: func(c *Case) {
		c.Workload.Operations = slices.DeleteFunc(c.Workload.Operations, func(op Operation) bool { return op.Verb == Refunds })
	}}
	report, err := sweep.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Pass, report.Verdict(), "two seeds need not come to everything")
	assert.Subset(t, report.Unreached, []string{"fault crash", "operation refunds", "probe full refund"})
	assert.NotContains(t, report.Unreached, "operation creates")
	assert.NotContains(t, report.Unreached, "probe order paid")
	assert.NotContains(t, report.Unreached, "probe outbox message parked", "it is optional")

	// An operation succeeds in most seeds, so fewer must come to it than to everything.
	report = newReport(make([]outcome, operationSeeds), newSums(), time.Now())
	report.findUnreached(planted, enoughSeeds)
	assert.Len(t, report.Vacuous(), len(drawn))
	assert.Contains(t, report.Vacuous(), "operation refunds")

	sweep.enough = 2
	report, err = sweep.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, report.Passed, "no single run is stale")
	assert.Equal(t, Stale, report.Verdict())
}

func TestShardsMakeTheWhole(t *testing.T) {
	var seen []uint64
	for i := 1; i <= 3; i++ {
		for j := range (Sweep{Seeds: Seeds{10, 20}, Shard: Shard{i, 3}}).jobs(t.Context(), nil) {
			assert.Equal(t, j.number == 0, j.twice, "the first seed of every shard is run twice")
			seen = append(seen, j.c.Seed)
		}
	}
	assert.ElementsMatch(t, []uint64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, seen)
}

func TestParseSeedsAndShard(t *testing.T) {
	for _, bad := range []string{"", "x", "5-1", "-3", "1-", "1-2-3", "99999999999999999999"} {
		_, err := ParseSeeds(bad)
		assert.Error(t, err, bad)
	}
	seeds, err := ParseSeeds("7")
	require.NoError(t, err)
	assert.Equal(t, Seeds{7, 7}, seeds)
	assert.Equal(t, "3-9", Seeds{3, 9}.String())
	for _, bad := range []string{"", "0/3", "4/3", "1", "a/b"} {
		_, err := ParseShard(bad)
		assert.Error(t, err, bad)
	}
}

// Where nothing goes wrong, nothing is an error, and no call fails.
func TestCalmHasNoErrors(t *testing.T) {
	calm, err := faults.ProfileNamed("calm")
	require.NoError(t, err)
	arena := sim.NewArena()
	defer arena.Close()
	for seed := range uint64(8) {
		r, err := Run(Draw(seed, calm), arena)
		require.NoError(t, err)
		for i := range r.Trace.Records {
			record := &r.Trace.Records[i]
			failed := record.Event == sim.EventFail || record.Event == sim.EventPanic || record.Event == sim.EventAnswer && record.Message.Status >= 500
			assert.False(t, failed, "seed %d: %s", seed, r.Trace.Line(record))
		}
	}
}
