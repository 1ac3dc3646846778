package faults

import (
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// Kind is what a perturbation does.
type Kind string

// Kinds returns the kinds in the order of the docs.
func Kinds() []Kind {
	names := make([]Kind, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return names
}

// Describe returns the kind's meaning in one sentence, "" for an unknown one.
func (k Kind) Describe() string {
	if s := k.spec(); s != nil {
		return s.sentence
	}
	return ""
}

// spec is all there is to know of one kind of perturbation.
type spec struct {
	name     Kind
	sentence string
	// As a line of text: ACTOR VERB ANCHOR [WORD VALUE]...
	actor  string // "" if the anchor's first part, up to a slash, is the actor
	verb   string
	anchor anchor
	params []param
	// choices are the texts that are drawn, where one is.
	choices []string

	// What it does, one of these; nil for what the hands of a world do.
	strike func(*sim.Strike, Perturbation)
	pass   func(*sim.Passage, Perturbation)
	way    func(*sim.Way, Perturbation)
	clock  func(*sim.NodeClock, Perturbation)

	// Where it could do something: at a step, to a message.
	fits        func(*sim.Step) bool
	fitsMessage func(*sim.Message) bool
	rare        bool // it fits few steps, and its rate is among those
}

// anchor is what a perturbation's name names.
type anchor string

const (
	atStep     anchor = "step"     // NODE/TASK#n/OPERATION:before|after
	atMessage  anchor = "message"  // KIND(KEY)#n, with :answer for an answer
	atWay      anchor = "way"      // NODE>NODE, or NODE<>NODE for both directions
	atDatabase anchor = "database" // NAME
	atNode     anchor = "node"     // NAME
	atTrade    anchor = "trade"    // CHANNEL/OUT-TRADE-NUMBER
	atDay      anchor = "day"      // CHANNEL/2006-01-02
	atRow      anchor = "row"      // DATABASE/TABLE/ORDER
)

// param is a word of a line and the field whose value follows it.
type param struct {
	word  string
	field field
	form  string // what stands for the value in the form of a line
	// least and most bound a number, or a duration in nanoseconds. What may be negative
	// may not be zero, which would do nothing.
	least, most int64
	mistake     func(text string) string // what is wrong with a text, "" if nothing is
}

// number is a param whose value is a whole number.
func number(word string, least, most int64) param {
	return param{word: word, field: fieldN, form: "NUMBER", least: least, most: most}
}

// duration is a param whose value is a duration.
func duration(word string, f field, least, most time.Duration) param {
	return param{word: word, field: f, form: "DURATION", least: int64(least), most: int64(most)}
}

type field string

const (
	fieldFor  field = "For"
	fieldFrom field = "From"
	fieldBy   field = "By"
	fieldN    field = "N"
	fieldText field = "Text"
)

const (
	day = 24 * time.Hour
	// week is how late something may begin, as late as the last line of a timeline.
	week     = 7 * day
	maxCents = 1_000_000_000_00
)

var (
	forLong = duration("for", fieldFor, 1, day)
	after   = duration("after", fieldFor, 0, day)
	from    = duration("from", fieldFrom, 0, week)
	by      = duration("by", fieldBy, 1, day)
	times   = number("times", 1, 100)
	cents   = number("cents", 1, maxCents)
)

// kinds are all kinds, in the order of the docs. None is ever changed.
var kinds = slices.Concat(messageKinds, linkKinds, processKinds, databaseKinds, clockKinds, channelKinds, serviceKinds, operatorKinds)

func (k Kind) spec() *spec {
	for i := range kinds {
		if kinds[i].name == k {
			return &kinds[i]
		}
	}
	return nil
}

func specOfVerb(verb string) *spec {
	for i := range kinds {
		if kinds[i].verb == verb {
			return &kinds[i]
		}
	}
	return nil
}

// drawnOnTheWay says whether the kind is anchored to what only a run brings up: a
// step or a message. The others can be drawn before the run.
func (s *spec) drawnOnTheWay() bool { return s.anchor == atStep || s.anchor == atMessage }

// lasts says whether the kind goes on for a while, from a time on.
func (s *spec) lasts() bool {
	return s.takes(from.word) && s.takes(forLong.word)
}

// takes says whether a word is one of the kind's.
func (s *spec) takes(word string) bool {
	return slices.ContainsFunc(s.params, func(p param) bool { return p.word == word })
}

// StrikesOrders says whether the kind is anchored to what may be about one order.
func (k Kind) StrikesOrders() bool {
	s := k.spec()
	return s != nil && (s.drawnOnTheWay() || s.anchor == atTrade || s.anchor == atRow)
}

// Kills says whether the kind ends a process at a step.
func (k Kind) Kills() bool { return k == Crash || k == CrashLoop || k == SlowRestart }

// within says whether a time falls into a perturbation's.
func (p *Perturbation) within(at time.Duration) bool { return at >= p.From && at-p.From < p.For }
