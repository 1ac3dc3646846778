package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
)

// Expectation is a line of the section expect.
type Expectation struct {
	checker.Expectation
	Within time.Duration // after the last line of the timeline about it; 0: at any time
	Line   int           // of the file
}

// expectForm is what a line may say of a subject: SUBJECT ABOUT [WHAT] HOW OFTEN [WHEN].
type expectForm struct {
	subject checker.Subject
	whats   []string // what may follow, for example a disposition
	must    bool     // one of them must
	states  bool     // it may also say that it is, or stays, one of them
	amount  bool     // an amount may follow
	status  bool     // an HTTP status may follow, and equal
	means   string
	example string
}

// The words of the system that files use.
var (
	orderStatuses = []string{"CREATED", "PAID", "CLOSED", "REFUNDING", "REFUNDED"}
	attemptStates = []string{"OPEN", "PAID", "CLOSED"}
	alertKinds    = []string{
		"status-mismatch", "order-missing", "attempt-mismatch", "record-missing", "record-mismatch", "record-surplus", "record-unbilled",
		"refund-missing", "refund-mismatch", "refund-unbilled", "refund-failed", "stock-mismatch", "bill-duplicate", "bill-not-ready",
		"charge-refused", "outbox-parked",
	}
	messageKinds = []string{"stock-release", "stock-deduct", "refund", "channel-close", "close-timer", "cancel", "reinstate"}
)

