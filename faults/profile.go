package faults

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Rate is a probability, N out of Of.
type Rate struct{ N, Of uint64 }

// hit says whether a draw falls within the rate.
func (r Rate) hit(draw uint64) bool { return r.N > 0 && draw%r.Of < r.N }

// share returns the rate as a share of 2^32.
func (r Rate) share() uint64 {
	if r.N == 0 {
		return 0
	}
	return r.N << 32 / r.Of
}

// Range is a range of durations. Draws are spread evenly over its orders of
// magnitude, since a race has a length that nobody knows.
type Range struct{ Min, Max time.Duration }

// Draw returns the duration that random bits stand for.
func (r Range) Draw(bits64 uint64) time.Duration {
	least := max(r.Min, time.Microsecond) // zero has no order of magnitude
	if r.Max <= least {
		return r.Max
	}
	octaves := uint64(bits.Len64(uint64(r.Max / least)))
	low := least << (bits64 % octaves)
	span := uint64(min(low, r.Max-low))
	d := low + time.Duration(bits64>>8%max(span, 1))
	return min(max(d.Round(time.Microsecond), least), r.Max)
}

// Odds is how often a kind strikes, and how hard.
type Odds struct {
	Kind Kind
	// Rate is the chance of a step or a message that the kind fits, or else of one
	// of its targets in a run.
	Rate Rate
	For  Range
	By   Range
	N    [2]int64 // from, to
}

// Profile says how often things go wrong, and how badly.
type Profile struct {
	Name     string
	Sentence string
	Odds     []Odds
	// Subset turns a random half of the kinds off in each run: what always happens
	// hides what happens without it.
	Subset bool
	// Everything says that all that can go wrong may: then every place in the system
	// must be reached.
	Everything bool
	// Strategy is how a run is varied; the zero value leaves the choice to the seed.
	Strategy Strategy
}

const (
	ms     = time.Millisecond
	second = time.Second
	minute = time.Minute
)

// flaky is a bad network, and nothing else.
var flaky = []Odds{
	{Kind: Drop, Rate: Rate{1, 50}},
	{Kind: Duplicate, Rate: Rate{1, 25}, For: Range{10 * time.Microsecond, 20 * second}},
	{Kind: Delay, Rate: Rate{1, 8}, By: Range{100 * time.Microsecond, 20 * second}},
	{Kind: LateAnswer, Rate: Rate{1, 8}, By: Range{100 * time.Microsecond, 20 * second}},
	{Kind: Reorder, Rate: Rate{1, 20}, For: Range{ms, 5 * second}},
	{Kind: Reset, Rate: Rate{1, 50}},
	{Kind: Clog, Rate: Rate{1, 20}, By: Range{10 * ms, 3 * second}, For: Range{second, 3 * minute}},
}

