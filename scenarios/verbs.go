package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tillstorm/tillstorm/system"
)

// timelineVerb is one thing that a line of the timeline may say, after its time:
// ACTOR VERB ORDER and what the verb takes.
type timelineVerb struct {
	actor string
	verb  Verb
	takes string // what follows the order
	does  string
	// example is a line, after its time.
	example string
	// read takes the rest of a line; write gives it back. Nil: nothing follows.
	read  func(x *Incident, l *cursor, op *Operation) error
	write func(x *Incident, op Operation, before []Operation) []string
}

// timelineVerbs are all of them. They are stimuli: what the harness does to the
// system by itself.
var timelineVerbs = []timelineVerb{
	{"buyer", Creates, "[AMOUNT CNY] [currency CURRENCY] [sku SKU] [quantity N] [channel CHANNEL] [key KEY [by CALLER]]", "orders, and asks again until there is an answer; what follows the order is what the order is not", "buyer creates A", readCreates, writeCreates},
	{"buyer", Attempts, "CHANNEL [key KEY [by CALLER]]", "opens a further attempt to pay, on another channel", "buyer attempts A alipay", readAttempts, writeAttempts},
	{"buyer", Pays, "[CHANNEL] [attempt N]", "pays at the channel, by default the order's", "buyer pays A", readPays, writePays},
	{"buyer", Leaves, "[CHANNEL] [attempt N]", "leaves the channel's page, which closes the trade unpaid", "buyer leaves A", readPays, writePays},
	{"buyer", Cancels, "[key KEY [by CALLER]]", "cancels the order", "buyer cancels A on shop-2", readKey, writeKey},
	{"buyer", Refunds, "[AMOUNT CNY] [number NUMBER] [key KEY [by CALLER]]", "asks for money back, by default for all of it, under a number of its own or one that other lines have", "buyer refunds A 60.00 CNY", readRefunds, writeRefunds},
	{"buyer", Reads, "[VIEW]", "reads the order, or another view: " + joinWords(views), "buyer reads A log", readReads, writeReads},
	{"stranger", Forges, "FORGERY", "posts a notice that no channel sends: " + joinWords(forgeries), "stranger forges A unsigned", readForges, writeForges},
}

// VerbLine is a line that a timeline may have, for people.
type VerbLine struct {
	Actor, Verb string
	Pin         bool // else it is a stimulus
	Form        string
	Does        string
	Example     string
}

// VerbLines returns the vocabulary of the timeline, actor by actor.
func VerbLines() (lines []VerbLine) {
	for _, v := range timelineVerbs {
		takes := v.takes
		if v.verb.shops() {
			takes += " [on SHOP]"
		}
		form := strings.Join(strings.Fields(fmt.Sprintf("%s %s ORDER %s", v.actor, v.verb, takes)), " ")
		lines = append(lines, VerbLine{v.actor, string(v.verb), false, form, v.does, v.example})
	}
	lines = append(lines,
		VerbLine{operatorActor, handVerbs[0], false, "operator deletes record|order|refund|movement ORDER", "deletes the row about the order by hand", "operator deletes record A"},
		VerbLine{operatorActor, handVerbs[1], false, "operator edits record|order|refund ORDER by AMOUNT CNY", "changes the amount in the row by hand", "operator edits record A by -1.00 CNY"})
	for i := range pinVerbs {
		lines = append(lines, pinVerbs[i].line())
	}
	return lines
}

// line tells a pin's verb.
func (v *pinVerb) line() VerbLine {
	form := v.actor + " " + v.verb
	if !v.noOrder {
		form += " ORDER"
	}
	if words := v.words(); len(words) > 0 {
		form += " " + strings.Join(words, "|")
	}
	form += " [on NODE]"
	if v.sends {
		form += " [to SHOP]"
	}
	return VerbLine{v.actor, v.verb, true, form, v.does, v.example}
}

// createWords come before what a create asks for that is not the order's own, apart from
// the amount.
var createWords = []string{"currency", "sku", "quantity", "channel"}

