package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
)

// benchSeeds are the seeds that each iteration of a benchmark runs.
const benchSeeds = 20

// BenchmarkSweep is one processor's share of a sweep: whole runs under the storm
// profile, checks and settling included. An operation is one seed.
func BenchmarkSweep(b *testing.B) {
	profile, err := faults.ProfileNamed("storm")
	require.NoError(b, err)
	for _, j := range []sim.Journal{sim.MemDB, sim.WAL} {
		b.Run(j.String(), func(b *testing.B) { benchmarkSweep(b, profile, j.NewArena()) })
	}
}

func benchmarkSweep(b *testing.B, profile faults.Profile, arena *sim.Arena) {
	defer arena.Close()
	steps, seed := 0, uint64(0)
	for b.Loop() {
		seed++
		r, err := Run(Draw(seed%benchSeeds, profile), arena)
		require.NoError(b, err)
		steps += r.Steps
	}
	report(b, b.Elapsed(), steps)
}

func report(b *testing.B, took time.Duration, steps int) {
	b.ReportMetric(float64(b.N)/took.Seconds(), "seeds/s")
	b.ReportMetric(float64(steps)/took.Seconds(), "steps/s")
	b.ReportMetric(float64(took.Nanoseconds())/float64(steps), "ns/step")
}

// BenchmarkAgainstBareSQL runs the same seeds as whole runs and, turn by turn, only
// their SQL statements, through the same driver with the same settings. x/bare is
// the ratio: what the simulation, the system's own code and the checks cost beside
// SQLite.
func BenchmarkAgainstBareSQL(b *testing.B) {
	profile, err := faults.ProfileNamed("storm")
	require.NoError(b, err)
	for _, j := range []sim.Journal{sim.MemDB, sim.WAL} {
		b.Run(j.String(), func(b *testing.B) { benchmarkAgainstBareSQL(b, profile, j.NewArena()) })
	}
}

func benchmarkAgainstBareSQL(b *testing.B, profile faults.Profile, arena *sim.Arena) {
	defer arena.Close()
	var players []*sim.Player
	for seed := range uint64(benchSeeds) {
		c := Draw(seed, profile)
		c.tape = &sim.Tape{}
		_, err := Run(c, arena)
		require.NoError(b, err)
		player, err := sim.NewPlayer(c.tape)
		require.NoError(b, err)
		defer player.Close()
		players = append(players, player)
	}
	var whole, bare time.Duration
	for b.Loop() {
		for seed := range uint64(benchSeeds) {
			began := time.Now()
			_, err := Run(Draw(seed, profile), arena)
			require.NoError(b, err)
			whole += time.Since(began)

			require.NoError(b, players[seed].Reset())
			began = time.Now()
			require.NoError(b, players[seed].Play())
			bare += time.Since(began)
		}
	}
	b.ReportMetric(float64(whole)/float64(bare), "x/bare")
	b.ReportMetric(float64(bare.Nanoseconds())/float64(b.N*benchSeeds), "bare-ns/seed")
	b.ReportMetric(float64(whole.Nanoseconds())/float64(b.N*benchSeeds), "run-ns/seed")
}

// BenchmarkCheckers runs seeds as whole runs and, turn by turn, tells their records once
// more to all the checkers alone, and to nobody. %/run is the checkers' share of a run:
// all properties, linearizability, what they need to know, and the probes.
func BenchmarkCheckers(b *testing.B) {
	profile, err := faults.ProfileNamed("storm")
	require.NoError(b, err)
	arena := sim.MemDB.NewArena()
	defer arena.Close()
	var whole, judged, told time.Duration
	records := 0
	for b.Loop() {
		for seed := range uint64(benchSeeds) {
			c := Draw(seed, profile)
			began := time.Now()
			r, err := Run(c, arena)
			require.NoError(b, err)
			whole += time.Since(began)
			records += len(r.Trace.Records)

			began = time.Now()
			retell(r.Trace, func(*sim.Trace) {})
			told += time.Since(began)

			began = time.Now()
			var e *checker.Evidence
			retell(r.Trace, func(t *sim.Trace) { e = c.judgeOf(t) })
			failures, unknown := e.Finish()
			judged += time.Since(began)
			require.False(b, unknown)
			require.Empty(b, failures)
		}
	}
	b.ReportMetric(100*float64(judged-told)/float64(whole), "%/run")
	b.ReportMetric(float64((judged-told).Nanoseconds())/float64(records), "ns/record")
}

// retell tells the records of a trace to whoever watches its copy.
func retell(t *sim.Trace, watch func(*sim.Trace)) {
	again := &sim.Trace{Start: t.Start, Records: make([]sim.Record, 0, len(t.Records))}
	watch(again)
	for _, r := range t.Records {
		again.Append(r)
	}
}
