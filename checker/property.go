package checker

import (
	"fmt"

	"github.com/tillstorm/tillstorm/sim"
)

// Property is a sentence that must hold in every run. Its parts look at evidence;
// either may be nil.
type Property struct {
	Name     string
	Sentence string

	observe func(*Evidence, *sim.Record) // at each record
	atEnd   func(*Evidence)              // when the run has settled
}

// Properties returns all properties, in the order of the docs.
func Properties() []Property {
	return []Property{
		{"charge-once", "an order keeps the money of at most one channel transaction, whatever is repeated", observeChargeOnce, endChargeOnce},
		{"no-orphan-money", "every successful charge ends on a paid order, or is returned in full exactly once", nil, endNoOrphanMoney},
		{"closed-is-final", "a closed order never leaves CLOSED (except by the declared reinstate policy)", observeClosedIsFinal, nil},
		{"legal-transitions", "every status change is one that the table allows, and the row equals its log's last entry", observeLegalTransitions, endLegalTransitions},
		{"effect-once", "a cause has each of its effects exactly once", observeEffectOnce, endEffectOnce},
		{"refund-bounded", "what is refunded never exceeds what was paid, and each intent is executed at most once", observeRefundBounded, nil},
		{"books-match-channel", "at the end, our charges and refunds equal the channel's, one to one", observeBooksMatchChannel, endBooksMatchChannel},
		{"stock-conserved", "available + frozen + sold is what was put in; none is negative; nothing stays frozen for a dead order", observeStockConserved, endStockConserved},
		{"outbox-delivered", "every committed message has its effect, and no effect lacks its committed message", observeOutboxDelivered, endOutboxDelivered},
		{gapFound, "reconciliation reports every real difference, once, and nothing else", observeGapFound, endGapFound},
		{"authentic-only", "only an authentic callback for a known attempt with the right amount has any effect", observeAuthenticOnly, nil},
		{"acked-is-durable", "what was acknowledged survives every crash", observeAckedIsDurable, nil},
		{"same-key-same-answer", "one key with one content has one effect and one answer; other content is refused", observeSameKey, nil},
		{"no-call-in-transaction", "no task talks to the network while it holds an open transaction", observeNoCallInTransaction, nil},
		{"definite-answer", "a delivered callback gets a definite answer within 5 s while database and process are up", observeDefiniteAnswer, endDefiniteAnswer},
		{"close-on-time", "an unpaid order is closed between its deadline and deadline + slack, by true time", observeCloseOnTime, endCloseOnTime},
		{"job-exclusive", "two runs of a singleton job never both take effect on the same item", observeJobExclusive, nil},
		{finallyTerminal, "at the end every order, attempt, refund and message is in a final state", nil, endFinallyTerminal},
		{"no-unexplained-error", "every 5xx and every panic is explained by an injected fault", observeNoUnexplainedError, nil},
		{"linearizable-orders", "the answers about an order fit one order of events that respects real time", observeAnswers, endLinearizableOrders},
		{"linearizable-stock", "the answers about stock fit one order of events that respects real time", nil, endLinearizableStock},
	}
}

const (
	// gapFound is the one property of an order that a person has had a hand in.
	gapFound = "gap-found"
	// finallyTerminal is the one property of the end of a run that has none.
	finallyTerminal = "finally-terminal"
)

// Money is an amount in a currency's smallest unit.
type Money struct {
	Cents    int64  `json:"cents"`
	Currency string `json:"currency"`
}

// String returns the amount as people write it, "99.00 CNY".
func (m Money) String() string {
	sign, cents := "", m.Cents
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d %s", sign, cents/100, cents%100, m.Currency)
}

// Failure is one broken property.
type Failure struct {
	Property string
	Sentence string
	Order    string // whose money it is
	Stake    Money  // what may be lost
	Message  string // what happened, in orders and money
	Roles    string // who was involved, without numbers: part of the fingerprint
	Seq      int    // the trace record at which it became wrong
	About    []int  // the records at which the rows that it is about became what they are
	AtEnd    bool   // it showed when all was over; Seq is then the last of these
}

// Error returns the sentence and what broke it.
func (f Failure) Error() string {
	if f.Sentence == "" {
		return f.Property + ": " + f.Message
	}
	return fmt.Sprintf("%s: %s: %s", f.Property, f.Sentence, f.Message)
}

// Fingerprint is equal for failures of the same kind: the property and the roles
// involved, without times, orders and amounts.
func (f Failure) Fingerprint() string { return f.Property + " | " + f.Roles }
