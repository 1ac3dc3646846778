package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
)

// Pin is a line of a timeline that holds the system's own step until its time.
type Pin struct {
	At    time.Duration // true time since the world's start
	Actor string
	Verb  string
	Order string // "" for what is about no order
	What  string // what follows the order: a status, a request, ...
	On    string // the node that takes the step; "" for any
	To    string // the node that is told; "" for any
	Line  int    // of the file
}

// group is what the pin says, without time and node: pins of one group are taken one
// after the other.
func (p Pin) group() string {
	return strings.Join(slices.DeleteFunc([]string{p.Actor, p.Verb, p.Order, p.What}, func(s string) bool { return s == "" }), " ")
}

// String returns the pin as a line has it, after its time.
func (p Pin) String() string {
	text := p.group()
	if p.On != "" {
		text += " on " + p.On
	}
	if p.To != "" {
		text += " to " + p.To
	}
	return text
}

// pinVerb is one thing that a line may say of the system's own steps: ACTOR VERB ORDER
// WHAT, and which step that is.
type pinVerb struct {
	actor, verb string
	does        string
	example     string
	noOrder     bool
	anyOrder    bool // its step finds only then what it is about
	once        bool // an order has it once
	sends       bool // somebody is told, who may be named: to NODE
	whats       []what
	within      time.Duration
}

// what is what may follow the order, and the step that is held for it.
type what struct {
	word   string // "" for nothing
	hold   faults.Hold
	before []faults.Hold // where most of the time is waited
	lead   time.Duration // and until how long before
	takes  time.Duration
	sends  string // the kind of the request that leaves then
	trails bool   // what the pins don't speak of keeps its distance
}

var (
	timing        = sim.DefaultTiming()
	statementTime = timing.Statement
	commitTime    = timing.Commit
	linkTime      = timing.Link
)

// The roles of the tasks behind the actors. Requests are tasks named after their kind.
var (
	checkouts  = []string{"create", "attempt", "cancel"}
	closers    = []string{"close-scan", closeMessages, "expired close"}
	pollers    = []string{"pending-query"}
	refunders  = []string{"refund-query"}
	relays     = []string{"outbox", "outbox-relay"}
	reconciler = []string{"reconcile"}
)

const closeMessages = "close-due"

// statements are what moves an order to a status.
var statements = []struct{ status, statement string }{
	{"CREATED", "InsertOrder"}, {"PAID", "MarkOrderPaid"}, {"CLOSED", "MarkOrderClosed"},
	{"REFUNDING", "MarkOrderRefunding"}, {"REFUNDED", "MarkOrderRefunded"},
}

