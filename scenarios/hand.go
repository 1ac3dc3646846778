package scenarios

import (
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/faults"
)

// Hand is a line of a timeline in which a person changes a row past the system. It is a
// fault like the operator's in the section of faults.
type Hand struct {
	At    time.Duration
	Edits bool   // else it deletes
	What  string // which row
	Order string
	Cents int64 // of Edits: by how much
}

type handRow struct {
	word, row string
	noAmount  bool
}

// handRows are the rows about an order that a person may change.
var handRows = []handRow{
	{"record", "shop/payment_records", false}, {"order", "shop/orders", false},
	{"refund", "shop/refunds", false}, {"movement", "stock/stock_journal", true},
}

func (h Hand) perturbation() faults.Perturbation {
	i := slices.IndexFunc(handRows, func(r handRow) bool { return r.word == h.What })
	p := faults.Perturbation{Kind: faults.RowDeleted, At: handRows[i].row + "/" + h.Order, From: h.At}
	if h.Edits {
		p.Kind, p.N = faults.RowEdited, h.Cents
	}
	return p
}
