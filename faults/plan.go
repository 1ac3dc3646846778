package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
)

// Perturbation is one thing that goes wrong. Its kind says which of the fields count.
type Perturbation struct {
	Kind Kind          `json:"kind"`
	At   string        `json:"at"`                // the stable name of what it strikes
	From time.Duration `json:"from_ns,omitempty"` // when it begins, true time since the world's start
	For  time.Duration `json:"for_ns,omitempty"`  // how long it lasts, or how long after
	By   time.Duration `json:"by_ns,omitempty"`   // how much later, slower or ahead
	N    int64         `json:"n,omitempty"`       // how often, how many cents, or parts per million
	Text string        `json:"text,omitempty"`    // a path, a number or a zone
}

// String returns the perturbation as a line of an incident file's faults section:
// "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 2s".
func (p Perturbation) String() string {
	s := p.Kind.spec()
	if s == nil {
		return fmt.Sprintf("unknown perturbation %q at %s", p.Kind, p.At)
	}
	actor, anchor := s.actor, p.At
	if actor == "" {
		actor, anchor, _ = strings.Cut(p.At, "/")
	}
	line := quote(actor) + "  " + s.verb + "  " + quote(anchor)
	for _, one := range s.params {
		line += "  " + one.word + " " + p.value(one.field)
	}
	return line
}

// value returns a field as it is written.
func (p *Perturbation) value(f field) string {
	switch f {
	case fieldN:
		return strconv.FormatInt(p.N, 10)
	case fieldText:
		return quote(p.Text)
	}
	return p.duration(f).String()
}

func (p *Perturbation) duration(f field) *time.Duration {
	switch f {
	case fieldFrom:
		return &p.From
	case fieldBy:
		return &p.By
	}
	return &p.For
}

// Weight returns by how much later the perturbation makes a message or a task, if that is all
// it does, and else more than any time.
func (p Perturbation) Weight() time.Duration {
	switch p.Kind {
	case Delay, LateAnswer:
		return p.By
	case Stall, Pause, Reorder:
		return p.For
	}
	return forEver
}

