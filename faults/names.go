package faults

import (
	"regexp"
	"slices"
	"strings"
)

// Name is a name in a line that a world may know before it runs.
type Name struct {
	Of   NameOf
	Text string
}

// NameOf is what a name is a name of.
type NameOf string

// What there are names of.
const (
	OfNode     NameOf = "node"
	OfWayEnd   NameOf = "end of a way"
	OfDatabase NameOf = "database"
	OfChannel  NameOf = "channel"
	OfTrade    NameOf = "trade"
	OfRow      NameOf = "row" // DATABASE/TABLE/ORDER
	OfKey      NameOf = "key" // what stands in parentheses
)

// checkNames refuses the first name of a line that has something wrong with it.
func checkNames(k Kind, words []word, check func(Kind, Name) string) error {
	for _, n := range k.spec().names(words) {
		if mistake := check(k, n.Name); mistake != "" {
			return n.at.errorf("%s", mistake)
		}
	}
	return nil
}

type placedName struct {
	Name
	at word
}

// names returns the names in a line of the kind. Tasks, operations and kinds of messages
// are none: only a run brings them up.
func (s *spec) names(words []word) (names []placedName) {
	add := func(of NameOf, at word, texts ...string) {
		for _, text := range texts {
			names = append(names, placedName{Name{of, text}, at})
		}
	}
	actor, anchor := words[0], words[2]
	switch s.anchor {
	case atStep:
		add(OfNode, actor, actor.text)
		add(OfKey, anchor, keysIn(anchor.text)...)
	case atMessage:
		add(OfKey, anchor, keysIn(anchor.text)...)
	case atWay:
		w := wayOf(Perturbation{At: anchor.text}, s)
		add(OfWayEnd, anchor, w.from, w.to)
	case atDatabase:
		add(OfDatabase, anchor, anchor.text)
	case atNode:
		add(OfNode, anchor, anchor.text)
	case atTrade:
		add(OfChannel, actor, actor.text)
		add(OfTrade, anchor, anchor.text)
	case atDay:
		add(OfChannel, actor, actor.text)
	case atRow:
		add(OfRow, anchor, anchor.text)
	}
	if i := slices.IndexFunc(s.params, func(p param) bool { return p.form == formTrade }); i >= 0 {
		value := words[4+2*i]
		add(OfTrade, value, value.text)
	}
	return names
}

var keyPattern = regexp.MustCompile(`\(([^()]*)\)`)

func keysIn(text string) (keys []string) {
	for _, found := range keyPattern.FindAllStringSubmatch(text, -1) {
		keys = append(keys, found[1])
	}
	return keys
}

const formTrade = "TRADE"

// anchorForms are what stands for an anchor in the form of a line.
var anchorForms = map[anchor]string{
	atStep: "STEP", atMessage: "MESSAGE", atWay: "NODE>NODE", atDatabase: "DATABASE", atNode: "NODE",
	atTrade: formTrade, atDay: "DAY", atRow: "DATABASE/TABLE/ORDER",
}

// Form returns how a line of the kind looks: "CHANNEL settles-late TRADE by DURATION".
func (k Kind) Form() string {
	s := k.spec()
	if s == nil {
		return ""
	}
	words := []string{s.actorForm(), s.verb, anchorForms[s.anchor]}
	if k == Partition {
		words[2] = "NODE<>NODE"
	}
	for _, one := range s.params {
		words = append(words, one.word, one.form)
	}
	return strings.Join(words, " ")
}

func (s *spec) actorForm() string {
	switch {
	case s.actor != "":
		return s.actor
	case s.anchor == atStep:
		return "NODE"
	}
	return "CHANNEL"
}
