package scenarios

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
)

// incidents are incidents of all kinds that a file can say.
func incidents() *rapid.Generator[*Incident] {
	return rapid.Custom(func(t *rapid.T) *Incident {
		x := &Incident{Name: "drawn.txtar", Story: rapid.SampledFrom([]string{"", "# A", "# A\n#\n\n# B -- c --"}).Draw(t, "story")}
		if rapid.Bool().Draw(t, "own start") {
			x.Start = usualStart.Add(time.Duration(rapid.Int64Range(0, 40*24*3600*1e6).Draw(t, "start")) * time.Microsecond)
		}
		for _, one := range policyLines {
			if rapid.Bool().Draw(t, "policy "+one.name) {
				one.set(&x.Policy, rapid.SampledFrom(one.values).Draw(t, one.name))
			}
		}
		if rapid.Bool().Draw(t, "own window") {
			x.PayWindow = time.Duration(rapid.Int64Range(1e6, 3600*1e6).Draw(t, "window")) * time.Microsecond
		}
		x.Stock = rapid.MapOfN(rapid.SampledFrom([]string{"S1", "S7", "S99"}), rapid.Int64Range(1, maxStock), 0, 3).Draw(t, "stock")
		if len(x.Stock) == 0 {
			x.Stock = nil
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "orders") {
			x.Orders = append(x.Orders, drawOrder(t, x, orderName(i*9)))
		}
		for _, property := range rapid.SliceOfN(rapid.SampledFrom(checker.Properties()), 0, 2).Draw(t, "must fail") {
			x.MustFail = append(x.MustFail, MustFail{Defect: fmt.Sprint("defect-", len(x.MustFail)), Property: property.Name})
		}
		drawOperations(t, x)
		x.Faults = drawFaults(t)
		drawPins(t, x)
		drawSetup(t, x)
		drawExpectations(t, x)
		return x
	})
}

func drawOrder(t *rapid.T, x *Incident, number string) NumberedOrder {
	o := NumberedOrder{number, Order{Cents: rapid.Int64Range(1, 99_999_999_999).Draw(t, "cents"), Channel: rapid.SampledFrom(channelNames).Draw(t, "channel")}}
	if rapid.Bool().Draw(t, "with stock") {
		known := append(slices.Sorted(maps.Keys(x.Stock)), "S2")
		o.SKU, o.Quantity = rapid.SampledFrom(known).Draw(t, "sku"), rapid.Int64Range(1, 9).Draw(t, "quantity")
	}
	return o
}

func drawOperations(t *rapid.T, x *Incident) {
	at := time.Duration(0)
	add := func(op Operation) {
		x.Operations = append(x.Operations, op)
		at += time.Duration(rapid.Int64Range(0, 8*3600*1e6).Draw(t, "later")) * time.Microsecond
	}
	for _, o := range x.Orders {
		add(Operation{At: at, Verb: Creates, Order: o.Number})
	}
	for range rapid.IntRange(0, 12).Draw(t, "operations") {
		o := rapid.SampledFrom(x.Orders).Draw(t, "order")
		op := Operation{At: at, Verb: rapid.SampledFrom(timelineVerbs).Draw(t, "verb").verb, Order: o.Number}
		switch op.Verb {
		case Attempts:
			op.Channel = rapid.SampledFrom(channelNames).Draw(t, "channel")
		case Pays, Leaves:
			op.Channel, op.Attempt = rapid.SampledFrom(channelNames).Draw(t, "channel"), rapid.IntRange(1, 3).Draw(t, "attempt")
		case Refunds:
			op.Cents = rapid.SampledFrom([]int64{1, 5_00, o.Cents}).Draw(t, "cents")
			op.Number = rapid.SampledFrom([]string{"", "A-r1", "one"}).Draw(t, "number")
		case Creates:
			op.Other.Cents = rapid.SampledFrom([]int64{0, 1, o.Cents}).Draw(t, "other cents")
			op.Other.Currency = rapid.SampledFrom([]string{"", "JPY"}).Draw(t, "other currency")
			op.Other.SKU = rapid.SampledFrom([]string{"", "S1"}).Draw(t, "other sku")
			op.Other.Quantity = rapid.Int64Range(0, 2).Draw(t, "other quantity")
			op.Other.Channel = rapid.SampledFrom([]string{"", "alipay"}).Draw(t, "other channel")
		case Reads:
			op.View = rapid.SampledFrom(append(views, "")).Draw(t, "view")
		case Forges:
			op.Forgery = rapid.SampledFrom(forgeries).Draw(t, "forgery")
		}
		if op.Verb.shops() && op.Verb != Reads {
			if op.Key = rapid.SampledFrom([]string{"", "key", "a-1"}).Draw(t, "key"); op.Key != "" {
				op.Caller = rapid.SampledFrom([]string{"", "app", "web-2"}).Draw(t, "caller")
			}
		}
		add(op)
	}
}

