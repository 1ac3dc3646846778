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
)

// hands do to a world what a plan says of channels, bills and rows, by the means that
// the channels' emulator has for it. What they did counts when it can be seen.
type hands struct {
	w        *world
	oddities map[string]*channel.Oddity // by CHANNEL/OUT-TRADE-NUMBER
	order    []string                   // of them
	edited   map[string]bool            // rows of bills, by LEDGER/REFERENCE
	watch    []sighting
	failed   error
}

// sighting is a perturbation that counts when a record shows it.
type sighting struct {
	seen  func(*sim.Record) bool
	fired func()
}

// arm puts a plan's perturbations into the world before it begins.
func (w *world) arm(inject injector) error {
	h := &hands{w: w, oddities: map[string]*channel.Oddity{}, edited: map[string]bool{}}
	inject.Arm(w.World, h.do)
	for _, trade := range h.order {
		body, err := json.Marshal(h.oddities[trade])
		h.failed = errors.Join(h.failed, err)
		ledger, number, _ := strings.Cut(trade, "/")
		h.exec(ledger, "INSERT INTO oddities (out_trade_no, body) VALUES (?, ?)", number, string(body))
	}
	if len(h.watch) > 0 {
		w.Trace().Watch(h.look)
	}
	return h.failed
}

func (h *hands) look(r *sim.Record) {
	h.watch = slices.DeleteFunc(h.watch, func(s sighting) bool {
		if s.seen(r) {
			s.fired()
			return true
		}
		return false
	})
}

func (h *hands) exec(database, query string, args ...any) {
	d := h.w.database(database)
	if d == nil {
		h.failed = errors.Join(h.failed, fmt.Errorf("there is no database %q", database))
		return
	}
	h.failed = errors.Join(h.failed, d.Exec(query, args...))
}

func (h *hands) oddity(trade string) *channel.Oddity {
	if h.oddities[trade] == nil {
		h.oddities[trade] = &channel.Oddity{}
		h.order = append(h.order, trade)
	}
	return h.oddities[trade]
}

// paidAtClose is how long a channel keeps from every query what it tells a close.
const paidAtClose = 2 * time.Hour

// do implements faults.Hands.
func (h *hands) do(p faults.Perturbation, fired func()) {
	ledger, number, _ := strings.Cut(p.At, "/")
	see := func(seen func(*sim.Record) bool) { h.watch = append(h.watch, sighting{seen, fired}) }
	charged := rowOf(ledger, "charges", "out_trade_no", number)
	switch p.Kind {
	case faults.UnknownOutcome, faults.ChannelError, faults.RateLimit:
		fault := channel.Fault{Path: p.Text, Kind: faultWord[p.Kind], Times: int(p.N)}
		o := h.oddity(p.At)
		o.Faults = append(o.Faults, fault)
		see(spent(ledger, number, len(o.Faults)-1, fault.Times))
	case faults.LateSettlement:
		h.oddity(p.At).SettleLagMs = p.By.Milliseconds()
		see(func(r *sim.Record) bool {
			return rowOf(ledger, "trades", "out_trade_no", number)(r) && r.Change.Int("settle_at_ms") > 0
		})
	case faults.QueryLag:
		h.oddity(p.At).QueryLagMs = p.For.Milliseconds()
		see(charged)
	case faults.PaidAtClose:
		h.oddity(p.At).QueryLagMs = paidAtClose.Milliseconds()
		see(charged)
	case faults.NotFoundYet:
		h.oddity(p.At).NotFoundMs = p.For.Milliseconds()
		see(rowOf(ledger, "trades", "out_trade_no", number))
	case faults.RepeatedNotice:
		h.oddity(p.At).Copies = int(p.N)
		see(charged)
	case faults.DisorderNotice:
		h.oddity(p.At).NotifyLagMs = p.By.Milliseconds()
		see(charged)
	case faults.Silence:
		h.oddity(p.At).Silent = true
		see(charged)
	case faults.FailedFirst:
		h.oddity(p.At).Declines = 1
		see(func(r *sim.Record) bool {
			return rowOf(ledger, "trades", "out_trade_no", number)(r) && r.Change.Int("declined") > 0
		})
	case faults.RefundAbnormal:
		o := h.oddity(p.At)
		o.RefundState, o.RefundLagMs = "ABNORMAL", p.For.Milliseconds()
		see(func(r *sim.Record) bool {
			return rowOf(ledger, "refunds", "out_trade_no", number)(r) && r.Change.Text("state") == "ABNORMAL"
		})
	case faults.SameNumber:
		h.oddity(p.At).ChannelTxn = firstCharge(p.Text)
		see(charged)
	case faults.BillLate:
		h.exec(ledger, "INSERT INTO bill_delays (bill_date, delay_ms) VALUES (?, ?)", number, p.By.Milliseconds())
		see(rowOf(ledger, "bills", "bill_date", number))
	case faults.BillMissing, faults.BillWrong, faults.BillExtra:
		h.editBill(p, ledger, number, see)
	case faults.RowDeleted, faults.RowEdited:
		h.editRow(p, fired)
	}
}