func readCreates(x *Incident, l *cursor, op *Operation) (err error) {
	o := &op.Other
	if !l.done() && !l.is(slices.Concat(createWords, []string{keyWord, onWord, overWord})...) {
		o.Cents, err = l.amount()
	}
	if err == nil && l.skip("currency") {
		o.Currency, err = l.oneOf("currency", currencies)
	}
	if err == nil && l.skip("sku") {
		o.SKU, err = l.oneOf("SKU", x.skus())
	}
	if err == nil && l.skip("quantity") {
		o.Quantity, err = l.number("quantity", maxStock)
	}
	if err == nil && l.skip("channel") {
		o.Channel, err = l.oneOf("channel", channelNames)
	}
	return cmp.Or(err, readKey(x, l, op))
}

// currencies are those that an order may be mistaken to be in.
var currencies = []string{"JPY", "USD"}

// skus are what there is stock of.
func (x *Incident) skus() []string {
	all := maps.Clone(usualStock)
	maps.Copy(all, x.Stock)
	return slices.Sorted(maps.Keys(all))
}

func writeCreates(x *Incident, op Operation, before []Operation) (words []string) {
	o := op.Other
	if o.Cents != 0 {
		words = amountWords(o.Cents)
	}
	for i, value := range []string{o.Currency, o.SKU, strconv.FormatInt(o.Quantity, 10), o.Channel} {
		if value != "" && value != "0" {
			words = append(words, createWords[i], value)
		}
	}
	return append(words, writeKey(x, op, before)...)
}

func readAttempts(x *Incident, l *cursor, op *Operation) (err error) {
	op.Channel, err = l.oneOf("channel", channelNames)
	return cmp.Or(err, readKey(x, l, op))
}

func writeAttempts(x *Incident, op Operation, before []Operation) []string {
	return append([]string{op.Channel}, writeKey(x, op, before)...)
}

const (
	keyWord    = "key"    // comes before an idempotency key that several lines have
	numberWord = "number" // before the number of a refund, likewise
	onWord     = "on"     // before the node that is to take a step, or to be asked
	toWord     = "to"     // before the node that is to be told
)

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// callerWord comes before the name of the caller whose key it is.
const callerWord = "by"

// readShared reads a name that several lines may have: a key, a caller or a number.
func readShared(l *cursor, what string) (string, error) {
	name, err := l.take(what)
	if err == nil && !keyPattern.MatchString(name.text) {
		err = name.errorf("%s is 1 to 64 of A-Z, a-z, 0-9 and -, not %q", what, name.text)
	}
	return name.text, err
}

func readKey(_ *Incident, l *cursor, op *Operation) error {
	if !l.skip(keyWord) {
		return nil
	}
	var err error
	op.Key, err = readShared(l, "a key")
	if err == nil && l.skip(callerWord) {
		op.Caller, err = readShared(l, "a caller")
	}
	return err
}

func writeKey(_ *Incident, op Operation, _ []Operation) []string {
	if op.Key == "" {
		return nil
	}
	words := []string{keyWord, op.Key}
	if op.Caller != "" {
		words = append(words, callerWord, op.Caller)
	}
	return words
}

func readReads(_ *Incident, l *cursor, op *Operation) error {
	if l.done() || l.is(onWord, overWord) {
		return nil
	}
	view, err := l.oneOf("view", textsOf(views))
	op.View = View(view)
	return err
}

func writeReads(_ *Incident, op Operation, _ []Operation) []string {
	if op.View == "" {
		return nil
	}
	return []string{string(op.View)}
}

func readForges(_ *Incident, l *cursor, op *Operation) error {
	how, err := l.oneOf("forgery", textsOf(forgeries))
	op.Forgery = Forgery(how)
	return err
}

func writeForges(_ *Incident, op Operation, _ []Operation) []string {
	return []string{string(op.Forgery)}
}

func readPays(x *Incident, l *cursor, op *Operation) (err error) {
	order := x.order(op.Order)
	op.Channel = order.Channel
	at := l.here()
	if !l.done() && !l.is("attempt") {
		if op.Channel, err = l.oneOf("channel", channelNames); err != nil {
			return err
		}
	}
	if l.skip("attempt") {
		n, err := l.number("attempt", 99)
		op.Attempt = int(n)
		return err
	}
	if op.Attempt = x.attemptOn(op.Channel, order, x.Operations); op.Attempt == 0 {
		return at.errorf("no line before this one opens an attempt of order %s on %s", op.Order, op.Channel)
	}
	return nil
}

