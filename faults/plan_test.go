package faults

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// One line of each kind, as they are written in incident files.
const everyKind = `network  drops  callback(A)#1:answer
network  duplicates  callback(A)#1  after 0s
network  delays  create(#1)#1  by 1h0m0s
network  answers-late  callback(A)#1:answer  by 150ms
network  reorders  "#1"  within 5s
network  resets  query(A)#3
network  parts  shop-1<>wechat  from 1m30s  for 20s
network  cuts  shop-1>wechat  from 0s  for 20s
network  clogs  wechat>shop-1  by 300ms  from 1m0s  for 2m0s
shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s
shop-1  crash-loops  callback(A)#1/COMMIT:before  restarts 2s  times 3
shop-1  stays-down  callback(A)#1/COMMIT:before  for 5m0s
shop-1  pauses  "close-scan@14:15:00.000/acquire scan:after"  for 40s
shop-1  stalls  "close-scan@14:15:00.000/UPDATE orders(A)#2:after"  for 1.5ms
shop-1  finds-locked  callback(A)#1/BEGIN:before
shop-1  fails  callback(A)#1/InsertPaymentRecord:before
shop-1  loses-connection  callback(A)#1/COMMIT:after
database  slows  shop  by 200ms  from 10s  for 1m0s
database  fills  shop  from 10s  for 1m0s
clock  skews  shop-1  by -2m0s  for 15m0s
clock  drifts  shop-1  ppm -400  for 15m0s
clock  jumps  shop-2  by -1.5s  from 3m0s  for 15m0s
clock  moves  shop-2  to America/New_York
wechat  loses-reply  A  at /prepay  times 2
wechat  errs  A  at /query  times 1
wechat  limits  A  at /close  times 100
wechat  settles-late  A  by 2m0s
wechat  lags  A  for 2s
wechat  hides  A  for 30s
wechat  tells-at-close  A
wechat  repeats  A  times 2
wechat  disorders  A  by 1m0s
wechat  keeps-silent  A
wechat  conceals-charge  A
wechat  sends-at-most  A  times 1
wechat  names-no-trade  A
wechat  declines-first  A
wechat  upsets-refund  A  after 1m0s
wechat  closes-refund  A  after 1m0s
wechat  delays-bill  2026-03-01  by 3h0m0s
wechat  omits-row  A
wechat  invents-row  A  cents 19800
wechat  misstates-row  A  cents 200
wechat  misfiles-row  A  in order
wechat  omits-refund  A
wechat  invents-refund  A  cents 19800
wechat  misstates-refund  A  cents 200
wechat  misfiles-refund  A  in currency
alipay  numbers  B  as A
broker  loses  close(A)#1
broker  repeats-message  close(A)#1  after 1s
leases  forgets  "expired close(A)#1"
shop-1  loses-lease  "close-scan@14:15:00.000/acquire scan:before"  after 3s
shop-2  shares-lease  "close-scan@14:15:00.000/acquire scan:before"
operator  deletes  shop/payment_records/A  from 30m0s
operator  edits  shop/payment_records/A  cents 100  from 30m0s
`

func TestPlanText(t *testing.T) {
	plan, err := ParsePlan(everyKind)
	require.NoError(t, err)
	assert.Equal(t, everyKind, plan.String())
	var have []Kind
	for _, p := range plan {
		have = append(have, p.Kind)
	}
	assert.Equal(t, Kinds(), have, "in the order of the docs")

	for want, i := range map[Perturbation]int{
		{Kind: Drop, At: "callback(A)#1:answer"}:                                                                   0,
		{Kind: Clog, At: "wechat>shop-1", By: 300 * ms, From: minute, For: 2 * minute}:                             8,
		{Kind: CrashLoop, At: "shop-1/callback(A)#1/COMMIT:before", For: 2 * second, N: 3}:                         10,
		{Kind: Stall, At: "shop-1/close-scan@14:15:00.000/UPDATE orders(A)#2:after", For: 1500 * time.Microsecond}: 13,
		{Kind: Jump, At: "shop-2", By: -1500 * ms, From: 3 * minute, For: 15 * minute}:                             21,
		{Kind: UnknownOutcome, At: "wechat/A", Text: "/prepay", N: 2}:                                              23,
		{Kind: RowEdited, At: "shop/payment_records/A", N: 100, From: 30 * minute}:                                 55,
	} {
		assert.Equal(t, want, plan[i])
	}

	again, err := ParsePlan("# what went wrong\r\n\n" + strings.ReplaceAll(everyKind, "\n", "  # so it did\r\n\t\n"))
	require.NoError(t, err)
	assert.Equal(t, plan, again)
}