// drawPins draws pins that contradict nothing: each of a verb of its own, after the order
// is there and, where it is paid, after that.
func drawPins(t *rapid.T, x *Incident) {
	at := time.Duration(0)
	for _, op := range x.Operations {
		at = max(at, arrives(op.At))
	}
	for _, v := range pinVerbs {
		if v.verb == "commits" || v.verb == "charges" || v.verb == "callback" || !rapid.Bool().Draw(t, "pin "+v.actor+" "+v.verb) {
			continue
		}
		p := Pin{At: at, Actor: v.actor, Verb: v.verb}
		if !v.noOrder {
			p.Order = rapid.SampledFrom(x.Orders).Draw(t, "order").Number
		}
		if words := v.words(); len(words) > 0 {
			p.What = rapid.SampledFrom(words).Draw(t, "what")
		}
		switch v.actor {
		case "stock", "channel":
		default:
			p.On = rapid.SampledFrom([]string{"", "shop-1", "shop-2"}).Draw(t, "on")
		}
		x.Pins = append(x.Pins, p)
		at += time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "later")) * time.Microsecond
	}
	if rapid.Bool().Draw(t, "a hand") {
		x.Hands = []Hand{{At: at, What: "record", Order: "A"}, {At: at, Edits: true, What: "order", Order: "A", Cents: rapid.SampledFrom([]int64{-5, 1_00}).Draw(t, "by")}}
	}
}

func drawSetup(t *rapid.T, x *Incident) {
	for _, s := range shopSettings {
		if s.name != "instances" && rapid.Bool().Draw(t, s.name) {
			x.Shop = append(x.Shop, Setting{s.name, s.example})
		}
	}
	if rapid.Bool().Draw(t, "channel") {
		c := ChannelSetup{Name: rapid.SampledFrom(channelNames).Draw(t, "name")}
		for _, s := range channelSettings {
			if rapid.Bool().Draw(t, s.name) {
				c.Settings = append(c.Settings, Setting{s.name, s.example})
			}
		}
		x.Channels = []ChannelSetup{c}
	}
	if rapid.Bool().Draw(t, "clock") {
		x.Clocks = []ClockSetup{{Node: "shop-1", Ahead: -20 * time.Second}, {Node: "shop-1", Zone: "America/New_York"}}
	}
}

func drawExpectations(t *rapid.T, x *Incident) {
	for i := range expectForms {
		f := &expectForms[i]
		if !rapid.Bool().Draw(t, string(f.subject)) {
			continue
		}
		var e Expectation
		e.Subject, e.About, e.Claim = f.subject, rapid.SampledFrom(x.Orders).Draw(t, "order").Number, checker.Happens
		if f.must || len(f.whats) > 0 && rapid.Bool().Draw(t, "what") {
			e.What = rapid.SampledFrom(f.whats).Draw(t, "which")
		}
		if f.states {
			e.Claim = rapid.SampledFrom([]checker.Claim{checker.Is, checker.Stays, checker.Happens}).Draw(t, "claim")
		}
		if e.Claim == checker.Happens {
			drawBounds(t, f, &e)
		}
		x.Expect = append(x.Expect, e)
	}
	if rapid.Bool().Draw(t, "levels") {
		var e Expectation
		e.Subject, e.About, e.Claim, e.Levels = checker.OfStock, "S1", checker.HasLevels, checker.Levels{Available: 7, Sold: 1}
		x.Expect = append(x.Expect, e)
	}
}