// pinVerbs are all of them.
var pinVerbs = []pinVerb{
	{
		actor: "shop", verb: "prepays", example: "shop prepays A",
		does:  "has the payment link of the order's attempt, and keeps it",
		whats: []what{{hold: before(checkouts, "StorePrepayToken"), takes: commitTime}},
	},
	{
		actor: "shop", verb: "commits", once: true, example: "shop commits A PAID",
		does: "moves the order, by whatever request",
		whats: slices.Concat(
			commits([]string{"create"}, "CREATED"), commits([]string{"callback", "cancel", "outbox", "outbox-relay"}, "PAID"),
			commits([]string{"create", "attempt", "cancel", "outbox", "outbox-relay"}, "CLOSED"), commits([]string{"ask-refund"}, "REFUNDING"),
			commits([]string{"refund-callback", "outbox", "outbox-relay"}, "REFUNDED"),
		),
	},
	{
		actor: "shop", verb: "begins", example: "shop begins A ask-refund on shop-1",
		does:  "begins the transaction of the n-th request of that kind: it sees what is committed by then",
		whats: begins("callback", "refund-callback", "create", "attempt", "cancel", "ask-refund"),
	},
	{
		actor: "shop", verb: "handles", example: "shop handles A",
		does:  "commits what the n-th callback of a charge brings, whatever that changes",
		whats: []what{transaction(faults.Hold{Roles: []string{"callback"}})},
	},
	{
		actor: "shop", verb: "answers", example: "shop answers A callback",
		does:  "sends the n-th answer to a request of that kind",
		whats: answers("callback", "refund-callback", "create", "attempt", "cancel", "ask-refund", "read"),
	},
	{
		actor: "shop", verb: "calls", example: "shop calls A prepay",
		does:  "sends a request about the order, while a buyer waits",
		whats: calls(checkouts, []faults.Hold{after(checkouts, "ReadOrder"), after(checkouts, "freeze"), before(checkouts, "ListUnsettledAttempts"), after(checkouts, "query")}, "freeze", "prepay", "query", "close"),
	},
	{
		actor: "closer", verb: "scans", anyOrder: true, within: scanEvery, example: "closer scans A",
		does:  "looks for orders that are due; the last scan before that time runs late",
		whats: []what{{hold: before([]string{"close-scan"}, "ListDueOrders"), takes: statementTime}},
	},
	{
		actor: "closer", verb: "calls", example: "closer calls A query",
		does:  "asks the channel whether the order is paid, or to close its trade",
		whats: calls(closers, []faults.Hold{before(closers, "ListUnsettledAttempts"), after(closers, "query")}, "query", "close"),
	},
	{
		actor: "closer", verb: "begins", example: "closer begins A",
		does:  "begins to close the order: it sees what is committed by then",
		whats: []what{begin("", closers...)},
	},
	{
		actor: "closer", verb: "commits", once: true, example: "closer commits A CLOSED",
		does:  "moves the order; PAID if the channel says that it is",
		whats: commits(closers, "CLOSED", "PAID"),
	},
	{
		actor: "poller", verb: "calls", within: queryEvery, example: "poller calls A query",
		does:  "asks the channel about an attempt that is open",
		whats: calls(pollers, []faults.Hold{before(pollers, "ClaimQuery")}, "query"),
	},
	{
		actor: "poller", verb: "commits", once: true, example: "poller commits A PAID",
		does:  "moves the order by what the channel has answered",
		whats: commits(pollers, "PAID"),
	},
	{
		actor: "relay", verb: "delivers", example: "relay delivers A release",
		does:  "sends what a message of the outbox says",
		whats: calls(relays, []faults.Hold{before(relays, "ClaimMessage")}, "release", "deduct", "refund", "close"),
	},
	{
		actor: "relay", verb: "marks", example: "relay marks A",
		does:  "writes down that the n-th message about the order is delivered",
		whats: []what{{hold: before(relays, "MarkMessageDelivered"), takes: commitTime}},
	},
	{
		actor: "refunder", verb: "calls", within: queryEvery, example: "refunder calls A query-refund",
		does:  "asks the channel what has become of a refund",
		whats: calls(refunders, []faults.Hold{before(refunders, "ClaimRefundQuery")}, "query-refund"),
	},
	{
		actor: "refunder", verb: "commits", once: true, example: "refunder commits A REFUNDED",
		does:  "moves the order by what the channel has answered",
		whats: commits(refunders, "REFUNDED"),
	},
	{
		actor: "reconciler", verb: "compares", noOrder: true, within: time.Hour, example: "reconciler compares",
		does:  "begins to compare the books of the hour; the last run before that time runs late",
		whats: []what{{hold: before(reconciler, "ClaimReconcileHour"), takes: commitTime}},
	},
	{
		actor: "stock", verb: "moves", once: true, example: "stock moves A release",
		does:  "commits that the order's stock is frozen, released or deducted",
		whats: movements("freeze", "release", "deduct"),
	},
	{
		actor: "channel", verb: "callback", sends: true, example: "channel callback A paid",
		does: "the n-th notification of that kind arrives; further copies keep their distance",
		whats: []what{
			notice("paid", "T-", "callback"), notice("refunded", "refund-", "refund-callback"),
			notice("failed", "failed-", "callback"), notice("closed", "closed-", "callback"),
		},
	},
	{
		actor: "channel", verb: "charges", example: "channel charges A",
		does:  "takes the buyer's money",
		whats: []what{transaction(faults.Hold{Nodes: channelNames, Roles: []string{"pay", "settle-charge"}})},
	},
	{
		actor: "channel", verb: "refunds", example: "channel refunds A",
		does:  "gives the buyer his money back, where that is later than it has accepted to",
		whats: []what{transaction(faults.Hold{Nodes: channelNames, Roles: []string{"settle-refund"}})},
	},
	{
		actor: "channel", verb: "answers", example: "channel answers A prepay",
		does:  "sends the n-th answer to a request of that kind",
		whats: answers("prepay", "pay", "query", "close", "refund", "query-refund"),
	},
}

const (
	// transactionLead is longer than a transaction takes.
	transactionLead = 10 * time.Millisecond
	// callLead is longer than a call takes that comes before another, and shorter than
	// the patience with one.
	callLead = 100 * time.Millisecond
)

// scanEvery and queryEvery are how often the jobs come by, at least as long as an order
// waits for them.
const (
	scanEvery  = 10 * time.Second
	queryEvery = 10 * time.Minute
)

func before(roles []string, op string) faults.Hold {
	return faults.Hold{Roles: roles, Op: op, Phase: sim.Before}
}

func after(roles []string, op string) faults.Hold {
	return faults.Hold{Roles: roles, Op: op, Phase: sim.After}
}

// transaction holds a task at its COMMIT, and until then at its BEGIN.
func transaction(task faults.Hold) what {
	hold, begin := task, task
	hold.Op, begin.Op, begin.Passed = "COMMIT", "BEGIN", ""
	return what{hold: hold, before: []faults.Hold{begin}, lead: transactionLead, takes: commitTime}
}