// names are names of all kinds, also such as no sane system has, without some letters.
func names(without string) *rapid.Generator[string] {
	awkward := rapid.StringOfN(rapid.RuneFrom([]rune(" \t\r\n\v\f\"'`\\#/:()@+-.=,;<>\x00\x7f\u00a0\u2028\u200fé世😀")), 0, 12, -1)
	raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes")) })
	any := rapid.OneOf(awkward, raw, rapid.String(), rapid.StringMatching(`[a-z]{1,6}\([A-Z]\)#[1-9]/[A-Z a-z]{1,12}`))
	return rapid.Map(any, func(name string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(without, r) {
				return -1
			}
			return r
		}, name)
	})
}

// anchorOf draws the name of something that the kind can strike.
func anchorOf(t *rapid.T, s *spec) string {
	name := names("").Draw(t, "name")
	switch s.anchor {
	case atStep:
		return names("/").Draw(t, "node") + "/" + name + rapid.SampledFrom([]string{":before", ":after"}).Draw(t, "phase")
	case atMessage:
		switch s.name {
		case LateAnswer:
			return name + ":answer"
		case Delay, Duplicate:
			return strings.TrimSuffix(name, ":answer")
		}
	case atWay:
		ends := names("<>")
		return "a" + ends.Draw(t, "from") + map[bool]string{true: "<>", false: ">"}[s.name == Partition] + "b" + ends.Draw(t, "to")
	case atDay:
		return names("/").Draw(t, "channel") + "/" + time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "day"), 0).Format(time.DateOnly)
	case atTrade:
		return names("/").Draw(t, "channel") + "/" + name
	case atRow:
		part := names("/")
		return part.Draw(t, "database") + "/" + part.Draw(t, "table") + "/" + part.Draw(t, "order")
	}
	return name
}

func perturbations(s *spec) *rapid.Generator[Perturbation] {
	return rapid.Custom(func(t *rapid.T) Perturbation {
		p := Perturbation{Kind: s.name, At: anchorOf(t, s)}
		for _, one := range s.params {
			if one.field == fieldText {
				p.Text = names("").Draw(t, "text")
				if choices := s.choices; len(choices) > 0 {
					p.Text = rapid.SampledFrom(choices).Draw(t, "choice")
				}
				continue
			}
			number := rapid.Int64Range(one.least, one.most).Filter(func(n int64) bool { return n != 0 || one.least == 0 }).Draw(t, one.word)
			if one.field == fieldN {
				p.N = number
			} else {
				*p.duration(one.field) = time.Duration(number)
			}
		}
		return p
	})
}

func TestPlanTextRoundTrip(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				plan := Plan(rapid.SliceOfNDistinct(perturbations(kind.spec()), 1, 3, rapid.ID).Draw(t, "plan"))
				parsed, err := ParsePlan(plan.String())
				require.NoError(t, err, plan.String())
				require.Equal(t, plan, parsed, plan.String())
				require.Equal(t, len(plan), strings.Count(plan.String(), "\n"), "one line for each")
			})
		})
	}
}

