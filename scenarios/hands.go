package scenarios

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system/channel"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// hands do to a world what a plan says of channels, bills and rows, by the means that
// the channels' emulator has for it: each when the trade is there that it is about, so
// that what never came to pass leaves no trace.
type hands struct {
	w        *world
	oddities map[string]*oddity // by CHANNEL/OUT-TRADE-NUMBER
	waiting  []errand
}

// oddity is how a channel is to behave for one trade.
type oddity struct {
	channel.Oddity
	fired []func()
}

// errand is something to do once a record shows that it can be done.
type errand struct {
	due func(*sim.Record) bool
	do  func() error
}

// arm puts a plan's perturbations into the world before it begins.
func (w *world) arm(inject injector) {
	h := &hands{w: w, oddities: map[string]*oddity{}}
	inject.Arm(w.World, h.take)
	if len(h.waiting) > 0 {
		w.Trace().Watch(h.look)
	}
}

func (h *hands) look(r *sim.Record) {
	h.waiting = slices.DeleteFunc(h.waiting, func(e errand) bool {
		if !e.due(r) {
			return false
		}
		h.try(h.w.Now(), e.do)
		return true
	})
}

// handPatience is how long a hand waits for a lock.
const handPatience = time.Millisecond

// try does something between two steps, as soon as no lock is in the way.
func (h *hands) try(at time.Duration, do func() error) {
	h.w.At(at, "hands", func() {
		err := do()
		if sqldb.IsBusy(err) {
			h.try(h.w.Now()+handPatience, do)
			return
		}
		h.w.failed = errors.Join(h.w.failed, err) // what cannot be done is a mistake in the plan
	})
}

func (h *hands) wait(due func(*sim.Record) bool, do func() error) {
	h.waiting = append(h.waiting, errand{due, do})
}

// paidAtClose is how long a channel keeps from every query what it tells a close.
const paidAtClose = 20 * time.Minute

// take implements faults.Hands.
func (h *hands) take(p faults.Perturbation, fired func()) {
	ledger, number, _ := strings.Cut(p.At, "/")
	if h.w.database(ledger) == nil {
		return // it can never come to pass
	}
	switch p.Kind {
	case faults.BillLate:
		h.try(0, h.change(ledger, fired, "INSERT INTO bill_delays (bill_date, delay_ms) VALUES (?, ?)", number, p.By.Milliseconds()))
	case faults.BillExtra, faults.BackExtra:
		h.try(0, h.editBill(p, "X-"+firstCharge(number), fired))
	case faults.BillMissing, faults.BillWrong, faults.BillMisfiled, faults.BackMissing, faults.BackWrong, faults.BackMisfiled:
		h.editBilled(p, fired)
	case faults.RowDeleted, faults.RowEdited:
		h.editRow(p, fired)
	default:
		o := h.oddity(ledger, number)
		o.fired = append(o.fired, fired)
		o.add(p)
	}
}

// oddity returns how a channel is to behave for a trade; it is told as the trade is opened.
func (h *hands) oddity(ledger, number string) *oddity {
	trade := ledger + "/" + number
	if h.oddities[trade] == nil {
		o := &oddity{}
		h.oddities[trade] = o
		h.wait(rowOf(ledger, "trades", "out_trade_no", number), func() error {
			body, err := json.Marshal(o.Oddity)
			if err != nil {
				panic(err) // a value of the harness's own
			}
			done := func() {
				for _, fired := range o.fired {
					fired()
				}
			}
			return h.change(ledger, done, "INSERT INTO oddities (out_trade_no, body) VALUES (?, ?)", number, string(body))()
		})
	}
	return h.oddities[trade]
}

func (o *oddity) add(p faults.Perturbation) {
	switch p.Kind {
	case faults.UnknownOutcome, faults.ChannelError, faults.RateLimit:
		o.Faults = append(o.Faults, channel.Fault{Path: p.Text, Kind: faultWord[p.Kind], Times: int(p.N)})
	case faults.LateSettlement:
		o.SettleLagMs = p.By.Milliseconds()
	case faults.QueryLag:
		o.QueryLagMs = p.For.Milliseconds()
	case faults.PaidAtClose:
		o.QueryLagMs = paidAtClose.Milliseconds()
	case faults.NotFoundYet:
		o.NotFoundMs = p.For.Milliseconds()
	case faults.RepeatedNotice:
		o.Copies = int(p.N)
	case faults.DisorderNotice:
		o.NotifyLagMs = p.By.Milliseconds()
	case faults.Silence:
		o.Silent = true
	case faults.ChargeUntold:
		o.ChargeUntold = true
	case faults.FewNotices:
		o.MostSends = int(p.N)
	case faults.TradeUnnamed:
		o.TradeUnnamed = true
	case faults.FailedFirst:
		o.Declines = 1
	case faults.RefundAbnormal:
		o.RefundState, o.RefundLagMs = "ABNORMAL", p.For.Milliseconds()
	case faults.RefundClosed:
		o.RefundState, o.RefundLagMs = "CLOSED", p.For.Milliseconds()
	case faults.SameNumber:
		o.ChannelTxn = firstCharge(p.Text)
	}
}

var faultWord = map[faults.Kind]string{
	faults.UnknownOutcome: channel.FaultLost, faults.ChannelError: channel.FaultError, faults.RateLimit: channel.FaultLimit,
}

