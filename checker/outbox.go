package checker

import (
	"fmt"

	"github.com/tillstorm/tillstorm/sim"
)

// delivery is a kind of message: what it is written for, and what it brings about elsewhere.
type delivery struct {
	kind string
	// fact returns the message's key if a row's change is the fact that the message must be
	// committed with; nil if it may be written or not.
	fact func(e *Evidence, row *sim.Change) string
	// effect returns the message's key if a row is what only such a message may bring
	// about; nil if it can come about otherwise.
	effect func(e *Evidence, row *sim.Change) string
	// done says, in the end, whether a message has brought about what it is for.
	done func(e *Evidence, message *sim.Change) bool
}

// deliveries are all kinds of messages that there are. The list is never changed.
var deliveries = []delivery{
	{"stock-release", orderBecomes("CLOSED"), movesStock("release"), hasMoved("release")},
	{"stock-deduct", orderBecomes("PAID"), movesStock("deduct"), hasMoved("deduct")},
	{"refund", newIntent, executesRefund, isExecuted},
	{"channel-close", nil, nil, takesNothing},
	{"reinstate", nil, nil, isSettled},
	{"cancel", nil, nil, isDecided},
	{"close-timer", nil, nil, isDecided},
}

// orderBecomes is an order's change of status, if stock must move for it.
func orderBecomes(status string) func(*Evidence, *sim.Change) string {
	return func(e *Evidence, row *sim.Change) string {
		if row.Table != "orders" || row.Text("sku") == "" || row.Text("status") != status || e.old != nil && e.old.Text("status") == status {
			return ""
		}
		return row.Text("stock_no")
	}
}

func movesStock(movement string) func(*Evidence, *sim.Change) string {
	return func(_ *Evidence, row *sim.Change) string {
		if row.Table != "stock_journal" || row.Text("movement") != movement {
			return ""
		}
		return row.Text("order_no")
	}
}

func hasMoved(movement string) func(*Evidence, *sim.Change) bool {
	return func(e *Evidence, message *sim.Change) bool {
		return e.accounts.moves[movement+" "+message.Text("message_key")] != nil
	}
}

func newIntent(e *Evidence, row *sim.Change) string {
	if row.Table != "refunds" || row.Database != shopDB || e.old != nil {
		return ""
	}
	return row.Text("refund_no")
}

// executesRefund: one that we never meant is refund-bounded's.
func executesRefund(e *Evidence, row *sim.Change) string {
	number := row.Text("refund_no")
	if row.Table != "refunds" || row.Database == shopDB || e.accounts.intents[number] == nil {
		return ""
	}
	return number
}

// isExecuted: a channel may also have refused the refund for good.
func isExecuted(e *Evidence, message *sim.Change) bool {
	number := message.Text("message_key")
	intent := e.accounts.intents[number]
	return e.accounts.executed[number] != nil || intent != nil && intent.Text("state") == "FAILED"
}

// takesNothing: the channel takes no money for the trade any more. Some channels close none
// that its buyer has never opened: such a trade ends by itself.
func takesNothing(e *Evidence, message *sim.Change) bool {
	return !e.any("trades", func(trade *sim.Change) bool {
		return trade.Text("out_trade_no") == message.Text("message_key") && trade.Text("state") == "NOTPAY" && trade.Int("started_ms") > 0
	})
}

// isSettled: the late charge has paid its order after all, or it goes back.
func isSettled(e *Evidence, message *sim.Change) bool {
	number := message.Text("message_key")
	order := e.orders[e.orderOfMessage(message)]
	return e.accounts.intents[number] != nil || order != nil && "R-"+order.Text("paid_channel")+"-"+order.Text("paid_txn") == number
}

func isDecided(e *Evidence, message *sim.Change) bool {
	return e.statusOf(e.orderOfMessage(message)) != "CREATED"
}

// observeOutboxDelivered finds, at each commit, a fact without its message, and an effect
// that no message has asked for.
func observeOutboxDelivered(e *Evidence, r *sim.Record) {
	if r.Change == nil || r.Change.Deleted() {
		return
	}
	for i := range deliveries {
		d := &deliveries[i]
		if d.fact != nil {
			if key := d.fact(e, r.Change); key != "" {
				e.expectMessage(d.kind, key, r.Change.Text("order_no"), "has no message with it")
			}
		}
		if d.effect != nil && e.old == nil {
			if key := d.effect(e, r.Change); key != "" {
				e.expectMessage(d.kind, key, stockOrder(r.Change.Text("order_no")), "was asked for by no message")
			}
		}
	}
}

// expectMessage has it checked, when the commit is whole, that a message was committed.
func (e *Evidence) expectMessage(kind, key, order, otherwise string) {
	e.atCommit(func(by *sim.Record) {
		if e.accounts.messages[kind+" "+key] != nil {
			return
		}
		price := e.price(order)
		e.fail(Failure{Order: order, Stake: price, Seq: by.Seq, Roles: kind + " " + otherwise + " by " + sim.Role(by.Task), Message: fmt.Sprintf(
			"order %s of %s: what was committed at %s %s: %s of %s", order, price, e.at(by), otherwise, kind, key)})
	})
}

// endOutboxDelivered finds a message whose effect isn't there.
func endOutboxDelivered(e *Evidence) {
	for _, message := range e.table("outbox") {
		for _, d := range deliveries {
			if d.kind != message.Text("kind") || d.done(e, message) {
				continue
			}
			order := e.orderOfMessage(message)
			e.fail(Failure{Order: order, Stake: e.price(order), Roles: d.kind + " without effect", Message: fmt.Sprintf(
				"order %s of %s: the message %s is %s, and nothing has come of it when everything has come to rest",
				order, e.price(order), messageOf(message), message.Text("state"))}, message)
		}
	}
}
