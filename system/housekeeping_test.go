package system_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is old enough goes, in batches; what somebody may still come back to stays.
func TestHousekeeping(t *testing.T) {
	f := newFixture(t)
	f.create(stockA1)
	f.callback(paidA1)
	f.relay()
	f.bank.on("stock /deduct", refuse(409, "order_released"))
	f.create(`{"orderNo":"A2","amountCents":9900,"sku":"S1"}`)
	f.callback(`{"orderNo":"A2","channel":"mock","channelTxn":"T2","amountCents":9900}`)
	f.relay()
	keyed := func(key string) (int, string) {
		return f.do("POST", "/orders/A1/refunds", `{"amountCents":1}`, http.Header{"Idempotency-Key": {key}})
	}
	keyed("old")
	_, err := f.db.ExecContext(t.Context(), `
INSERT INTO idempotency_keys (caller, operation, key, fingerprint, effect_id, state, owner, until_ms, created_ms)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
SELECT 'anonymous', 'create', 'k' || i, 'x', 'x', 'RUNNING', 'x', db_now_ms(), db_now_ms() FROM n`)
	require.NoError(t, err)

	f.clock.advance(7*24*time.Hour - time.Millisecond)
	before := f.dump()
	f.run("housekeeping")
	require.Equal(t, before, f.dump())
	keyed("new")
	_, again := keyed("old")
	require.Len(t, f.refunds(), 2, again)

	f.clock.advance(time.Millisecond)
	_, err = f.db.ExecContext(t.Context(), `UPDATE idempotency_keys SET until_ms = db_now_ms() + 30000 WHERE key = 'k7'`)
	require.NoError(t, err)
	f.run("housekeeping")
	require.Equal(t, []string{"k7", "new"}, f.column(`SELECT key FROM idempotency_keys ORDER BY key`), "k7 is at work")
	require.Equal(t, []string{"stock-deduct A2 PARKED", "refund", "refund"},
		f.column(`SELECT iif(kind = 'refund', kind, kind || ' ' || message_key || ' ' || state) FROM outbox ORDER BY message_id`))
}

// Two instances at once, and one whose lease is taken or lost.
func TestHousekeepingWithLeases(t *testing.T) {
	for _, c := range []struct {
		name   string
		leases desk
		purged bool
	}{
		{"granted", desk{held: true}, true},
		{"service down", desk{fails: true}, true},
		{"taken", desk{held: true, refuse: "housekeeping"}, false},
		{"lost", desk{held: false}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.url = f.start(f.cfg, nil, &c.leases)
			f.do("POST", "/orders", orderA1, http.Header{"Idempotency-Key": {"K1"}})
			f.clock.advance(8 * 24 * time.Hour)
			f.run("housekeeping")
			require.Equal(t, fmt.Sprint(c.purged), fmt.Sprint(len(f.column(`SELECT key FROM idempotency_keys`)) == 0))
		})
	}
}
