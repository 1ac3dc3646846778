package faults

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlanText(t *testing.T) {
	plan := Plan{
		{Crash, "shop-1/callback(A)#1/COMMIT:before", 2 * time.Second},
		{Stall, "shop-1/close-scan@14:15:00.000/UPDATE orders(A)#2:after", 1500 * time.Microsecond},
		{Drop, "callback(A)#1:answer", 0},
		{Delay, "create(#1)#1", time.Hour},
		{Duplicate, "#1", 0},
	}
	const text = `shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s
shop-1  stalls  "close-scan@14:15:00.000/UPDATE orders(A)#2:after"  for 1.5ms
network  drops  callback(A)#1:answer
network  delays  create(#1)#1  by 1h0m0s
network  duplicates  "#1"  after 0s
`
	assert.Equal(t, text, plan.String())
	parsed, err := ParsePlan("# what went wrong\r\n\n" + strings.ReplaceAll(text, "\n", "  # so it did\r\n\t\n"))
	require.NoError(t, err)
	assert.Equal(t, plan, parsed)
}

// anchors are names of all kinds, also such as no sane system has.
func anchors() *rapid.Generator[string] {
	awkward := rapid.StringOfN(rapid.RuneFrom([]rune(" \t\r\n\v\f\"'`\\#/:()@+-.=,;\x00\x7f\u00a0\u2028\u200fé世😀")), 0, 12, -1)
	raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")) })
	return rapid.OneOf(awkward, raw, rapid.String(), rapid.StringMatching(`[a-z]{1,6}\([A-Z]\)#[1-9]/[A-Z a-z]{1,12}`))
}

func perturbations() *rapid.Generator[Perturbation] {
	return rapid.Custom(func(t *rapid.T) Perturbation {
		p := Perturbation{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), At: anchors().Draw(t, "anchor")}
		if p.Kind != Drop {
			p.For = time.Duration(rapid.Int64Min(0).Draw(t, "for"))
		}
		if !p.Kind.ofMessage() {
			node := strings.ReplaceAll(anchors().Draw(t, "node"), "/", "")
			p.At = node + "/" + p.At + rapid.SampledFrom([]string{":before", ":after"}).Draw(t, "phase")
		}
		return p
	})
}

func TestPlanTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := Plan(rapid.SliceOfN(perturbations(), 1, 5).Draw(t, "plan"))
		plan = plan[:len(plan):len(plan)]
		for i, p := range plan {
			if p.Kind == Duplicate && strings.HasSuffix(p.At, ":answer") {
				plan[i].Kind = Delay
			}
		}
		parsed, err := ParsePlan(plan.String())
		require.NoError(t, err, plan.String())
		require.Equal(t, plan, parsed, plan.String())
		require.Equal(t, len(plan), strings.Count(plan.String(), "\n"), "one line for each")
	})
}

func TestParseErrors(t *testing.T) {
	const crash = "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s\n"
	for _, one := range []struct{ text, err string }{
		{"shop-1", `1:1: a fault is: ACTOR VERB ANCHOR [WORD DURATION], for example "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s"`},
		{"  shop-1 crashes", "1:3: a fault is: ACTOR VERB ANCHOR"},
		{"shop-1 crashes # callback(A)#1/COMMIT:before", "1:1: a fault is: ACTOR VERB ANCHOR"},
		{crash + "\n# fine\n\tshop-1 stalls", "4:2: a fault is: ACTOR VERB ANCHOR"},
		{"shop-1 explodes now", `1:8: unknown verb "explodes": a node crashes or stalls, the network drops, delays or duplicates`},
		{"shop-1 Crashes a:before restarts 2s", `1:8: unknown verb "Crashes"`},
		{`shop-1 "" a:before`, `1:8: unknown verb ""`},
		{"shop-1 drops callback(A)#1", `1:1: only the network drops, not "shop-1"`},
		{crash + " shop-1 delays callback(A)#1 by 2s", `2:2: only the network delays, not "shop-1"`},
		{"shop-1 crashes callback(A)#1/COMMIT restarts 2s", "1:16: a step's name ends in :before or :after"},
		{"network stalls callback(A)#1 for 2s", "1:16: a step's name ends in :before or :after"},
		{"shop-1 crashes a:before", `1:16: "a:before" must be followed by "restarts" and a duration, for example restarts 2s`},
		{"shop-1 crashes a:before restarts", `1:25: "a:before" must be followed by "restarts"`},
		{"shop-1 crashes a:before for 2s", `1:25: "a:before" must be followed by "restarts"`},
		{"shop-1 stalls a:after restarts 2s", `1:23: "a:after" must be followed by "for"`},
		{"network delays callback(A)#1 by 2s or so", `1:30: "callback(A)#1" must be followed by "by"`},
		{"network drops callback(A)#1 twice", `1:29: "twice" is too much here`},
		{"network delays callback(A)#1 by 2", `1:33: "2" is not a duration such as 2s or 150ms`},
		{"network delays callback(A)#1 by -2s", `1:33: "-2s" is not a duration`},
		{"network delays callback(A)#1 by soon", `1:33: "soon" is not a duration`},
		{"network delays callback(A)#1 by 9999999h", `1:33: "9999999h" is not a duration`},
		{"network duplicates callback(A)#1:answer after 2s", "1:20: only a request can be duplicated, not an answer"},
		{`shop-1 crashes "UPDATE orders:before restarts 2s`, "1:16: the quote is never closed"},
		{`network drops "callback(A)"#1`, "1:28: a blank must follow a quoted word"},
		{`network drops "a\z"`, "1:15: the quote is never closed, or has an escape that Go does not know"},
		{crash + crash + "\r\n\r\nnetwork drops\r\n" + crash, "5:1: a fault is"},
	} {
		plan, err := ParsePlan(one.text)
		assert.ErrorContains(t, err, one.err, one.text)
		assert.Nil(t, plan, one.text)
	}
}

var position = regexp.MustCompile(`^[1-9]\d*:[1-9]\d*: .`)

func FuzzParsePlan(f *testing.F) {
	for _, text := range []string{
		"", "#", "\"", "shop-1", "\"\" \"\" \"\"", "network drops \"a\\xff\\n\"", "network delays a by 1ns # late", "a crashes b:before restarts 1h2m3.4s",
		"network duplicates callback(A)#1 after 5ms\nshop-1 stalls \"UPDATE orders(A)#2:after\" for 0\n", "a\tb\rc\nd e f g h i", "é stalls 世界:after for 1µs",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := ParsePlan(text)
		if err != nil {
			require.Regexp(t, position, err.Error())
			return
		}
		again, err := ParsePlan(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan, again)
	})
}

func TestEveryKindHasItsWords(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []Kind{Crash, Stall, Drop, Delay, Duplicate} {
		require.Contains(t, Kinds(), kind)
		line := Perturbation{Kind: kind, At: "node/task:before"}.String()
		assert.NotContains(t, line, "unknown")
		assert.Equal(t, kind.ofMessage(), strings.HasPrefix(line, "network  "), line)
		for _, words := range []string{kind.Describe(), strings.Fields(line)[1]} {
			assert.NotEmpty(t, words, kind)
			assert.False(t, seen[words], words)
			seen[words] = true
		}
	}
	assert.Len(t, Kinds(), 5)
	assert.Contains(t, Perturbation{Kind: "flood", At: "x"}.String(), `unknown perturbation "flood"`)
	assert.Empty(t, Kind("flood").Describe())
}
