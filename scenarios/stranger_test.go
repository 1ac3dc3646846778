package scenarios

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// refusedAs is what each forgery is answered: it must be refused for what is wrong with
// it, not for something else.
var refusedAs = map[Forgery]string{
	Unsigned: "signature_missing", OtherKey: "signature_invalid", OtherAmount: "signature_invalid", OtherCurrency: "signature_invalid",
	Replayed: "signature_stale", UnknownAttempt: "attempt_unknown", Underpaid: "amount_mismatch", OtherMerchant: "merchant_unknown",
	OtherCoin: "amount_mismatch", OtherChannel: "attempt_unknown",
	RefundUnsigned: "signature_missing", RefundWrong: "amount_mismatch", RefundCoin: "amount_mismatch", RefundChannel: "refund_unknown",
	RefundMerchant: "merchant_unknown", KnownCharge: "transaction_conflict",
}

func TestForgeriesAreRefused(t *testing.T) {
	for _, forgery := range forgeries {
		t.Run(string(forgery), func(t *testing.T) {
			r := runText(t, fmt.Sprintf(`-- setup --
order A 198.00 CNY
order B 99.00 CNY
-- timeline --
14:00:00.000 buyer creates A
14:00:00.000 buyer creates B
14:01:00.000 buyer pays A
14:02:00.000 buyer pays B
14:03:00.000 buyer refunds A 1.00 CNY
16:00:00.000 stranger forges A %s
`, forgery))
			assert.Empty(t, r.Failures)
			assert.Equal(t, 1, r.Probes["forged notice refused"])
			for i := range r.Trace.Records {
				if m := r.Trace.Records[i].Message; m != nil && m.Leg == sim.Answer && m.To == "stranger" {
					assert.Contains(t, string(m.Body), refusedAs[forgery])
				}
			}
		})
	}
}

// A careless client gets one answer for one key, and is told where it asks for another
// thing under it.
func TestSharedKeys(t *testing.T) {
	r := runText(t, `-- setup --
order A 198.00 CNY
-- timeline --
14:00:00.000 buyer creates A key k
14:00:00.000 buyer creates A key k
14:00:10.000 buyer creates A 99.00 CNY key k
14:00:20.000 buyer creates A 99.00 CNY
14:01:00.000 buyer pays A
14:03:00.000 buyer refunds A 1.00 CNY key k
14:03:00.000 buyer refunds A 1.00 CNY key k
14:03:10.000 buyer refunds A 2.00 CNY key k
`)
	assert.Empty(t, r.Failures)
	assert.Equal(t, 2, r.Probes["idempotency key reused"], "once of the order, once of the refund")
	assert.Positive(t, r.Probes["order number reused"])
	assert.Equal(t, 1, r.Probes["partial refund"], "the key of the order is no refund's")
}

// A buyer leaves the channel's page and comes back: the notice of the charge names the order
// only, and means the attempt that can still be paid.
func TestSecondTryOnOneChannel(t *testing.T) {
	r := runText(t, `-- setup --
order A 198.00 CNY
-- timeline --
14:00:00.000 buyer creates A
14:00:05.000 buyer leaves A
14:02:00.000 buyer attempts A wechat
14:03:00.000 buyer pays A attempt 2
-- faults --
wechat names-no-trade A-2
-- expect --
attempt A-1 is CLOSED
attempt A-2 is PAID
order A is PAID
`)
	assert.Equal(t, Pass, r.Verdict)
	assert.Empty(t, r.Failures)
	assert.Equal(t, 1, r.Probes["second attempt on one channel"])
	assert.Positive(t, r.Probes["notice that names no trade"])
}

// A refund's number is used again: for the same cents it is the same refund, for others or
// for another order it is refused.
func TestSharedRefundNumbers(t *testing.T) {
	r := runText(t, `-- setup --
order A 198.00 CNY
order B 99.00 CNY
-- timeline --
14:00:00.000 buyer creates A
14:00:00.000 buyer creates B
14:01:00.000 buyer pays A
14:01:00.000 buyer pays B
14:03:00.000 buyer refunds A 1.00 CNY number one
14:03:10.000 buyer refunds A 1.00 CNY number one key k
14:04:00.000 buyer refunds A 2.00 CNY number one
14:05:00.000 buyer refunds B 1.00 CNY number one
`)
	assert.Empty(t, r.Failures)
	assert.Equal(t, 1, r.Probes["partial refund"])
	assert.Equal(t, 2*tries, r.Probes["refund number reused"])
}

func runText(t *testing.T, text string) *Result {
	x, err := ParseIncident("told.txtar", text)
	require.NoError(t, err)
	r, err := Run(x.Case(), nil)
	require.NoError(t, err)
	return r
}