// quote keeps a name one word, whatever it has inside: it is as it stands unless it
// is empty, begins a comment, has a blank, or can't be printed.
func quote(name string) string {
	quoted := strconv.Quote(name)
	if name == "" || name[0] == '#' || strings.Contains(name, " ") || quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// Plan is a list of perturbations.
type Plan []Perturbation

// String returns the plan, one line for each perturbation.
func (p Plan) String() string {
	var b strings.Builder
	for _, one := range p {
		b.WriteString(one.String() + "\n")
	}
	return b.String()
}

// ParsePlan reads what String writes. Blank lines and comments after # stand for
// nothing. The error names line and column.
func ParsePlan(text string) (Plan, error) { return ParseKnown(text, nil, nil) }

// ParseKnown is ParsePlan for a world whose names are known before it runs: check says
// what is wrong with one, "" if nothing is. The plan comes on top of another, none of
// whose lines it repeats.
func ParseKnown(text string, onTopOf Plan, check func(Kind, Name) string) (Plan, error) {
	var plan Plan
	seen := map[Perturbation]bool{}
	for _, p := range onTopOf {
		seen[p] = true
	}
	for i, line := range strings.Split(text, "\n") {
		words, err := splitWords(line)
		if err == nil && len(words) == 0 {
			continue
		}
		var p Perturbation
		if err == nil {
			p, err = parseLine(words, seen, check)
		}
		if err != nil {
			var at *wordError
			errors.As(err, &at)
			return nil, fmt.Errorf("%d:%d: %s", i+1, at.column, at.message)
		}
		plan = append(plan, p)
	}
	return plan, nil
}

// parseLine reads one line, which none before it may have said.
func parseLine(words []word, seen map[Perturbation]bool, check func(Kind, Name) string) (Perturbation, error) {
	p, err := parsePerturbation(words)
	if err == nil && check != nil {
		err = checkNames(p.Kind, words, check)
	}
	if err == nil && seen[p] {
		err = words[0].errorf("this fault stands here a second time")
	}
	seen[p] = true
	return p, err
}

func parsePerturbation(words []word) (Perturbation, error) {
	if len(words) < 3 {
		return Perturbation{}, words[0].errorf("a fault is: ACTOR VERB ANCHOR [WORD VALUE]..., for example %q",
			Perturbation{Kind: Crash, At: "shop-1/callback(A)#1/COMMIT:before", For: 2 * time.Second})
	}
	s := specOfVerb(words[1].text)
	if s == nil {
		return Perturbation{}, words[1].errorf("unknown verb %q%s; 'tillstorm faults' lists all", words[1].text, Suggest(words[1].text, verbs()))
	}
	p := Perturbation{Kind: s.name, At: words[2].text}
	switch {
	case s.actor == "":
		p.At = words[0].text + "/" + p.At
	case s.actor != words[0].text:
		return p, words[0].errorf("only the %s %s, not %q", s.actor, s.verb, words[0].text)
	}
	if err := s.checkAnchor(words[2]); err != nil {
		return p, err
	}
	return p, s.parseParams(&p, words[2:])
}

// checkAnchor refuses a name that can't be the name of what the kind strikes.
func (s *spec) checkAnchor(w word) error {
	isStep := strings.HasSuffix(w.text, ":before") || strings.HasSuffix(w.text, ":after")
	isAnswer := strings.HasSuffix(w.text, ":answer")
	switch {
	case s.anchor == atStep && !isStep:
		return w.errorf("a step's name ends in :before or :after")
	case s.name == LateAnswer && !isAnswer:
		return w.errorf("an answer's name ends in :answer; a request is delayed")
	case isAnswer && s.name == Duplicate:
		return w.errorf("only a request can be duplicated, not an answer")
	case isAnswer && s.name == Delay:
		return w.errorf("only a request is delayed; an answer answers-late")
	case s.anchor == atWay && !isWay(w.text, s.name == Partition):
		return w.errorf("a way is NODE>NODE, and of a partition NODE<>NODE, for example shop-1<>wechat")
	case s.anchor == atWay && w.text == wayBack(w.text):
		return w.errorf("a way has two ends, and these are one: a node's network to itself is never away")
	case s.anchor == atDay && !isDay(w.text):
		return w.errorf("%q is not a day such as 2026-03-02", w.text)
	case s.anchor == atRow && strings.Count(w.text, "/") != 2:
		return w.errorf("a row is DATABASE/TABLE/ORDER, for example shop/payment_records/A")
	}
	return nil
}

func isWay(text string, both bool) bool {
	from, to, ok := strings.Cut(text, ">")
	return ok && strings.HasSuffix(from, "<") == both && strings.Trim(from, "<") != "" && to != ""
}

// wayBack returns a way with its ends exchanged.
func wayBack(way string) string {
	between := ">"
	if strings.Contains(way, "<>") {
		between = "<>"
	}
	from, to, _ := strings.Cut(way, between)
	return to + between + from
}

func isDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// parseParams reads the words and values that follow the anchor, which is words[0].
func (s *spec) parseParams(p *Perturbation, words []word) error {
	for _, one := range s.params {
		if len(words) < 3 || words[1].text != one.word {
			return words[min(1, len(words)-1)].errorf("%q must be followed by %q and %s", words[0].text, one.word, one.example())
		}
		words = words[2:]
		if err := p.parse(one, words[0]); err != nil {
			return err
		}
	}
	if len(words) > 1 {
		return words[1].errorf("%q is too much here", words[1].text)
	}
	return nil
}

// example tells what a value looks like.
func (p param) example() string {
	switch p.field {
	case fieldN:
		return "a number, for example " + p.word + " 3"
	case fieldText:
		return "a name"
	}
	return "a duration, for example " + p.word + " 2s"
}

func (p *Perturbation) parse(one param, w word) error {
	switch one.field {
	case fieldText:
		p.Text = w.text
		return one.checkText(w)
	case fieldN:
		n, err := strconv.ParseInt(w.text, 10, 64)
		if err != nil {
			return w.errorf("%q is not a whole number", w.text)
		}
		p.N = n
		return one.checkBounds(n, w)
	}
	d, err := time.ParseDuration(w.text)
	if err != nil {
		return w.errorf("%q is not a duration such as 2s or 150ms", w.text)
	}
	*p.duration(one.field) = d
	return one.checkBounds(int64(d), w)
}

func (p param) checkText(w word) error {
	if p.mistake == nil {
		return nil
	}
	if mistake := p.mistake(w.text); mistake != "" {
		return w.errorf("%s", mistake)
	}
	return nil
}

// checkBounds refuses a value that does nothing, or that a run would never be done with.
func (p param) checkBounds(value int64, w word) error {
	if value < p.least || value > p.most || value == 0 && p.least < 0 {
		return w.errorf("%s is %s, not %q", p.word, p.bounds(), w.text)
	}
	return nil
}

// bounds returns the param's bounds in words.
func (p param) bounds() string {
	text := p.bound(p.least) + " to " + p.bound(p.most)
	if p.least < 0 {
		text += " and not 0"
	}
	return text
}

func (p param) bound(value int64) string {
	if p.field == fieldN {
		return strconv.FormatInt(value, 10)
	}
	return strings.TrimSuffix(time.Duration(value).String(), "0m0s") // 24h0m0s is 24h
}

// Suggest asks for the known name that is nearest to an unknown one, as the end of a
// sentence; it is empty if none is near.
func Suggest(name string, known []string) string {
	best, least := "", min(3, len(name))
	for _, one := range known {
		if d := levenshtein.ComputeDistance(name, one); d < least {
			best, least = one, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", do you mean %q?", best)
}

// Nearest returns the known names that are nearest to an unknown one, at most so many: those
// that contain it, then those of which the smallest part must change.
func Nearest(name string, known []string, most int) []string {
	far := func(one string) float64 {
		if strings.Contains(one, name) {
			return 0
		}
		return float64(levenshtein.ComputeDistance(name, one)) / float64(max(len(name), len(one)))
	}
	near := slices.SortedStableFunc(slices.Values(known), func(a, b string) int { return cmp.Compare(far(a), far(b)) })
	return near[:min(most, len(near))]
}

func verbs() []string {
	var verbs []string
	for i := range kinds {
		verbs = append(verbs, kinds[i].verb)
	}
	return verbs
}
