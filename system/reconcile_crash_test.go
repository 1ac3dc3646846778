package system_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Wherever a run dies, the next ones tell the same differences, each once, and nothing else.
func TestReconcileDiesAnywhere(t *testing.T) {
	t.Parallel()
	for n, died := 1, true; died; n++ {
		w := newTown(t)
		w.buy("A")
		w.buy("B")
		w.refund("B", "F1", 500)
		w.post(w.urls["mock"]+"/operator/bill-row", `{"action":"hide","reference":"T-B-1-1"}`)
		w.byHand(`DELETE FROM payment_records WHERE order_no = 'A'`)
		w.byHand(`DELETE FROM refunds`)
		exec(t, w.stock, `DELETE FROM stock_journal WHERE order_no = 'B' AND movement = 'deduct'`)

		w.at("2023-11-16 11:00:00")
		healthy := w.loops.every["reconcile"]
		process := w.live(n)
		w.run("reconcile")
		died = process.left <= 0
		w.loops.every["reconcile"] = healthy
		for _, later := range []string{"2023-11-16 12:00:00", "2023-11-17 03:00:00"} {
			w.at(later)
			w.run("reconcile")
		}
		w.url = w.start(w.cfg, nil, nil)
		require.ElementsMatch(t, []string{
			"record-missing mock/T-A-1-1 9900", "record-unbilled mock/T-B-1-1 9900",
			"refund-missing mock/F1 500", "stock-mismatch B 9900",
		}, w.alerts(), "died at point %d", n)
		require.Equal(t, []string{"CHECKED"}, w.column(`SELECT state FROM bill_days WHERE channel = 'mock' AND bill_day = '2023-11-15'`))
	}
}
