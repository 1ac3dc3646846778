package channel

import (
	"net/http"
	"slices"
	"time"
)

// Personality is how one kind of channel behaves, as data. A rule that doesn't apply is left zero.
type Personality struct {
	Name string

	// Notifications.
	FirstNotify    time.Duration   // from the fact to the first notification of it
	Resend         []time.Duration // waits after each missing ack; after the last one the channel gives up
	Copies         []time.Duration // further copies of each first send, this long after it
	AckTimeout     time.Duration   // for the merchant to acknowledge
	AckBody        string          // the body that acknowledges, exactly; empty: any 2xx does, whatever its body says
	NotifiesClose  bool            // closing a trade is notified, as CLOSED
	NotifiesFailed bool            // so is each failed try to pay, as FAILED; a later one may succeed
	RefundToPayURL bool            // a refund is told by telling of its trade again; after a full one its state is CLOSED

	// Trades.
	TradeOnScan bool          // query and close know a trade only when the payer has scanned its code
	TokenLife   time.Duration // of a prepay token, until it is refreshed
	AutoClose   time.Duration // after which the channel closes an unpaid trade by itself
	PayingFor   time.Duration // how long a payer who has started may take, though the trade's limit passes meanwhile
	Close       CloseAnswers
	PartRefund  string // what a query says of a trade that is refunded in part
	FullRefund  string // and in full

	// Refunds.
	RefundTakes time.Duration // from accepted to done; zero: done in the reply
	MaxRefunds  int           // of one trade
	RefundGap   time.Duration // between two refunds of one trade

	// Requests.
	KeyLife time.Duration // how long an Idempotency-Key's answer is kept; zero: there are no such keys

	// Bills.
	Zone      *time.Location // whose days they are
	FeePPM    int64          // the fee of a charge, in millionths of it, rounded half up, once
	KeepsFees bool           // refunds give no part of the fee back
}

// CloseAnswers are the error codes with which /close refuses. An empty one is no refusal: for an unknown trade it is
// success without an effect, for one that is being paid the trade is closed.
type CloseAnswers struct {
	Unknown, Paid, Closed, Paying string
}

// The codes of answers that refuse. Their HTTP status is statusOf.
const (
	codeNotExist    = "TRADE_NOT_EXIST"
	codeOrderPaid   = "ORDERPAID"
	codeOrderClosed = "ORDER_CLOSED"
	codeHasSuccess  = "TRADE_HAS_SUCCESS"
	codeStatusError = "TRADE_STATUS_ERROR"
	codeUserPaying  = "USER_PAYING"
	codeSystemError = "SYSTEM_ERROR"
)

func statusOf(code string) int {
	switch code {
	case codeNotExist:
		return http.StatusNotFound
	case codeSystemError:
		return http.StatusInternalServerError
	}
	return http.StatusConflict
}

// acked reports whether an answer of the merchant acknowledges a notification.
func (p Personality) acked(status int, body []byte) bool {
	if p.AckBody != "" {
		return status == http.StatusOK && string(body) == p.AckBody
	}
	return status >= 200 && status < 300
}

// resendAfter is the wait after the n-th missing ack (n counts from 1); false when the channel gives up.
func (p Personality) resendAfter(n int) (time.Duration, bool) {
	if n < 1 || n > len(p.Resend) {
		return 0, false
	}
	return p.Resend[n-1], true
}

// fee is the channel's share of an amount, rounded half up.
func (p Personality) fee(amountCents int64) int64 {
	return (amountCents*p.FeePPM + 500_000) / 1_000_000
}

// feeBack is what of it goes back with a refund.
func (p Personality) feeBack(amountCents int64) int64 {
	if p.KeepsFees {
		return 0
	}
	return p.fee(amountCents)
}

func (p Personality) valid() bool {
	waits := append(slices.Clone(p.Resend), p.AckTimeout, p.PayingFor)
	return p.Name != "" && p.FirstNotify >= 0 && slices.Min(waits) > 0 && p.Zone != nil
}