// requestKinds are what requests about an order are called.
func requestKinds() []string {
	names := map[string]bool{}
	for _, kind := range kinds {
		names[kind] = true
	}
	for _, path := range []string{"prepay", "query", "close", "refund", "pay", "freeze", "release", "deduct"} {
		names[path] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// expectForms are all of them.
var expectForms = []expectForm{
	{subject: checker.OfOrder, whats: orderStatuses, must: true, states: true, means: "the order's status", example: "order A stays CLOSED"},
	{subject: checker.OfCharge, amount: true, means: "money that a channel has taken", example: "charge A 198.00 CNY once"},
	{subject: checker.OfRecord, whats: []string{"applied", "late", "surplus"}, amount: true, means: "our fact of a charge, and what it met", example: "record A late once"},
	{subject: checker.OfRefund, amount: true, means: "money that the buyer has back", example: "refund A 198.00 CNY once within 30s"},
	{subject: checker.OfIntent, whats: []string{"request", "late", "surplus"}, amount: true, means: "our intent to give money back, and why", example: "intent A request never"},
	{subject: checker.OfAttempt, whats: attemptStates, must: true, states: true, means: "an order's attempts, or one by its trade, A-1", example: "attempt A-1 is CLOSED"},
	{subject: checker.OfStock, whats: []string{"freeze", "release", "deduct"}, must: true, means: "how the order's stock moves; of a SKU its levels in the end", example: "stock A release once"},
	{subject: checker.OfAlert, whats: alertKinds, means: "what reconciliation or a guard has found about the order; or about a channel, of orders that we don't know", example: "alert A record-missing once"},
	{subject: checker.OfMessage, whats: messageKinds, must: true, means: "a message of the outbox that was delivered", example: "message A stock-release once"},
	{subject: checker.OfParked, whats: messageKinds, means: "a message of the outbox that was given up", example: "parked A never"},
	{subject: checker.OfRequest, whats: requestKinds(), must: true, means: "a request about the order that was sent", example: "request A prepay once"},
	{subject: checker.OfAnswer, whats: requestKinds(), must: true, status: true, means: "an answer to such a request", example: "answer A callback 200 10 times equal"},
}

const becomesWord = "becomes"

// Line is a form of the sections setup and expect, for people.
type Line struct{ Form, Means, Example string }

// ExpectLines returns the vocabulary of the section expect.
func ExpectLines() (lines []Line) {
	for _, f := range expectForms {
		means := f.means
		if f.isKind() {
			means += "; KIND is " + strings.Join(f.whats, ", ")
		}
		lines = append(lines, Line{f.form(), means, f.example})
	}
	return append(lines, Line{"stock SKU available N frozen N sold N", "the stock of a SKU in the end", "stock S1 available 9 frozen 0 sold 1"})
}

// isKind says whether there are too many words for the form of a line.
func (f *expectForm) isKind() bool { return len(f.whats) > 6 }

func (f *expectForm) form() string {
	words := []string{string(f.subject), "ORDER"}
	what := strings.Join(f.whats, "|")
	if f.isKind() {
		what = "KIND"
	}
	if f.states {
		return strings.Join(append(words, "is|stays|becomes", what, "[COUNT] [WHEN]"), " ")
	}
	switch {
	case f.must:
		words = append(words, what)
	case what != "":
		words = append(words, "["+what+"]")
	}
	if f.status {
		words = append(words, "[STATUS]")
	}
	if f.amount {
		words = append(words, "[AMOUNT CNY]")
	}
	words = append(words, "COUNT")
	if f.status {
		words = append(words, "[equal]")
	}
	return strings.Join(append(words, "[WHEN]"), " ")
}

func (p *parser) expect(s section) error {
	for _, l := range s.lines {
		if len(l.words) == 0 {
			continue
		}
		c := &cursor{words: l.words}
		if err := p.expectLine(c); err != nil {
			return err
		}
		if err := c.end(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) expectLine(l *cursor) error {
	var subjects []string
	for _, f := range expectForms {
		subjects = append(subjects, string(f.subject))
	}
	first := l.here()
	subject, err := l.oneOf("word", subjects)
	if err != nil {
		return err
	}
	f := &expectForms[slices.Index(subjects, subject)]
	abouts, err := p.abouts(l, f)
	if err != nil {
		return err
	}
	rest := l.next
	for _, about := range abouts {
		l.next = rest
		x := Expectation{Line: first.line}
		x.Subject, x.About = f.subject, about
		if err := p.claim(l, f, &x); err != nil {
			return err
		}
		if err := p.once(first, "expectation "+strings.Join(p.x.expectWords(x), " ")); err != nil {
			return err
		}
		p.x.Expect = append(p.x.Expect, x)
	}
	return nil
}

// abouts reads what a line is about: orders, an attempt's trade, or a SKU.
func (p *parser) abouts(l *cursor, f *expectForm) ([]string, error) {
	w := l.here()
	switch {
	case f.subject == checker.OfStock && skuPattern.MatchString(w.text):
		sku, err := p.sku(l)
		return []string{sku}, err
	case f.subject == checker.OfAttempt && tradePattern.MatchString(w.text):
		l.next++
		if mistake := p.x.known().tradeMistake(w.text); mistake != "" {
			return nil, w.errorf("%s", mistake)
		}
		return []string{w.text}, nil
	case f.subject == checker.OfAlert && slices.Contains(channelNames, w.text):
		channel, err := l.oneOf("channel", p.nodesOf("channel"))
		return []string{channel}, err
	}
	return p.orders(l)
}

// claim reads what is expected of what a line is about.
func (p *parser) claim(l *cursor, f *expectForm, x *Expectation) (err error) {
	if f.subject == checker.OfStock && skuPattern.MatchString(x.About) {
		return readLevels(l, x)
	}
	x.Claim = checker.Happens
	if f.states {
		word, err := l.oneOf("word", []string{string(checker.Is), string(checker.Stays), becomesWord})
		if err != nil {
			return err
		}
		if word != becomesWord {
			x.Claim = checker.Claim(word)
		}
	}
	if err := readWhat(l, f, x); err != nil {
		return err
	}
	switch x.Claim {
	case checker.Stays:
		return nil
	case checker.Is:
		return p.by(l, x)
	}
	return p.happens(l, f, x)
}

func readWhat(l *cursor, f *expectForm, x *Expectation) (err error) {
	if f.must || l.is(f.whats...) || len(f.whats) > 0 && !startsCount(l.peek()) && !amountPattern.MatchString(l.peek()) {
		x.What, err = l.oneOf("word after "+string(f.subject), f.whats)
	}
	return err
}

// startsCount says whether a word begins how often something happens.
func startsCount(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil || slices.Contains(countWords, text)
}

var countWords = []string{"never", "once"}

// happens reads how often something happens, and when.
func (p *parser) happens(l *cursor, f *expectForm, x *Expectation) (err error) {
	if f.status && len(l.peek()) == 3 && l.peek()[0] >= '1' && l.peek()[0] <= '5' && startsCount(l.peek()) {
		x.Also = l.peek()
		l.next++
	}
	if f.amount && amountPattern.MatchString(l.peek()) {
		if x.Cents, err = l.amount(); err != nil {
			return err
		}
	}
	if x.Count, err = l.count(); err != nil {
		return err
	}
	x.Equal = f.status && l.skip("equal")
	return p.when(l, x)
}

// count reads "once", "never" or "3 times".
func (c *cursor) count() (int, error) {
	w := c.here()
	if i := slices.Index(countWords, w.text); i >= 0 {
		c.next++
		return i, nil
	}
	if !startsCount(w.text) {
		return 0, w.errorf("here once, never or a number such as 3 times is missing")
	}
	n, err := c.number("how often something happens", 1_000_000)
	if err != nil {
		return 0, err
	}
	if !c.skip("times") {
		return 0, c.here().errorf("here times is missing, as in %d times", n)
	}
	return int(n), nil
}

// when reads the bounds of a time.
func (p *parser) when(l *cursor, x *Expectation) (err error) {
	if l.skip("after") {
		if x.After, err = p.clock(l); err != nil {
			return err
		}
	}
	if l.is("within") {
		l.next++
		w, err := l.take("a duration, for example 30s")
		if err != nil {
			return err
		}
		if err := durationTo(&x.Within, w.text); err != nil {
			return w.errorf("within %v", err)
		}
		return nil
	}
	return p.by(l, x)
}

func (p *parser) by(l *cursor, x *Expectation) (err error) {
	at := l.here()
	if !l.skip("by") {
		return nil
	}
	if x.By, err = p.clock(l); err == nil && x.By <= x.After {
		err = at.errorf("that is no later than what it must be after")
	}
	return err
}

// readLevels reads "available 9 frozen 0 sold 1".
func readLevels(l *cursor, x *Expectation) error {
	x.Claim = checker.HasLevels
	for _, level := range []struct {
		word  string
		value *int64
	}{{"available", &x.Levels.Available}, {"frozen", &x.Levels.Frozen}, {"sold", &x.Levels.Sold}} {
		if _, err := l.oneOf("word", []string{level.word}); err != nil {
			return err
		}
		w, err := l.take("a number")
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(w.text, 10, 64)
		if err != nil || n < 0 || strconv.FormatInt(n, 10) != w.text {
			return w.errorf("%s is a number from 0, not %q", level.word, w.text)
		}
		*level.value = n
	}
	return nil
}

// expectWords returns the line of an expectation.
func (x *Incident) expectWords(e Expectation) []string {
	words := []string{string(e.Subject), e.About}
	i := slices.IndexFunc(expectForms, func(f expectForm) bool { return f.subject == e.Subject })
	switch {
	case e.Claim == checker.HasLevels:
		return append(words, strings.Fields(e.Levels.String())...)
	case e.Claim != checker.Happens:
		words = append(words, string(e.Claim))
	case expectForms[i].states:
		words = append(words, becomesWord)
	}
	for _, word := range []string{e.What, e.Also} {
		if word != "" {
			words = append(words, word)
		}
	}
	if e.Cents != 0 {
		words = append(words, amountWords(e.Cents)...)
	}
	if e.Claim == checker.Happens {
		words = append(words, strings.Fields(countText(e.Count))...)
	}
	if e.Equal {
		words = append(words, "equal")
	}
	return append(words, x.whenWords(e)...)
}

func countText(n int) string {
	if n < len(countWords) {
		return countWords[n]
	}
	return fmt.Sprint(n, " times")
}

func (x *Incident) whenWords(e Expectation) (words []string) {
	if e.After != 0 {
		words = append(words, "after", x.clockText(e.After))
	}
	switch {
	case e.Within != 0:
		words = append(words, "within", e.Within.String())
	case e.By != 0:
		words = append(words, "by", x.clockText(e.By))
	}
	return words
}

// expectations returns what a run is to be judged by besides the properties.
func (x *Incident) expectations() []checker.Expectation {
	var all []checker.Expectation
	for _, one := range x.Expect {
		e := one.Expectation
		e.Where, e.Text = fmt.Sprintf("%s:%d", x.Name, one.Line), strings.Join(x.expectWords(one), " ")
		if one.Within != 0 {
			e.By = x.lastLine(e.About) + one.Within
		}
		all = append(all, e)
	}
	return all
}

// lastLine returns when the last line of the timeline about an order is, which only reads
// nothing.
func (x *Incident) lastLine(about string) (last time.Duration) {
	order := about
	if trade := tradePattern.FindStringSubmatch(about); trade != nil {
		order = trade[1]
	}
	for _, op := range x.Operations {
		if op.Order == order && op.Verb != Reads {
			last = max(last, arrives(op.At))
		}
	}
	for _, h := range x.Hands {
		if h.Order == order {
			last = max(last, h.At)
		}
	}
	for _, p := range x.Pins {
		if p.Order == order {
			last = max(last, p.At)
		}
	}
	return last
}
