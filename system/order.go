package system

import (
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// Status is where an order stands.
type Status string

// The statuses of an order. Closed and Refunded are final.
const (
	Created   Status = "CREATED"
	Paid      Status = "PAID"
	Closed    Status = "CLOSED"
	Refunding Status = "REFUNDING"
	Refunded  Status = "REFUNDED"
)

// Transition is one permitted change of an order's status.
type Transition struct{ From, To Status }

// Transitions is the state machine: every change that an order may undergo, and no other.
func Transitions() []Transition {
	return []Transition{
		{Created, Paid},
		{Created, Closed},
		{Paid, Refunding},
		{Refunding, Refunded},
	}
}

// Reinstatement is the transition of the policy LateReinstate, and of nothing else. An order that its buyer has cancelled
// doesn't undergo it.
func Reinstatement() Transition { return Transition{Closed, Paid} }

// Allowed reports whether the state machine has this transition.
func (t Transition) Allowed() bool {
	for _, allowed := range Transitions() {
		if t == allowed {
			return true
		}
	}
	return false
}

// AttemptState is where one try to pay an order on one channel stands. OPEN becomes PAID or CLOSED; a CLOSED attempt
// still becomes PAID when its charge arrives late: that is true of the attempt, though the order doesn't move.
type AttemptState string

// The states of an attempt.
const (
	AttemptOpen   AttemptState = "OPEN"
	AttemptPaid   AttemptState = "PAID"
	AttemptClosed AttemptState = "CLOSED"
)

// Order is what the shop says about an order, together with its latest attempt. Times are Unix milliseconds of the
// database's clock; a time that hasn't come is left out.
type Order struct {
	OrderNo string `json:"orderNo"`
	Status  Status `json:"status"`
	Money
	CloseReason string `json:"closeReason,omitempty"`
	CreatedMs   int64  `json:"createdMs"`
	DeadlineMs  int64  `json:"deadlineMs"`
	PaidMs      int64  `json:"paidMs,omitempty"`
	ClosedMs    int64  `json:"closedMs,omitempty"`
	SKU         string `json:"sku,omitempty"`
	Quantity    int64  `json:"quantity,omitempty"`
	// RefundedCents is what has gone back of the money that paid the order.
	RefundedCents int64  `json:"refundedCents,omitempty"`
	Channel       string `json:"channel"`
	OutTradeNo    string `json:"outTradeNo"`
	PrepayToken   string `json:"prepayToken,omitempty"`

	attemptState AttemptState
	firstChannel string
	expired      bool // by the database's clock, when it was read
}

// awaitsPrepay reports whether the buyer can't pay yet because the channel has given us no token.
func (o Order) awaitsPrepay() bool {
	return o.Status == Created && o.attemptState == AttemptOpen && o.PrepayToken == ""
}

const (
	maxOrderNo     = 64
	maxOutTradeNo  = 80 // an order number and an attempt's number
	maxChannelName = 32
	maxChannelTxn  = 128
	maxRefundNo    = 64 // of a caller's; our own may be longer
	maxSKU         = 64
	maxQuantity    = 1_000_000
)

// checkName refuses a name that isn't 1 to max of [A-Za-z0-9_-] with a 400 of the given code.
func checkName(field, code, name string, max int) error {
	switch {
	case isName(name, max):
		return nil
	case name == "":
		return httpjson.Errorf(http.StatusBadRequest, code, "%s is missing; it must be 1 to %d of [A-Za-z0-9_-]", field, max)
	}
	return httpjson.Errorf(http.StatusBadRequest, code, "%s must be 1 to %d of [A-Za-z0-9_-], not %.80q", field, max, name)
}

func isName(name string, max int) bool {
	for _, c := range []byte(name) {
		letter, digit := 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && c != '-' && c != '_' {
			return false
		}
	}
	return 1 <= len(name) && len(name) <= max
}