var faultWord = map[faults.Kind]string{
	faults.UnknownOutcome: channel.FaultLost, faults.ChannelError: channel.FaultError, faults.RateLimit: channel.FaultLimit,
}

// firstCharge is the number that a channel gives to a trade's first charge.
func firstCharge(trade string) string { return "T-" + trade + "-1" }

// editBill plants a mistake in a bill to come.
func (h *hands) editBill(p faults.Perturbation, ledger, trade string, see func(func(*sim.Record) bool)) {
	action, reference := "hide", firstCharge(trade)
	switch p.Kind {
	case faults.BillWrong:
		action = "change"
	case faults.BillExtra:
		action, reference = "add", "X-"+reference
	}
	row := ledger + "/" + reference
	if h.edited[row] {
		return // a row has one mistake; the other never comes to pass
	}
	h.edited[row] = true
	at := h.w.Trace().Start.Add(time.Minute).UnixMilli()
	h.exec(ledger, `INSERT INTO bill_edits (reference, action, kind, out_trade_no, order_no, amount_cents, currency, at_ms)
		VALUES (?, ?, 'charge', ?, ?, ?, 'CNY', ?)`, reference, action, trade, orderOf(trade), max(p.N, 1), at)
	charged := p.Kind == faults.BillExtra
	see(func(r *sim.Record) bool {
		charged = charged || rowOf(ledger, "charges", "channel_txn", reference)(r)
		return charged && isRow(r, ledger, "bills")
	})
}

// orderOf returns the order of an out-trade number.
func orderOf(trade string) string { return trade[:strings.LastIndex(trade, "-")] }

// editRow is an operator's hand in a row about an order: the first one of its table.
func (h *hands) editRow(p faults.Perturbation, fired func()) {
	parts := strings.SplitN(p.At, "/", 3)
	where := fmt.Sprintf("WHERE rowid = (SELECT min(rowid) FROM %q WHERE order_no = ?)", parts[1])
	query := fmt.Sprintf("DELETE FROM %q %s", parts[1], where)
	if p.Kind == faults.RowEdited {
		query = fmt.Sprintf("UPDATE %q SET amount_cents = amount_cents + %d %s", parts[1], p.N, where)
	}
	h.w.byHand(p.From, parts[0], query, parts[2], fired)
}

// handPatience is how long an operator waits before looking again.
const handPatience = 5 * time.Second

// byHand changes a database at a time, or as soon after as no lock is in the way and
// there is something to change.
func (w *world) byHand(at time.Duration, database, query, order string, fired func()) {
	w.At(at, "operator", func() {
		before := len(w.Trace().Records)
		err := w.database(database).Exec(query, order)
		if err == nil && len(w.Trace().Records) > before {
			fired()
			return
		}
		if again := w.Now() + handPatience; again < horizon {
			w.byHand(again, database, query, order, fired)
		}
	})
}

// isRow says whether a record is a change of a row of the table.
func isRow(r *sim.Record, database, table string) bool {
	return r.Change != nil && r.Change.Database == database && r.Change.Table == table
}

// rowOf finds the changes of rows that have a value.
func rowOf(database, table, column, value string) func(*sim.Record) bool {
	return func(r *sim.Record) bool { return isRow(r, database, table) && r.Change.Text(column) == value }
}

// spent finds the use of a fault that a trade has.
func spent(ledger, trade string, number, times int) func(*sim.Record) bool {
	return func(r *sim.Record) bool {
		if !rowOf(ledger, "oddities", "out_trade_no", trade)(r) {
			return false
		}
		var o channel.Oddity
		return json.Unmarshal([]byte(r.Change.Text("body")), &o) == nil && number < len(o.Faults) && o.Faults[number].Times < times
	}
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
	channels := c.Workload.channels()
	t := faults.Targets{
		Nodes:     append([]string{"shop-1", "shop-2", "stock"}, channels...),
		Databases: append([]string{"shop", "stock"}, channels...),
	}
	for _, shop := range []string{"shop-1", "shop-2"} {
		for _, other := range append([]string{"stock", "broker", "leases"}, channels...) {
			t.Ways = append(t.Ways, [2]string{shop, other})
		}
	}
	for _, name := range c.Workload.names() {
		order := c.Workload.Orders[name]
		t.Trades = append(t.Trades, order.Channel+"/"+name+"-1", other(channels, order.Channel)+"/"+name+"-2")
		t.Rows = append(t.Rows, "shop/payment_records/"+name)
	}
	for _, name := range channels {
		t.Days = append(t.Days, name+"/"+cmp.Or(c.Start, usualStart).In(personality(name).Zone).Format(time.DateOnly))
	}
	return t
}