func writePays(x *Incident, op Operation, before []Operation) (words []string) {
	order := x.order(op.Order)
	if op.Channel != order.Channel {
		words = append(words, op.Channel)
	}
	if op.Attempt != x.attemptOn(op.Channel, order, before) {
		words = append(words, "attempt", strconv.Itoa(op.Attempt))
	}
	return words
}

func readRefunds(x *Incident, l *cursor, op *Operation) (err error) {
	op.Cents = x.order(op.Order).Cents
	if !l.done() && !l.is(numberWord, keyWord, onWord, overWord) {
		op.Cents, err = l.amount()
	}
	if err == nil && l.skip(numberWord) {
		op.Number, err = readShared(l, "a number")
	}
	return cmp.Or(err, readKey(x, l, op))
}

func writeRefunds(x *Incident, op Operation, before []Operation) (words []string) {
	if op.Cents != x.order(op.Order).Cents {
		words = amountWords(op.Cents)
	}
	if op.Number != "" {
		words = append(words, numberWord, op.Number)
	}
	return append(words, writeKey(x, op, before)...)
}

func amountWords(cents int64) []string {
	return []string{fmt.Sprintf("%d.%02d", cents/100, cents%100), "CNY"}
}

// policyLine is one thing that a file's setup may say of the shops' configuration
// and of the services beside them.
type policyLine struct {
	name   string
	values []string
	get    func(Policy) string // "" if nothing is said
	set    func(*Policy, string)
}

// How the lease service is in trouble.
const (
	leasesGranted = "granted-to-all"
	leasesAway    = "away"
)

// policyLines are all of them.
var policyLines = []policyLine{
	{
		"close", []string{string(system.CloseAskFirst), string(system.CloseLocalOnly)},
		func(p Policy) string { return string(p.Close) },
		func(p *Policy, value string) { p.Close = system.ClosePolicy(value) },
	},
	{
		"late-success", []string{string(system.LateRefund), string(system.LateReinstate)},
		func(p Policy) string { return string(p.LateSuccess) },
		func(p *Policy, value string) { p.LateSuccess = system.LateSuccess(value) },
	},
	{
		"close-by", listsOf(string(system.CloseByScan), string(system.CloseByMessage), string(system.CloseByExpiry)),
		func(p Policy) string { return joinWords(p.CloseBy) },
		func(p *Policy, value string) { p.CloseBy = splitList[system.CloseBy](value) },
	},
	{
		"messages", []string{"lost"},
		func(p Policy) string { return wordIf(p.MessagesLost, "lost") },
		func(p *Policy, _ string) { p.MessagesLost = true },
	},
	{
		"leases", []string{leasesGranted, leasesAway},
		func(p Policy) string {
			return wordIf(p.LeasesGrantAll, leasesGranted) + wordIf(p.LeasesAway, leasesAway)
		},
		func(p *Policy, value string) {
			p.LeasesGrantAll, p.LeasesAway = value == leasesGranted, value == leasesAway
		},
	},
}

// listsOf returns the ways to choose some of the words, in their order: "a", "b", "a,b".
func listsOf(words ...string) []string {
	var lists []string
	for chosen := 1; chosen < 1<<len(words); chosen++ {
		var list []string
		for i, word := range words {
			if chosen&(1<<i) != 0 {
				list = append(list, word)
			}
		}
		lists = append(lists, strings.Join(list, ","))
	}
	slices.SortStableFunc(lists, func(a, b string) int { return strings.Count(a, ",") - strings.Count(b, ",") })
	return lists
}

func joinWords[T ~string](words []T) string { return strings.Join(textsOf(words), ",") }

func textsOf[T ~string](words []T) []string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return texts
}

func splitList[T ~string](text string) []T {
	var words []T
	for word := range strings.SplitSeq(text, ",") {
		words = append(words, T(word))
	}
	return words
}

func wordIf(yes bool, word string) string {
	if yes {
		return word
	}
	return ""
}
