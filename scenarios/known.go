package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/faults"
)

// ParseFaults reads a plan for the incident, on top of another. It refuses the names that
// are in no world of this incident; of tasks, operations and kinds of messages only a run
// tells. An error is "line:column: message".
func (x *Incident) ParseFaults(text string, onTopOf faults.Plan) (faults.Plan, error) {
	return faults.ParseKnown(text, onTopOf, x.known().mistake)
}

// known are the names in an incident's world.
type known struct {
	x               *Incident
	channels, shops []string
}

func (x *Incident) known() *known {
	c := x.Case()
	return &known{x, c.channels(), shopNames(c.Shop)}
}

func (k *known) nodes() []string {
	return slices.Concat(k.shops, []string{"stock", "staff", "buyer", "stranger"}, k.channels)
}

// mistake says what is wrong with a name in a line of faults, "" if nothing is.
func (k *known) mistake(kind faults.Kind, n faults.Name) string {
	switch n.Of {
	case faults.OfNode:
		return unknownName("node", n.Text, k.nodes())
	case faults.OfWayEnd:
		return unknownName("node", n.Text, append(k.nodes(), "broker", "leases"))
	case faults.OfDatabase:
		return unknownName("database", n.Text, append([]string{"shop", "stock"}, k.channels...))
	case faults.OfChannel:
		return unknownName("channel", n.Text, k.channels)
	case faults.OfTrade:
		if kind != faults.BillExtra && kind != faults.BackExtra { // what never was may be of an order that never was
			return k.tradeMistake(n.Text)
		}
	case faults.OfRow:
		return k.rowMistake(kind, n.Text)
	case faults.OfKey:
		return k.keyMistake(n.Text)
	}
	return ""
}

// mostListed is how many names are listed to somebody who gives one that is none of them.
const mostListed = 25

// unknownName says that a name is none of those that there are.
func unknownName(what, name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	near := faults.Suggest(name, known)
	switch {
	case near != "":
	case len(known) > mostListed:
		near = fmt.Sprintf("; the nearest of %d are %s", len(known), strings.Join(faults.Nearest(name, known, 3), ", "))
	default:
		near = "; there are " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("unknown %s %q%s", what, name, near)
}

// unknownDefect says that a defect is none of those in a folder, and how to list them if they
// are many.
func unknownDefect(name, folder string, known []string) string {
	mistake := unknownName("defect", name, known)
	if mistake != "" && len(known) > mostListed && faults.Suggest(name, known) == "" {
		mistake += "; 'ls " + folder + "' lists all"
	}
	return mistake
}

func (k *known) orderMistake(number string) string {
	if k.x.order(number) != nil {
		return ""
	}
	return k.x.unknownOrder(number)
}

var tradePattern = regexp.MustCompile(`^(.+)-[1-9][0-9]*$`)

func (k *known) tradeMistake(trade string) string {
	parts := tradePattern.FindStringSubmatch(trade)
	if parts == nil {
		return fmt.Sprintf("a trade is ORDER-ATTEMPT, for example A-1, not %q", trade)
	}
	return k.orderMistake(parts[1])
}

// Rows that a person may change are those that reconciliation compares with others.
var (
	rowsWithAmount = []string{"shop/orders", "shop/payment_records", "shop/refunds"}
	rowsToDelete   = append(slices.Clone(rowsWithAmount), "stock/stock_journal")
)

func (k *known) rowMistake(kind faults.Kind, row string) string {
	i := strings.LastIndex(row, "/")
	tables := rowsToDelete
	if kind == faults.RowEdited {
		tables = rowsWithAmount
	}
	if mistake := unknownName("table", row[:i], tables); mistake != "" {
		return mistake
	}
	return k.orderMistake(row[i+1:])
}

// keyMistake refuses what can only be an order. A key may also be a trade, a refund or a
// SKU, of which only the run tells which there are.
func (k *known) keyMistake(key string) string {
	if !orderPattern.MatchString(key) || skuPattern.MatchString(key) {
		return ""
	}
	return k.orderMistake(key)
}
