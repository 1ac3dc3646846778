package checker

import (
	"slices"

	"github.com/tillstorm/tillstorm/sim"
)

// version is how a row stood from one record of the trace on.
type version struct {
	since int
	row   *sim.Change // nil while there is none

	// Of an order: what has gone back of the charge that paid it, and what has or still may,
	// in cents.
	refunded, promised int64
}

// has says whether the row was there in one of the statuses.
func (w version) has(statuses ...string) bool {
	return w.row != nil && slices.Contains(statuses, w.row.Text("status"))
}

// past is how the shops' rows have stood, so that an answer can be held against all that
// was true while it was asked for.
type past struct {
	orders  map[string][]version // by number, as they followed each other
	refunds map[string][]version // likewise
	logs    map[string][]version // entries of an order's log; each stays

	tokens map[string]int // by out-trade number: the record at which the attempt got its token
	alerts map[int64]int  // by number: the record at which each was raised

	numbers  map[string][]string // of an order's refunds
	makers   map[string]string   // orders: the task that made it
	arrivals map[string]int      // requests, by task: when they arrived
	keyed    map[scope]int       // keys: when the first request under it arrived
}

func newPast() past {
	return past{
		orders: map[string][]version{}, refunds: map[string][]version{}, logs: map[string][]version{}, tokens: map[string]int{}, alerts: map[int64]int{}, numbers: map[string][]string{},
		makers: map[string]string{}, arrivals: map[string]int{}, keyed: map[scope]int{},
	}
}

// observe takes note of a row's change and of a request's arrival; old is the row before.
func (p *past) observe(r *sim.Record, old *sim.Change) {
	switch {
	case r.Event == sim.EventDeliver && r.Message.Leg == sim.Request:
		p.arrivals[r.Node+"/"+r.Op] = r.Seq
		if s := scopeOf(r.Message); s.key != "" && p.keyed[s] == 0 {
			p.keyed[s] = r.Seq
		}
	case r.Change == nil || r.Change.Database != shopDB:
	case r.Change.Table == "orders":
		p.keepOrder(r, old)
	case r.Change.Table == "refunds":
		p.keepRefund(r, old)
	case r.Change.Table == "payment_orders":
		if number := r.Change.Text("out_trade_no"); r.Change.Text("prepay_token") != "" && p.tokens[number] == 0 {
			p.tokens[number] = r.Seq
		}
	case r.Change.Table == "alerts" && old == nil:
		p.alerts[r.Change.Int("alert_id")] = r.Seq
	case r.Change.Table == "order_status_log" && old == nil:
		order := r.Change.Text("order_no")
		p.logs[order] = append(p.logs[order], version{since: r.Seq, row: r.Change})
	}
}

func (p *past) keepOrder(r *sim.Record, old *sim.Change) {
	order, row := textOf(r.Change, old, "order_no"), r.Change
	if row.Deleted() {
		row = nil
	} else if old == nil {
		p.makers[order] = taskOf(r)
	}
	p.orders[order] = append(p.orders[order], p.sum(order, version{since: r.Seq, row: row}))
}

func (p *past) keepRefund(r *sim.Record, old *sim.Change) {
	number, order, row := textOf(r.Change, old, "refund_no"), textOf(r.Change, old, "order_no"), r.Change
	if row.Deleted() {
		row = nil
	}
	if p.refunds[number] == nil {
		p.numbers[order] = append(p.numbers[order], number)
	}
	p.refunds[number] = append(p.refunds[number], version{since: r.Seq, row: row})
	if n := len(p.orders[order]); n > 0 {
		p.orders[order] = append(p.orders[order], p.sum(order, version{since: r.Seq, row: p.orders[order][n-1].row}))
	}
}

// sum adds up what goes back of the charge that has paid an order.
func (p *past) sum(order string, w version) version {
	for _, number := range p.numbers[order] {
		refund := last(p.refunds[number]).row
		if w.row == nil || refund == nil || txnOf(refund) != w.row.Text("paid_channel")+" "+w.row.Text("paid_txn") {
			continue
		}
		if refund.Text("state") == "SUCCEEDED" {
			w.refunded += refund.Int("amount_cents")
		}
		if mayGiveBack(refund) {
			w.promised += refund.Int("amount_cents")
		}
	}
	return w
}

// mayGiveBack says whether a refund has given money back, or may yet do it: one that failed
// has not, unless its money has left and not arrived.
func mayGiveBack(refund *sim.Change) bool {
	return refund.Text("state") != "CLOSED" && (refund.Text("state") != "FAILED" || refund.Text("channel_state") == "ABNORMAL")
}

// during returns all that was true of something at some time since a record.
func during(all []version, from int) []version {
	first := len(all)
	for first > 0 && all[first-1].since > from {
		first--
	}
	if first == 0 {
		return append([]version{{}}, all...)
	}
	return all[first-1:]
}

// last returns how something stands now.
func last(all []version) version {
	if len(all) == 0 {
		return version{}
	}
	return all[len(all)-1]
}

// since returns the record from which on what a request is answered may have been true:
// its own arrival, or that of the first under its key.
func (p *past) since(r *sim.Record, request *sim.Message) int {
	if s := scopeOf(request); s.key != "" {
		return p.keyed[s]
	}
	return p.arrivals[taskOf(r)]
}

// textOf returns a column of a row, or of the row that was there before it was deleted.
func textOf(row, old *sim.Change, column string) string {
	if row.Deleted() && old != nil {
		return old.Text(column)
	}
	return row.Text(column)
}
