package scenarios

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FormatIncident returns an incident file's text in its canonical layout, comments
// included. The errors are those of [ParseIncident], but tabs and carriage returns are no
// error here: they go.
func FormatIncident(name, text string) (string, error) {
	text = plainText(text)
	if _, err := ParseIncident(name, text); err != nil {
		return "", err
	}
	return readDocument(text).String(), nil
}

// String returns the incident as the text of a file.
func (x *Incident) String() string {
	d := document{story: x.Story, sections: []section{
		{name: word{text: "setup"}, lines: x.setupLines()},
		{name: word{text: "timeline"}, lines: x.timelineLines()},
		{name: word{text: "faults"}, lines: x.faultLines()},
		{name: word{text: "expect"}, lines: x.expectLines()},
	}}
	d.sections = slices.DeleteFunc(d.sections, func(s section) bool { return len(s.lines) == 0 })
	return d.String()
}

// say is a line of these words.
func say(texts ...string) textLine {
	var l textLine
	for _, text := range texts {
		l.words = append(l.words, word{text: text})
	}
	return l
}

func (x *Incident) setupLines() (lines []textLine) {
	if !x.Start.IsZero() {
		lines = append(lines, say("start", x.Start.In(zone).Format("2006-01-02"), shortClock(x.Start.In(zone))))
	}
	for _, one := range policyLines {
		if value := one.get(x.Policy); value != "" {
			lines = append(lines, say("policy", one.name, value))
		}
	}
	for _, s := range x.Shop {
		lines = append(lines, say("shop", s.Name, s.Value))
	}
	for _, c := range x.Channels {
		words := []string{"channel", c.Name}
		for _, s := range c.Settings {
			words = append(words, s.Name, s.Value)
		}
		lines = append(lines, say(words...))
	}
	for _, sku := range slices.Sorted(maps.Keys(x.Stock)) {
		lines = append(lines, say("stock", sku, strconv.FormatInt(x.Stock[sku], 10)))
	}
	for _, o := range x.Orders {
		lines = append(lines, say(x.orderWords(o)...))
	}
	for _, c := range x.Clocks {
		lines = append(lines, say(c.words()...))
	}
	for _, m := range x.MustFail {
		lines = append(lines, say("must-fail", m.Defect, m.Property))
	}
	return lines
}

func (x *Incident) orderWords(o NumberedOrder) []string {
	words := append([]string{"order", o.Number}, amountWords(o.Cents)...)
	if o.SKU != "" {
		words = append(words, "sku", o.SKU)
	}
	if o.Quantity > 1 {
		words = append(words, "quantity", strconv.FormatInt(o.Quantity, 10))
	}
	if o.Channel != channelNames[0] {
		words = append(words, "channel", o.Channel)
	}
	created := slices.IndexFunc(x.Operations, func(op Operation) bool { return op.Verb == Creates && op.Order == o.Number })
	if x.PayWindow != 0 && created >= 0 {
		words = append(words, "expires", x.clockText(arrives(x.Operations[created].At)+x.PayWindow))
	}
	return words
}

// timelineLines returns stimuli, hands and pins in the order of time.
func (x *Incident) timelineLines() (lines []textLine) {
	type timed struct {
		at   time.Duration
		line textLine
	}
	var all []timed
	add := func(at time.Duration, words ...string) {
		all = append(all, timed{at, say(append([]string{x.clockText(at)}, words...)...)})
	}
	for i, op := range x.Operations {
		add(arrives(op.At), x.operationWords(op, x.Operations[:i])...)
	}
	for _, h := range x.Hands {
		add(h.At, h.words()...)
	}
	for _, p := range x.Pins {
		add(p.At, strings.Fields(p.String())...)
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	for _, one := range all {
		lines = append(lines, one.line)
	}
	return lines
}

func (x *Incident) operationWords(op Operation, before []Operation) []string {
	verb := timelineVerbs[slices.IndexFunc(timelineVerbs, func(v timelineVerb) bool { return v.verb == op.Verb })]
	words := []string{verb.actor, string(verb.verb), op.Order}
	if verb.write != nil {
		words = append(words, verb.write(x, op, before)...)
	}
	if op.On != "" {
		words = append(words, onWord, op.On)
	}
	return words
}

// words returns the hand as a line has it, after its time.
func (h Hand) words() []string {
	words := []string{operatorActor, handVerbs[0], h.What, h.Order}
	if !h.Edits {
		return words
	}
	words[1] = handVerbs[1]
	amount := amountWords(max(h.Cents, -h.Cents))
	if h.Cents < 0 {
		amount[0] = "-" + amount[0]
	}
	return append(append(words, "by"), amount...)
}

// words returns the line of the setup.
func (c ClockSetup) words() []string {
	switch {
	case c.Zone != "":
		return []string{"zone", c.Node, c.Zone}
	case c.Ahead < 0:
		return []string{"clock", c.Node, "behind", (-c.Ahead).String()}
	}
	return []string{"clock", c.Node, "ahead", c.Ahead.String()}
}

func (x *Incident) expectLines() (lines []textLine) {
	for _, e := range x.Expect {
		lines = append(lines, say(x.expectWords(e)...))
	}
	return lines
}

func (x *Incident) faultLines() (lines []textLine) {
	for line := range strings.Lines(x.Faults.String()) {
		lines = append(lines, splitLine(0, strings.TrimSuffix(line, "\n")))
	}
	return lines
}

// clockText returns a time as a file has it: with a date where it is not the first
// day.
func (x *Incident) clockText(at time.Duration) string {
	start := x.start().In(zone)
	when := start.Add(at)
	if when.Format(time.DateOnly) == start.Format(time.DateOnly) {
		return shortClock(when)
	}
	return when.Format("2006-01-02T") + shortClock(when)
}

// shortClock returns a time of day to the millisecond, or to the microsecond if it
// must.
func shortClock(at time.Time) string {
	if at.Nanosecond()%int(time.Millisecond) == 0 {
		return at.Format("15:04:05.000")
	}
	return at.Format("15:04:05.000000")
}