// storm has everything. Its durations lie around what the system's timeouts, leases
// and schedules are: 3 s for a call, 5 s for a client, 15 s for a lease, 15 minutes for
// an order.
var storm = []Odds{
	{Kind: Drop, Rate: Rate{1, 30}},
	{Kind: Duplicate, Rate: Rate{1, 12}, For: Range{10 * time.Microsecond, minute}},
	{Kind: Delay, Rate: Rate{1, 5}, By: Range{100 * time.Microsecond, 4 * minute}},
	{Kind: LateAnswer, Rate: Rate{1, 6}, By: Range{100 * time.Microsecond, minute}},
	{Kind: Reorder, Rate: Rate{1, 25}, For: Range{ms, 30 * second}},
	{Kind: Reset, Rate: Rate{1, 40}},

	{Kind: Partition, Rate: Rate{1, 24}, For: Range{5 * second, 5 * minute}},
	{Kind: OneWay, Rate: Rate{1, 24}, For: Range{5 * second, 5 * minute}},
	{Kind: Clog, Rate: Rate{1, 24}, By: Range{10 * ms, 5 * second}, For: Range{5 * second, 5 * minute}},

	{Kind: Crash, Rate: Rate{1, 500}, For: Range{10 * ms, 30 * second}},
	{Kind: CrashLoop, Rate: Rate{1, 8000}, For: Range{10 * ms, 10 * second}, N: [2]int64{1, 4}},
	{Kind: SlowRestart, Rate: Rate{1, 12000}, For: Range{minute, 8 * minute}},
	{Kind: Pause, Rate: Rate{1, 3000}, For: Range{100 * ms, 80 * second}},

	{Kind: Busy, Rate: Rate{1, 800}},
	{Kind: SQLError, Rate: Rate{1, 500}},
	{Kind: LostCommit, Rate: Rate{1, 200}},
	{Kind: Slow, Rate: Rate{1, 12}, By: Range{ms, 300 * ms}, For: Range{second, 2 * minute}},
	{Kind: Full, Rate: Rate{1, 3}, For: Range{5 * second, 4 * minute}},

	{Kind: Skew, Rate: Rate{1, 10}, By: Range{10 * ms, 4 * minute}},
	{Kind: Drift, Rate: Rate{1, 20}, N: [2]int64{-50_000, 50_000}},
	{Kind: Jump, Rate: Rate{1, 16}, By: Range{10 * ms, 4 * minute}, For: Range{second, 10 * minute}},
	{Kind: Zone, Rate: Rate{1, 16}},

	{Kind: UnknownOutcome, Rate: Rate{1, 24}, N: [2]int64{1, 3}},
	{Kind: ChannelError, Rate: Rate{1, 24}, N: [2]int64{1, 4}},
	{Kind: RateLimit, Rate: Rate{1, 16}, N: [2]int64{1, 4}},
	{Kind: LateSettlement, Rate: Rate{1, 24}, By: Range{100 * ms, 5 * minute}},
	{Kind: QueryLag, Rate: Rate{1, 16}, For: Range{100 * ms, 30 * second}},
	{Kind: NotFoundYet, Rate: Rate{1, 24}, For: Range{second, minute}},
	{Kind: PaidAtClose, Rate: Rate{1, 12}},
	{Kind: RepeatedNotice, Rate: Rate{1, 16}, N: [2]int64{1, 3}},
	{Kind: DisorderNotice, Rate: Rate{1, 24}, By: Range{second, 5 * minute}},
	{Kind: Silence, Rate: Rate{1, 20}},
	{Kind: ChargeUntold, Rate: Rate{1, 40}},
	{Kind: FewNotices, Rate: Rate{1, 20}, N: [2]int64{1, 2}},
	{Kind: TradeUnnamed, Rate: Rate{1, 2}}, // harmless by itself
	{Kind: FailedFirst, Rate: Rate{1, 16}},
	{Kind: RefundAbnormal, Rate: Rate{1, 10}, For: Range{second, 10 * minute}},
	{Kind: RefundClosed, Rate: Rate{1, 30}, For: Range{second, 10 * minute}},
	{Kind: BillLate, Rate: Rate{1, 8}, By: Range{minute, 5 * time.Hour}},
	{Kind: BillMissing, Rate: Rate{1, 20}},
	{Kind: BillExtra, Rate: Rate{1, 60}, N: [2]int64{1, 50_000}},
	{Kind: BillWrong, Rate: Rate{1, 20}, N: [2]int64{1, 50_000}},
	{Kind: BillMisfiled, Rate: Rate{1, 30}},
	{Kind: BackMissing, Rate: Rate{1, 16}},
	{Kind: BackExtra, Rate: Rate{1, 60}, N: [2]int64{1, 50_000}},
	{Kind: BackWrong, Rate: Rate{1, 16}, N: [2]int64{1, 50_000}},
	{Kind: BackMisfiled, Rate: Rate{1, 16}},
	{Kind: SameNumber, Rate: Rate{1, 6}},

	{Kind: RowDeleted, Rate: Rate{1, 20}},
	{Kind: RowEdited, Rate: Rate{1, 20}, N: [2]int64{1, 50_000}},

	{Kind: BrokerLoss, Rate: Rate{1, 12}},
	{Kind: BrokerDuplicate, Rate: Rate{1, 10}, For: Range{10 * time.Microsecond, minute}},
	{Kind: ExpiryLost, Rate: Rate{1, 6}},
	{Kind: LeaseEarly, Rate: Rate{1, 4}, For: Range{ms, 5 * second}},
	{Kind: TwoOwners, Rate: Rate{1, 2}},
}

// Profiles returns the profiles, the gentlest first.
func Profiles() []Profile {
	return []Profile{
		{Name: "calm", Sentence: "nothing goes wrong"},
		{Name: "flaky", Sentence: "a bad network", Odds: slices.Clone(flaky)},
		{Name: "storm", Sentence: "everything goes wrong now and then", Odds: slices.Clone(storm), Everything: true},
		{Name: "chaos", Sentence: "everything goes wrong twice as often", Odds: oftener(storm, 2), Everything: true},
		{Name: "swarm", Sentence: "chaos, of which each run draws a half of the kinds", Odds: oftener(storm, 2), Subset: true, Everything: true},
	}
}

// Kinds returns what may happen under the profile.
func (p Profile) Kinds() []Kind {
	if len(p.Odds) == 0 {
		return nil
	}
	all := []Kind{Stall}
	for _, o := range p.Odds {
		all = append(all, o.Kind)
	}
	return all
}

func oftener(odds []Odds, times uint64) []Odds {
	more := slices.Clone(odds)
	for i := range more {
		r := &more[i].Rate
		r.N = min(r.N*times, r.Of)
	}
	return more
}

// ProfileNamed returns the profile of that name.
func ProfileNamed(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("there is no profile %q; there are %s", name, strings.Join(names, ", "))
}