func drawBounds(t *rapid.T, f *expectForm, e *Expectation) {
	e.Count = rapid.IntRange(0, 3).Draw(t, "count")
	if f.amount {
		e.Cents = rapid.SampledFrom([]int64{0, 198_00}).Draw(t, "cents")
	}
	if f.status {
		e.Also, e.Equal = rapid.SampledFrom([]string{"", "200"}).Draw(t, "status"), rapid.Bool().Draw(t, "equal")
	}
	if rapid.Bool().Draw(t, "after") {
		e.After = time.Minute
	}
	switch rapid.IntRange(0, 2).Draw(t, "until") {
	case 1:
		e.By = time.Hour
	case 2:
		e.Within = 30 * time.Second
	}
}

// unplaced is an incident without the numbers of its lines.
func unplaced(x *Incident) *Incident {
	for i := range x.Pins {
		x.Pins[i].Line = 0
	}
	for i := range x.Expect {
		x.Expect[i].Line = 0
	}
	for i := range x.MustFail {
		x.MustFail[i].place = word{}
	}
	return x
}

func drawFaults(t *rapid.T) (plan faults.Plan) {
	for range rapid.IntRange(0, 3).Draw(t, "faults") {
		p := faults.Perturbation{Kind: faults.Drop, At: rapid.SampledFrom([]string{"callback(A)#1", "#1:answer", "a b"}).Draw(t, "message")}
		if rapid.Bool().Draw(t, "crash") {
			p = faults.Perturbation{Kind: faults.Crash, At: "shop-1/" + rapid.SampledFrom([]string{"x", "UPDATE orders", `"`}).Draw(t, "step") + ":after", For: time.Second}
		}
		if !slices.Contains(plan, p) {
			plan = append(plan, p)
		}
	}
	return plan
}

func TestIncidentRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := incidents().Draw(t, "incident")
		text := x.String()
		again, err := ParseIncident(x.Name, text)
		require.NoError(t, err, text)
		require.Equal(t, x, unplaced(again), text)
		canonical, err := FormatIncident(x.Name, text)
		require.NoError(t, err)
		require.Equal(t, text, canonical)
	})
}

// place begins every error: file:line:column: message.
var place = regexp.MustCompile(`^f:[1-9]\d*:[1-9]\d*: .`)

func FuzzParseIncident(f *testing.F) {
	files, err := filepath.Glob("incidents/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add(wholeIncident)
	drawn, err := Run(Draw(3, faults.Profiles()[0]), nil)
	require.NoError(f, err)
	f.Add(IncidentOf(drawn).String())
	f.Add("-- setup --\r\norder A 1.00 CNY\r\n-- timeline --\r\n14:00:00.000 buyer creates A # so\r\n-- faults --\r\n \" -- x --\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ParseIncident("f", text)
		if err != nil {
			require.Regexp(t, place, err.Error())
			return
		}
		again, err := ParseIncident("f", x.String())
		require.NoError(t, err)
		require.Equal(t, unplaced(x), unplaced(again))

		canonical, err := FormatIncident("f", text)
		require.NoError(t, err)
		formatted, err := ParseIncident("f", canonical)
		require.NoError(t, err, canonical)
		require.Equal(t, x, unplaced(formatted), canonical)
		unchanged, err := FormatIncident("f", canonical)
		require.NoError(t, err)
		require.Equal(t, canonical, unchanged)
	})
}