func TestParseErrors(t *testing.T) {
	const crash = "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s\n"
	for _, one := range []struct{ text, err string }{
		{"shop-1", `1:1: a fault is: ACTOR VERB ANCHOR [WORD VALUE]..., for example "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s"`},
		{"  shop-1 crashes", "1:3: a fault is: ACTOR VERB ANCHOR"},
		{"shop-1 crashes # callback(A)#1/COMMIT:before", "1:1: a fault is: ACTOR VERB ANCHOR"},
		{crash + "\n# fine\n\tshop-1 stalls", "4:2: a fault is: ACTOR VERB ANCHOR"},
		{crash + "\r\n\r\nnetwork drops\r\n" + crash, "4:1: a fault is"},

		{"shop-1 explodes now", `1:8: unknown verb "explodes"; 'tillstorm faults' lists all`},
		{"shop-1 crash a:before restarts 2s", `1:8: unknown verb "crash", do you mean "crashes"?; 'tillstorm faults' lists all`},
		{"shop-1 finds-lockd a:before", `1:8: unknown verb "finds-lockd", do you mean "finds-locked"?`},
		{"shop-1 Stalls a:before", `1:8: unknown verb "Stalls", do you mean "stalls"?`},
		{"network repeat-messages a", `1:9: unknown verb "repeat-messages", do you mean "repeats-message"?`},
		{`shop-1 "" a:before`, `1:8: unknown verb ""; 'tillstorm faults' lists all`},

		{"shop-1 drops callback(A)#1", `1:1: only the network drops, not "shop-1"`},
		{"network loses close(A)#1", `1:1: only the broker loses, not "network"`},
		{"shop slows shop by 1s from 0s for 1s", `1:1: only the database slows, not "shop"`},
		{"shop-1 skews shop-1 by 1s for 1s", `1:1: only the clock skews, not "shop-1"`},
		{"shop deletes payment_records/A from 1s", `1:1: only the operator deletes, not "shop"`},

		{"shop-1 crashes callback(A)#1/COMMIT restarts 2s", "1:16: a step's name ends in :before or :after"},
		{"shop-1 fails callback(A)#1:answer", "1:14: a step's name ends in :before or :after"},
		{"network answers-late callback(A)#1 by 2s", "1:22: an answer's name ends in :answer; a request is delayed"},
		{"network duplicates callback(A)#1:answer after 2s", "1:20: only a request can be duplicated, not an answer"},
		{"network delays callback(A)#1:answer by 2s", "1:16: only a request is delayed; an answer answers-late"},
		{"network parts shop-1>wechat from 0s for 1s", "1:15: a way is NODE>NODE, and of a partition NODE<>NODE, for example shop-1<>wechat"},
		{"network cuts shop-1<>wechat from 0s for 1s", "1:14: a way is NODE>NODE"},
		{"network clogs shop-1 by 1s from 0s for 1s", "1:15: a way is NODE>NODE"},
		{"network cuts shop-1> from 0s for 1s", "1:14: a way is NODE>NODE"},
		{"network cuts >shop-1 from 0s for 1s", "1:14: a way is NODE>NODE"},
		{"network parts <>shop-1 from 0s for 1s", "1:15: a way is NODE>NODE"},
		{"operator deletes payment_records/A from 0s", "1:18: a row is DATABASE/TABLE/ORDER, for example shop/payment_records/A"},
		{"operator edits shop/payment_records/A/1 cents 1 from 0s", "1:16: a row is DATABASE/TABLE/ORDER"},

		{"shop-1 crashes a#1/COMMIT:before", `1:16: "a#1/COMMIT:before" must be followed by "restarts" and a duration, for example restarts 2s`},
		{"shop-1 crashes a#1/COMMIT:before restarts", `1:34: "a#1/COMMIT:before" must be followed by "restarts" and a duration`},
		{"shop-1 crashes a#1/COMMIT:before for 2s", `1:34: "a#1/COMMIT:before" must be followed by "restarts"`},
		{"shop-1 crash-loops a:before restarts 2s", `1:38: "2s" must be followed by "times" and a number, for example times 3`},
		{"shop-1 crash-loops a:before times 3 restarts 2s", `1:29: "a:before" must be followed by "restarts"`},
		{"network cuts a>b from 1m", `1:23: "1m" must be followed by "for" and a duration, for example for 2s`},
		{"clock moves shop-1 UTC", `1:20: "shop-1" must be followed by "to" and a name`},
		{"network drops callback(A)#1 twice", `1:29: "twice" is too much here`},
		{"wechat tells-at-close A for 2s", `1:25: "for" is too much here`},
		{"network cuts a>b from 1m for 1m for 1m", `1:33: "for" is too much here`},

		{"network delays callback(A)#1 by 2", `1:33: "2" is not a duration such as 2s or 150ms`},
		{"network delays callback(A)#1 by soon", `1:33: "soon" is not a duration`},
		{"network delays callback(A)#1 by 9999999h", `1:33: "9999999h" is not a duration`},
		{"network delays callback(A)#1 by -2s", `1:33: by is 1ns to 24h, not "-2s"`},
		{"network clogs a>b by -2s from 0s for 1s", `1:22: by is 1ns to 24h, not "-2s"`},
		{"clock skews shop-1 by -2s for -1s", `1:31: for is 1ns to 24h, not "-1s"`},
		{"clock jumps shop-1 by -2s from -1s for 1s", `1:32: from is 0s to 168h, not "-1s"`},
		{"clock drifts shop-1 ppm 1.5 for 1s", `1:25: "1.5" is not a whole number`},
		{"shop-1 crash-loops a:before restarts 2s times -1", `1:47: times is 1 to 100, not "-1"`},
		{"wechat errs A at /query times 99999999999999999999", `1:31: "99999999999999999999" is not a whole number`},

		{"shop-1 crash-loops a:before restarts 2s times 0", `1:47: times is 1 to 100, not "0"`},
		{"shop-1 crash-loops a:before restarts 2s times 100000", `1:47: times is 1 to 100, not "100000"`},
		{"shop-1 crashes a:before restarts 25h", `1:34: restarts is 0s to 24h, not "25h"`},
		{"shop-1 stalls a:before for 0s", `1:28: for is 1ns to 24h, not "0s"`},
		{"network reorders a within 0s", `1:27: within is 1ns to 24h, not "0s"`},
		{"clock drifts shop-1 ppm -2000000 for 1s", `1:25: ppm is -100000 to 100000 and not 0, not "-2000000"`},
		{"clock drifts shop-1 ppm 0 for 1s", `1:25: ppm is -100000 to 100000 and not 0, not "0"`},
		{"clock skews shop-1 by 2000000h for 1s", `1:23: by is -168h to 168h and not 0, not "2000000h"`},
		{"clock jumps shop-1 by 0s from 1s for 1s", `1:23: by is -168h to 168h and not 0, not "0s"`},
		{"network cuts a>b from 169h for 1s", `1:23: from is 0s to 168h, not "169h"`},
		{"wechat settles-late A by 40h", `1:26: by is 1ms to 24h, not "40h"`},
		{"wechat lags A for 1us", `1:19: for is 1ms to 24h, not "1us"`},
		{"wechat misstates-row A cents 0", `1:30: cents is 1 to 100000000000, not "0"`},
		{"operator edits shop/orders/A cents 0 from 1s", `1:36: cents is -100000000000 to 100000000000 and not 0, not "0"`},

		{"clock moves shop-1 to Mars/Base", `1:23: unknown zone "Mars/Base"; there are those of the time zone database, such as America/New_York, UTC, Asia/Tokyo`},
		{"clock moves shop-1 to Local", `1:23: unknown zone "Local"`},
		{`clock moves shop-1 to ""`, `1:23: unknown zone ""`},
		{"wechat errs A at /pay times 1", `1:18: unknown path "/pay"; there are /prepay, /query, /close, /refund`},
		{"wechat delays-bill 2026-02-31 by 2h", `1:20: "2026-02-31" is not a day such as 2026-03-02`},
		{"wechat delays-bill today by 2h", `1:20: "today" is not a day`},
		{"network cuts a>a from 0s for 1s", "1:14: a way has two ends, and these are one"},
		{"network parts a<>a from 0s for 1s", "1:15: a way has two ends, and these are one"},
		{crash + "network drops a\n # so\n  " + crash, "4:3: this fault stands here a second time"},
		{"shop-1 stalls a:before for 60s\nshop-1 stalls a:before for 1m # again", "2:1: this fault stands here a second time"},

		{`shop-1 crashes "UPDATE orders:before restarts 2s`, "1:16: the quote is never closed"},
		{`network drops "callback(A)"#1`, "1:28: a blank must follow a quoted word"},
		{`network drops "a\z"`, "1:15: the quote is never closed, or has an escape that Go does not know"},
	} {
		plan, err := ParsePlan(one.text)
		if assert.Error(t, err, one.text) {
			assert.Truef(t, strings.HasPrefix(err.Error(), one.err), "%s\nwant: %s\ngot:  %s", one.text, one.err, err)
		}
		assert.Nil(t, plan, one.text)
	}
}

