package checker

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tillstorm/tillstorm/sim"
)

// differing tells in which fields two rows differ: in some columns, or in the amount with its
// currency.
func differing(ours, theirs *sim.Change, columns ...string) string {
	var fields []string
	field := func(name, our, their string) {
		if our != their {
			fields = append(fields, fmt.Sprintf("the %s is %s in %s, and %s in %s", name, our, sourceOf(ours), their, sourceOf(theirs)))
		}
	}
	for _, column := range columns {
		field(fieldNames[column], cmp.Or(ours.Text(column), "nothing"), cmp.Or(theirs.Text(column), "nothing"))
	}
	field("amount", amountOf(ours).String(), amountOf(theirs).String())
	return strings.Join(fields, "; ")
}

var fieldNames = map[string]string{"order_no": "order", "out_trade_no": "trade"}

// contentOf tells what a row says, and where it stands.
func contentOf(row *sim.Change) string {
	if row.Table == "orders" {
		return fmt.Sprintf("our order %s is %s, of %s", row.Text("order_no"), row.Text("status"), amountOf(row))
	}
	text := sourceOf(row) + " says order " + row.Text("order_no")
	if trade := row.Text("out_trade_no"); trade != "" {
		text += ", trade " + trade
	}
	text += ", " + amountOf(row).String()
	if state := row.Text("state"); state != "" {
		text += ", " + state
	}
	return text
}

// sourceOf tells whose word a row is.
func sourceOf(row *sim.Change) string {
	switch {
	case row.Table == "bill_rows":
		return row.Database + "'s bill of " + row.Text("bill_date")
	case row.Database != shopDB:
		return row.Database + "'s ledger"
	case row.Table == "payment_records":
		return "our record"
	case row.Table == "refunds":
		return "our refund"
	case row.Table == "payment_orders":
		return "our attempt"
	}
	return "our order"
}

// truthOf tells what rows say, and of what stands in no bill in which it should.
func (e *Evidence) truthOf(rows []*sim.Change) string {
	var says []string
	for _, row := range rows {
		text := contentOf(row)
		ms := cmp.Or(row.Int("charged_ms"), row.Int("accepted_ms"))
		if day, known := e.dayAt(row.Database, ms); known && ms > 0 {
			text += " for the bill of " + day.name
			if !e.isBillMade(row.Database, day.name) {
				text += ", which is not made yet"
			}
		}
		says = append(says, text)
	}
	return strings.Join(says, "; ")
}