// begin holds tasks of these roles at their BEGIN, which takes no time but a lock.
func begin(word string, roles ...string) what { return what{word: word, hold: before(roles, "BEGIN")} }

func begins(kinds ...string) (whats []what) {
	for _, kind := range kinds {
		whats = append(whats, begin(kind, kind))
	}
	return whats
}

// commits are the ways in which tasks of these roles move an order.
func commits(roles []string, statuses ...string) (whats []what) {
	for _, s := range statements {
		if slices.Contains(statuses, s.status) {
			w := transaction(faults.Hold{Roles: roles, Passed: s.statement})
			w.word = s.status
			whats = append(whats, w)
		}
	}
	return whats
}

// calls are the requests that tasks of these roles send. They wait where the patience
// with the call has not begun: at one of the steps on the way to it.
func calls(roles []string, onTheWay []faults.Hold, kinds ...string) (whats []what) {
	for _, kind := range kinds {
		whats = append(whats, what{word: kind, hold: before(roles, kind), before: onTheWay, lead: callLead, sends: kind})
	}
	return whats
}

// answers are those to requests of these kinds.
func answers(kinds ...string) (whats []what) {
	for _, kind := range kinds {
		whats = append(whats, what{word: kind, hold: before([]string{kind}, "answer")})
	}
	return whats
}

func movements(kinds ...string) (whats []what) {
	for _, kind := range kinds {
		w := transaction(faults.Hold{Nodes: []string{"stock"}, Roles: []string{kind}})
		w.word = kind
		whats = append(whats, w)
	}
	return whats
}

// notice holds the wait of a notification: what follows it is that it is sent.
func notice(word, id, kind string) what {
	return what{
		word: word, takes: linkTime, sends: kind, trails: true,
		hold: faults.Hold{Nodes: channelNames, Roles: []string{"notify", "notify-copy"}, Key: id, Op: "sleep", Phase: sim.After},
	}
}

func pinVerbOf(actor, verb string) *pinVerb {
	i := slices.IndexFunc(pinVerbs, func(v pinVerb) bool { return v.actor == actor && v.verb == verb })
	if i < 0 {
		return nil
	}
	return &pinVerbs[i]
}

func (v *pinVerb) words() (words []string) {
	for _, w := range v.whats {
		if w.word != "" {
			words = append(words, w.word)
		}
	}
	return words
}

func (v *pinVerb) what(word string) *what {
	i := slices.IndexFunc(v.whats, func(w what) bool { return w.word == word })
	return &v.whats[i]
}

// holds returns what the case's pins do to a run.
func (c *Case) holds() []faults.Pin {
	config := shops{Config: system.Config{ScanEvery: scanEvery}}
	apply(shopSettings, c.Shop, &config)
	var holds []faults.Pin
	for _, p := range c.Pins {
		hold := p.hold()
		if hold.Within == scanEvery {
			hold.Within = config.ScanEvery
		}
		holds = append(holds, hold)
	}
	return holds
}

func (p Pin) hold() faults.Pin {
	v := pinVerbOf(p.Actor, p.Verb)
	w := v.what(p.What)
	about := p.Order
	if v.noOrder || v.anyOrder {
		about = ""
	}
	return faults.Pin{
		Group: p.group(), Until: p.At, Takes: w.takes, Node: p.On, About: about, Within: v.within,
		Hold: w.hold, Before: w.before, Lead: w.lead, Sends: w.sends, To: p.To, Trails: w.trails,
	}
}

// about tells which order a key or an operation names.
func (c *Case) about() func(string) string {
	known := func(order string) bool { return c.Workload.Orders[order] != nil }
	return func(text string) string { return orderIn(text, known) }
}

// missedPin is a pin that was not kept, and why.
type missedPin struct {
	Pin
	missed faults.Missed
}

func (c *Case) missed(all []faults.Missed) (pins []missedPin) {
	for _, m := range all {
		pins = append(pins, missedPin{c.Pins[m.Pin], m})
	}
	return pins
}

// tell says what became of a pin that was not kept: "FILE:LINE: 14:15:00.002 closer scans A ...".
func (m missedPin) tell(file string, trace *sim.Trace) string {
	text := fmt.Sprintf("%s:%d: %s %s", file, m.Line, shortClock(trace.Start.Add(m.At)), m.Pin)
	near := fmt.Sprintf("%s at %s", m.missed.Nearest, trace.Clock(m.missed.At))
	switch {
	case m.missed.Late > 0:
		return fmt.Sprintf("%s: %v late, for the system came to %s", text, m.missed.Late, near)
	case m.missed.Nearest != "":
		return text + ": never reached; what came nearest was " + near
	}
	return text + ": never reached, and nothing like it"
}
