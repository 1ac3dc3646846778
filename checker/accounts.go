package checker

import (
	"encoding/json"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// accounts are rows by the names that others know them by, as far as several properties
// ask for them.
type accounts struct {
	charges  map[string]*sim.Change // of the ledgers, by channel and transaction
	intents  map[string]*sim.Change // our refunds, by number
	executed map[string]*sim.Change // the ledgers' refunds, by number
	messages map[string]*sim.Change // every message that ever was in the outbox, by kind and key
	moves    map[string]*sim.Change // of the stock journal, by movement and number
	alerts   map[string]*sim.Change // by kind and subject
}

func newAccounts() accounts {
	return accounts{
		charges: map[string]*sim.Change{}, intents: map[string]*sim.Change{}, executed: map[string]*sim.Change{},
		messages: map[string]*sim.Change{}, moves: map[string]*sim.Change{}, alerts: map[string]*sim.Change{},
	}
}

// keep brings the accounts up to date; old is the row before the change.
func (a *accounts) keep(old, row *sim.Change) {
	switch row.Table {
	case "charges":
		index(a.charges, old, row, chargeOf)
	case "refunds":
		refunds := a.executed
		if row.Database == shopDB {
			refunds = a.intents
		}
		index(refunds, old, row, func(row *sim.Change) string { return row.Text("refund_no") })
	case "outbox":
		if !row.Deleted() { // what was delivered long ago is deleted, and was committed all the same
			a.messages[messageOf(row)] = row
		}
	case "alerts":
		index(a.alerts, old, row, func(row *sim.Change) string { return row.Text("kind") + " " + row.Text("subject") })
	case "stock_journal":
		index(a.moves, old, row, func(row *sim.Change) string { return row.Text("movement") + " " + row.Text("order_no") })
	}
}

// messageOf names a message of the outbox.
func messageOf(row *sim.Change) string { return row.Text("kind") + " " + row.Text("message_key") }

// stockOrder returns the order that has a number at the stock service: what follows a dot
// tells the number of a reinstated order from its first one.
func stockOrder(number string) string {
	order, _, _ := strings.Cut(number, ".")
	return order
}

// orderOfMessage returns the order that a message is about.
func (e *Evidence) orderOfMessage(message *sim.Change) string {
	key := message.Text("message_key")
	switch message.Text("kind") {
	case "stock-release", "stock-deduct":
		return stockOrder(key)
	case "refund":
		if intent := e.accounts.intents[key]; intent != nil {
			return intent.Text("order_no")
		}
	case "channel-close":
		return key[:max(0, strings.LastIndexByte(key, '-'))]
	case "reinstate":
		var about body
		_ = json.Unmarshal([]byte(message.Text("body")), &about) // what is no JSON is about nothing
		return about.OrderNo
	}
	return key
}
