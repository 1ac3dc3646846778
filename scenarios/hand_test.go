package scenarios

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
)

// What a person changes by hand is reported under the number of an order, of a charge or
// of a refund, and each of them will do.
func TestHandsAreReported(t *testing.T) {
	text, err := os.ReadFile("incidents/refund.txtar")
	require.NoError(t, err)
	incident, err := ParseIncident("refund.txtar", string(text))
	require.NoError(t, err)
	for _, line := range []string{
		"operator edits shop/orders/A cents 5 from 0s", "operator edits shop/orders/A cents 1 from 10m", "operator deletes shop/payment_records/A from 10m", "operator deletes shop/refunds/A from 10m",
	} {
		c := incident.Case()
		c.Expect = nil // it is of a run without the hand
		c.Added, err = faults.ParsePlan(line)
		require.NoError(t, err)
		r, err := Run(c, nil)
		require.NoError(t, err)
		require.Empty(t, r.Failures, line)
		require.Empty(t, r.Unreached, line)
	}
}