// What lacks a word that its kind needs is refused, whichever kind it is.
func TestEveryWordIsNeeded(t *testing.T) {
	for line := range strings.Lines(everyKind) {
		words := strings.Split(strings.TrimSpace(line), "  ")
		for n := range words {
			_, err := ParsePlan(strings.Join(slices.Concat(words[:n], words[n+1:]), " "))
			assert.Error(t, err, "%q without %q", line, words[n])
		}
		_, err := ParsePlan(strings.TrimSpace(line) + " for 2s")
		assert.ErrorContains(t, err, `"for" is too much here`, line)
	}
}

var position = regexp.MustCompile(`^[1-9]\d*:[1-9]\d*: .`)

func FuzzParsePlan(f *testing.F) {
	for _, text := range []string{
		everyKind,
		"", "#", "\"", "shop-1", "\"\" \"\" \"\"", "network drops \"a\\xff\\n\"", "network delays a by 1ns # late", "a crashes b:before restarts 1h2m3.4s",
		"network duplicates callback(A)#1 after 5ms\nshop-1 stalls \"UPDATE orders(A)#2:after\" for 0\n", "a\tb\rc\nd e f g h i", "é stalls 世界:after for 1µs",
		"clock jumps \"\" by -1ns from 0 for 1s\nnetwork parts a<>b>c<>d from 0 for 1s", "operator edits // cents -1 from 0",
	} {
		f.Add(text)
	}
	for line := range strings.Lines(everyKind) {
		f.Add(line)
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
	seen := map[string]Kind{}
	for _, kind := range Kinds() {
		s := kind.spec()
		for _, words := range []string{string(kind), s.verb, kind.Describe()} {
			assert.NotEmpty(t, words, kind)
			assert.Empty(t, seen[words], "%q of %s", words, kind)
			seen[words] = kind
		}
		assert.Same(t, s, specOfVerb(s.verb))
		ways := 0
		for _, one := range []bool{s.strike != nil, s.pass != nil, s.way != nil, s.clock != nil} {
			ways += map[bool]int{true: 1}[one]
		}
		byHands := s.anchor == atTrade || s.anchor == atDay || s.anchor == atRow
		assert.Equal(t, !byHands, ways == 1, "%s does one thing, or hands do it", kind)
		assert.Equal(t, byHands, ways == 0, kind)
	}
	assert.Contains(t, Perturbation{Kind: "flood", At: "x"}.String(), `unknown perturbation "flood"`)
	assert.Empty(t, Kind("flood").Describe())
	assert.Empty(t, Kind("flood").Form())
}

func TestForms(t *testing.T) {
	for kind, form := range map[Kind]string{
		Drop: "network drops MESSAGE", Partition: "network parts NODE<>NODE from DURATION for DURATION", OneWay: "network cuts NODE>NODE from DURATION for DURATION",
		CrashLoop: "NODE crash-loops STEP restarts DURATION times NUMBER", Full: "database fills DATABASE from DURATION for DURATION",
		Zone: "clock moves NODE to ZONE", RateLimit: "CHANNEL limits TRADE at PATH times NUMBER", LateSettlement: "CHANNEL settles-late TRADE by DURATION",
		BillLate: "CHANNEL delays-bill DAY by DURATION", SameNumber: "CHANNEL numbers TRADE as TRADE",
		RowEdited: "operator edits DATABASE/TABLE/ORDER cents NUMBER from DURATION",
	} {
		assert.Equal(t, form, kind.Form())
	}
}

// Whoever knows the names of a world is asked about those in a plan, and a plan on top of
// another repeats none of its lines.
func TestParseKnown(t *testing.T) {
	asked := map[NameOf][]string{}
	plan, err := ParseKnown(everyKind, nil, func(_ Kind, n Name) string {
		if !slices.Contains(asked[n.Of], n.Text) {
			asked[n.Of] = append(asked[n.Of], n.Text)
		}
		return ""
	})
	require.NoError(t, err)
	assert.Equal(t, map[NameOf][]string{
		OfNode: {"shop-1", "shop-2"}, OfWayEnd: {"shop-1", "wechat"}, OfDatabase: {"shop"}, OfChannel: {"wechat", "alipay"},
		OfTrade: {"A", "B"}, OfRow: {"shop/payment_records/A"}, OfKey: {"A", "#1"},
	}, asked)

	for line, place := range map[string]string{
		"x crashes a/b:before restarts 1s": "1:1", "clock skews x by 1s for 1s": "1:13", "x errs A at /query times 1": "1:1", "wechat numbers A as x": "1:21",
	} {
		_, err := ParseKnown(line, nil, func(_ Kind, n Name) string {
			if n.Text == "x" {
				return "no x"
			}
			return ""
		})
		assert.EqualError(t, err, place+": no x")
	}
	_, err = ParseKnown("# again\nwechat tells-at-close A", plan, nil)
	assert.EqualError(t, err, "2:1: this fault stands here a second time")
}

// What a profile draws is within what a plan may say.
func TestProfilesDrawWithinBounds(t *testing.T) {
	for _, profile := range Profiles() {
		for _, o := range profile.Odds {
			for _, one := range o.Kind.spec().params {
				most := map[field]int64{fieldFor: int64(o.For.Max), fieldBy: int64(o.By.Max), fieldN: o.N[1]}[one.field]
				assert.LessOrEqual(t, most, one.most, "%s %s", o.Kind, one.word)
				least := map[field]int64{fieldFor: int64(o.For.Min), fieldBy: int64(o.By.Min), fieldN: o.N[0]}[one.field]
				if least != 0 { // else it lasts until the storm ends, or is drawn otherwise
					assert.GreaterOrEqual(t, least, one.least, "%s %s", o.Kind, one.word)
				}
			}
		}
	}
}

// Only what delays has a weight: how long it does.
func TestWeight(t *testing.T) {
	plan, err := ParsePlan("network delays create(A)#1 by 2s\nnetwork answers-late create(A)#1:answer by 3s\nshop-1 stalls create(A)#1/BEGIN:before for 4s\n" +
		"shop-1 pauses create(A)#1/BEGIN:before for 5s\nnetwork reorders create(A)#1 within 6s\nnetwork duplicates create(A)#1 after 7s\nnetwork drops create(A)#1")
	require.NoError(t, err)
	for i, weight := range []time.Duration{2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second, forEver, forEver} {
		assert.Equal(t, weight, plan[i].Weight(), plan[i].String())
	}
}

func TestNearest(t *testing.T) {
	known := []string{"late-success-ignored", "recon-first-page", "recon-one-sided", "books-first-page"}
	assert.Equal(t, []string{"recon-first-page", "books-first-page"}, Nearest("first-page", known, 2))
	assert.Equal(t, []string{"recon-one-sided", "recon-first-page"}, Nearest("recno-one-side", known, 2))
	assert.Equal(t, known, Nearest("", known, 9))
}

var placeholderWord = regexp.MustCompile(`[A-Z]+(?:[<>/]+[A-Z]+)*`)

// Every word that stands for something in a form is explained, by a line of a kind whose form
// has it.
func TestPlaceholders(t *testing.T) {
	explained := map[string]bool{}
	for _, p := range Placeholders() {
		plan, err := ParsePlan(p.Example)
		require.NoError(t, err)
		assert.Contains(t, placeholderWord.FindAllString(plan[0].Kind.Form(), -1), p.Word, p.Example)
		assert.False(t, explained[p.Word], "%s is explained twice", p.Word)
		explained[p.Word] = true
	}
	for _, kind := range Kinds() {
		for _, word := range placeholderWord.FindAllString(kind.Form(), -1) {
			assert.True(t, explained[word], "%s in %q", word, kind.Form())
		}
	}
}
