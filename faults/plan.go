package faults

import (
	"errors"
	"fmt"
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
func ParsePlan(text string) (Plan, error) {
	var plan Plan
	for i, line := range strings.Split(text, "\n") {
		words, err := splitWords(line)
		if err == nil && len(words) == 0 {
			continue
		}
		var p Perturbation
		if err == nil {
			p, err = parsePerturbation(words)
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

func parsePerturbation(words []word) (Perturbation, error) {
	if len(words) < 3 {
		return Perturbation{}, words[0].errorf("a fault is: ACTOR VERB ANCHOR [WORD VALUE]..., for example %q",
			Perturbation{Kind: Crash, At: "shop-1/callback(A)#1/COMMIT:before", For: 2 * time.Second})
	}
	s := specOfVerb(words[1].text)
	if s == nil {
		return Perturbation{}, words[1].errorf("unknown verb %q%s; 'tillstorm faults' lists all", words[1].text, suggestion(words[1].text))
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
	case s.anchor == atRow && strings.Count(w.text, "/") != 2:
		return w.errorf("a row is DATABASE/TABLE/ORDER, for example shop/payment_records/A")
	}
	return nil
}

func isWay(text string, both bool) bool {
	from, to, ok := strings.Cut(text, ">")
	return ok && strings.HasSuffix(from, "<") == both && strings.Trim(from, "<") != "" && to != ""
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
		return nil
	case fieldN:
		n, err := strconv.ParseInt(w.text, 10, 64)
		if err != nil {
			return w.errorf("%q is not a whole number", w.text)
		}
		if n < 0 && one == times {
			return w.errorf("%q is negative", w.text)
		}
		p.N = n
		return nil
	}
	d, err := time.ParseDuration(w.text)
	if err != nil {
		return w.errorf("%q is not a duration such as 2s or 150ms", w.text)
	}
	if d < 0 && !p.mayBeNegative(one.field) {
		return w.errorf("%q is negative", w.text)
	}
	*p.duration(one.field) = d
	return nil
}

// mayBeNegative says whether a duration may go backwards: a clock can be behind.
func (p *Perturbation) mayBeNegative(f field) bool {
	return f == fieldBy && (p.Kind == Skew || p.Kind == Jump)
}

// suggestion names the verb that is nearest to an unknown one.
func suggestion(verb string) string {
	best, least := "", 3
	for i := range kinds {
		if d := levenshtein.ComputeDistance(verb, kinds[i].verb); d < least {
			best, least = kinds[i].verb, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", do you mean %q?", best)
}