// firstCharge is the number that a channel gives to a trade's first charge.
func firstCharge(trade string) string { return "T-" + trade + "-1" }

// change returns what changes a row by hand.
func (h *hands) change(database string, fired func(), query string, args ...any) func() error {
	return func() error {
		err := h.w.database(database).Exec(query, args...)
		if err == nil {
			fired()
		}
		return err
	}
}

// billMistake is what a kind does to a bill's row, and of what kind the row is.
type billMistake struct{ action, row string }

var billMistakes = map[faults.Kind]billMistake{
	faults.BillMissing: {"hide", "charge"}, faults.BillWrong: {"change", "charge"}, faults.BillMisfiled: {"change", "charge"}, faults.BillExtra: {"add", "charge"},
	faults.BackMissing: {"hide", "refund"}, faults.BackWrong: {"change", "refund"}, faults.BackMisfiled: {"change", "refund"}, faults.BackExtra: {"add", "refund"},
}

// editBilled plants a mistake in the bill's row of a trade's charge or of its first
// refund, once that is there.
func (h *hands) editBilled(p faults.Perturbation, fired func()) {
	ledger, trade, _ := strings.Cut(p.At, "/")
	table, column := "charges", "channel_txn"
	if billMistakes[p.Kind].row == "refund" {
		table, column = "refunds", "refund_no"
	}
	reference, written := "", rowOf(ledger, table, "out_trade_no", trade)
	h.wait(func(r *sim.Record) bool {
		if written(r) {
			reference = r.Change.Text(column)
		}
		return reference != ""
	}, func() error { return h.editBill(p, reference, fired)() })
}

// editBill returns what plants a mistake in a bill to come. A row has one mistake: a
// further one takes its place.
func (h *hands) editBill(p faults.Perturbation, reference string, fired func()) func() error {
	ledger, trade, _ := strings.Cut(p.At, "/")
	mistake, order, currency := billMistakes[p.Kind], orderOf(trade), "CNY"
	switch p.Text {
	case "trade":
		trade = order + "-77"
	case "order":
		order += "77"
	case "currency":
		currency = "JPY"
	}
	at := h.w.Trace().Start.Add(time.Minute).UnixMilli()
	return h.change(ledger, fired, `INSERT OR REPLACE INTO bill_edits (reference, action, kind, out_trade_no, order_no, amount_cents, currency, at_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, reference, mistake.action, mistake.row, trade, order, p.N, currency, at)
}

// orderOf returns the order of an out-trade number.
func orderOf(trade string) string { return trade[:max(0, strings.LastIndex(trade, "-"))] }

// editRow is an operator's hand in a row about an order, the first one of its table:
// when something happens after the perturbation's time and the row is there.
func (h *hands) editRow(p faults.Perturbation, fired func()) {
	parts := strings.SplitN(p.At, "/", 3)
	where := fmt.Sprintf("WHERE rowid = (SELECT min(rowid) FROM %q WHERE order_no = ?)", parts[1])
	query := fmt.Sprintf("DELETE FROM %q %s", parts[1], where)
	if p.Kind == faults.RowEdited {
		query = fmt.Sprintf("UPDATE %q SET amount_cents = amount_cents + %d %s", parts[1], p.N, where)
	}
	isThere, written := false, rowOf(parts[0], parts[1], "order_no", parts[2])
	h.wait(func(r *sim.Record) bool {
		isThere = isThere || written(r)
		return isThere && r.At >= p.From
	}, h.change(parts[0], fired, query, parts[2]))
}

// isRow says whether a record is a change of a row of the table.
func isRow(r *sim.Record, database, table string) bool {
	return r.Change != nil && r.Change.Database == database && r.Change.Table == table
}

// rowOf finds the changes of rows that have a value.
func rowOf(database, table, column, value string) func(*sim.Record) bool {
	return func(r *sim.Record) bool { return isRow(r, database, table) && r.Change.Text(column) == value }
}

// database returns the world's database of that name.
func (w *world) database(name string) *sim.Database {
	for _, d := range w.Databases() {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// targets are what there is in the world of a workload for faults to strike.
func (c *Case) targets() faults.Targets {
	channels, shops := c.channels(), shopNames(c.Shop)
	t := faults.Targets{
		Nodes:     slices.Concat(shops, []string{"stock"}, channels),
		Databases: append([]string{"shop", "stock"}, channels...),
	}
	for _, shop := range shops {
		for _, other := range append([]string{"stock", "broker", "leases"}, channels...) {
			t.Ways = append(t.Ways, [2]string{shop, other})
		}
	}
	for _, name := range c.Workload.names() {
		order := c.Workload.Orders[name]
		t.Trades = append(t.Trades, order.Channel+"/"+name+"-1", other(channels, order.Channel)+"/"+name+"-2")
		if c.Workload.leaves(name) { // and comes back
			t.Trades = append(t.Trades, order.Channel+"/"+name+"-2", order.Channel+"/"+name+"-3")
		}
		t.Rows = append(t.Rows, "shop/payment_records/"+name)
	}
	for _, name := range channels {
		t.Days = append(t.Days, name+"/"+cmp.Or(c.Start, usualStart).In(personality(name).Zone).Format(time.DateOnly))
	}
	return t
}
