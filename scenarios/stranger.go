package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system/signature"
)

// Forgery is a way to post a notice that is none: by somebody who listens, or who has
// stolen the key, or by a channel that is mistaken.
type Forgery string

const (
	Unsigned       Forgery = "unsigned"        // without a signature
	OtherKey       Forgery = "other-key"       // signed with a key that is not ours
	OtherAmount    Forgery = "other-amount"    // a true notice with another amount and its old signature
	OtherCurrency  Forgery = "other-currency"  // likewise
	Replayed       Forgery = "replayed"        // a true notice, hours later
	UnknownAttempt Forgery = "unknown-attempt" // signed, for an attempt that is none
	Underpaid      Forgery = "underpaid"       // signed, with too little money
	OtherMerchant  Forgery = "other-merchant"  // signed, for another merchant
	OtherCoin      Forgery = "other-coin"      // signed, with the amount in another currency
	OtherChannel   Forgery = "other-channel"   // signed, on behalf of a channel that the attempt is not on
	RefundUnsigned Forgery = "refund-unsigned" // of a refund, without a signature
	RefundWrong    Forgery = "refund-wrong"    // of a refund, signed, with another amount
	RefundCoin     Forgery = "refund-coin"     // of a refund, signed, with the amount in another currency
	RefundChannel  Forgery = "refund-channel"  // of a refund, signed, on behalf of another channel
	RefundMerchant Forgery = "refund-merchant" // of a refund, signed, for another merchant
	KnownCharge    Forgery = "known-charge"    // signed, with the transaction of another order's charge
)

var (
	forgeries      = slices.Concat(usualForgeries, misdirected)
	usualForgeries = append([]Forgery{
		Unsigned, OtherKey, OtherAmount, OtherCurrency, Replayed, UnknownAttempt, Underpaid, OtherMerchant, OtherCoin, OtherChannel,
	}, refundForgeries...)
	refundForgeries = []Forgery{RefundUnsigned, RefundWrong, RefundCoin, RefundChannel}
	misdirected     = []Forgery{RefundMerchant, KnownCharge}
)

// drawForgeries draws what is forged about an order: while it waits for its money, when
// there has been something to listen to, or when money may be on its way back.
func (w *Workload) drawForgeries(name string, created time.Duration, r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	op := Operation{Verb: Forges, Order: name, Forgery: usualForgeries[r.IntN(len(usualForgeries))]}
	op.At = created + within(r, 0, time.Minute)
	if r.IntN(3) == 0 || op.Forgery.alters() {
		op.At = created + within(r, 0, payWindow+2*time.Minute)
	}
	if op.Forgery == Replayed {
		op.At += within(r, time.Hour, 3*time.Hour)
	}
	if asked := w.firstRefund(name); asked != nil && r.IntN(3) > 0 {
		op.Forgery, op.At = refundForgeries[r.IntN(len(refundForgeries))], asked.At+soon(r, time.Minute)
	}
	w.add(op)
}

// drawMisdirected draws notices that would be true for somebody else: of a refund, for
// another merchant or channel, and of a charge that was another order's.
func (w *Workload) drawMisdirected(name string, created time.Duration, r *rand.Rand) {
	if asked := w.firstRefund(name); asked != nil && r.IntN(3) > 0 {
		how := []Forgery{RefundMerchant, RefundChannel}[r.IntN(2)]
		w.add(Operation{Verb: Forges, Order: name, Forgery: how, At: asked.At + within(r, 0, 2*time.Minute)})
	}
	if r.IntN(4) == 0 {
		w.add(Operation{Verb: Forges, Order: name, Forgery: KnownCharge, At: created + within(r, 0, payWindow+2*time.Minute)})
	}
}

// firstRefund returns the first refund that is asked for of an order under its number, nil
// if none is.
func (w *Workload) firstRefund(name string) (first *Operation) {
	for i := range w.Operations {
		op := &w.Operations[i]
		if op.Verb == Refunds && op.Order == name && op.Key == "" && op.Number == "" && (first == nil || op.At < first.At) {
			first = op
		}
	}
	return first
}

// alters says whether a true notice must have been heard.
func (f Forgery) alters() bool { return f == OtherAmount || f == OtherCurrency || f == Replayed }

func (f Forgery) isOfRefund() bool { return f == RefundMerchant || slices.Contains(refundForgeries, f) }

// stranger is somebody who hears what channels and shops say to each other.
type stranger struct {
	p      *sim.Process
	w      Workload
	heard  map[string]*sim.Message // the first notice of each order's charge
	booked map[int64]*sim.Change   // the shops' records of charges
}

// startStranger starts one task for each forgery.
func (w *world) startStranger(p *sim.Process, workload Workload, start time.Time) {
	s := stranger{p, workload, map[string]*sim.Message{}, map[int64]*sim.Change{}}
	if !slices.ContainsFunc(workload.Operations, func(op Operation) bool { return op.Verb == Forges }) {
		return
	}
	w.Trace().Watch(s.listen)
	for _, op := range workload.Operations {
		if op.Verb != Forges {
			continue
		}
		p.Go(string(op.Verb)+"("+op.Order+")", func(ctx context.Context) {
			if p.Clock().Sleep(ctx, op.At-p.Clock().Now().Sub(start)) == nil {
				s.forge(ctx, op)
			}
		})
	}
}

func (s stranger) listen(r *sim.Record) {
	if isRow(r, "shop", "payment_records") {
		if s.booked[r.Change.RowID] = r.Change; r.Change.Deleted() {
			delete(s.booked, r.Change.RowID)
		}
		return
	}
	if r.Event == sim.EventSend && r.Message.Kind == "callback" && r.Node != s.p.Name() && s.heard[r.Message.Key] == nil {
		s.heard[r.Message.Key] = r.Message
	}
}

// forge posts one notice, once. What alters a true notice that nobody has sent yet posts
// nothing, and so does what repeats a charge before there is one: the shops would take it.
func (s stranger) forge(ctx context.Context, op Operation) {
	if op.Forgery.alters() {
		if heard := s.heard[op.Order]; heard != nil {
			s.post(ctx, "pay", altered(heard.Body, op.Forgery), heard.Header.Get(signature.Header))
		}
		return
	}
	notice := s.invented(op)
	if notice["channelTxn"] == "" {
		return
	}
	body, err := json.Marshal(notice)
	if err != nil {
		panic(err) // a body of the harness's own
	}
	what, signed := "pay", signature.Sign([]byte(signingKey), body, s.p.Clock().Now())
	switch op.Forgery {
	case OtherKey:
		signed = signature.Sign([]byte("the key of somebody else"), body, s.p.Clock().Now())
	case Unsigned, RefundUnsigned:
		signed = ""
	}
	if op.Forgery.isOfRefund() {
		what = "refund"
	}
	s.post(ctx, what, body, signed)
}

var currency = regexp.MustCompile(`"currency":"[A-Z]+"`)

// altered changes one thing in a notice's body.
func altered(body []byte, how Forgery) []byte {
	switch how {
	case OtherAmount:
		return bytes.Replace(body, []byte(`"amountCents":`), []byte(`"amountCents":1`), 1)
	case OtherCurrency:
		return currency.ReplaceAll(body, []byte(`"currency":"USD"`)) // in which no order is
	}
	return body
}

// invented is a notice of something that has not happened.
func (s stranger) invented(op Operation) map[string]any {
	order := s.w.Orders[op.Order]
	notice := map[string]any{
		"orderNo": op.Order, "outTradeNo": op.Order + "-1", "channel": order.Channel, "channelTxn": "X-" + op.Order,
		"merchantId": merchant, "state": "SUCCESS", "amountCents": order.Cents, "currency": "CNY",
	}
	switch op.Forgery {
	case UnknownAttempt:
		notice["outTradeNo"] = op.Order + "-99"
	case Underpaid:
		notice["amountCents"] = order.Cents - 1
	case OtherMerchant, RefundMerchant:
		notice["merchantId"] = merchant + "0"
	case OtherCoin, RefundCoin:
		notice["currency"] = "USD" // a careless create may have made the order in yen
	case OtherChannel, RefundChannel:
		notice["channel"] = s.w.strangeTo(op.Order)
	case KnownCharge:
		notice["channelTxn"] = s.chargeBeside(op.Order)
	}
	if op.Forgery.isOfRefund() {
		notice["refundNo"] = refundNumber(op.Order, 1)
		notice["amountCents"] = s.refundCents(op)
	}
	return notice
}

// chargeBeside returns the first transaction in the shops' books that is another order's on
// this order's channel, "" if there is none.
func (s stranger) chargeBeside(order string) string {
	for _, id := range slices.Sorted(maps.Keys(s.booked)) {
		record := s.booked[id]
		if record.Text("order_no") != order && record.Text("channel") == s.w.Orders[order].Channel {
			return record.Text("channel_txn")
		}
	}
	return ""
}

// strangeTo returns a channel that an order has nothing to do with, whichever of its
// operations succeed: of the run's channels if there is one.
func (w *Workload) strangeTo(order string) string {
	known := []string{w.Orders[order].Channel}
	for _, op := range w.Operations {
		if op.Order == order {
			known = append(known, op.Channel, op.Other.Channel)
		}
	}
	all := slices.Concat(w.channels(), channelNames, []string{"nobody"})
	return all[slices.IndexFunc(all, func(name string) bool { return !slices.Contains(known, name) })]
}

// refundCents is the amount of the order's first refund, or one cent more.
func (s stranger) refundCents(op Operation) int64 {
	cents := int64(1)
	if asked := s.w.firstRefund(op.Order); asked != nil {
		cents = asked.Cents
	}
	if op.Forgery == RefundWrong {
		cents++
	}
	return cents
}

func (s stranger) post(ctx context.Context, what string, body []byte, signed string) {
	ctx, cancel := s.p.Clock().WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://shop/callback/%s", what), bytes.NewReader(body))
	if err != nil {
		panic(err) // a URL of the harness's own
	}
	if signed != "" {
		r.Header.Set(signature.Header, signed)
	}
	if answer, err := s.p.HTTPClient().Do(r); err == nil {
		answer.Body.Close()
	}
}
