package channel_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/system/channel"
)

// sound counts what must never be in a ledger.
const sound = `
SELECT (SELECT count(*) FROM trades t WHERE (state = 'SUCCESS') <> EXISTS (SELECT 1 FROM charges c WHERE c.out_trade_no = t.out_trade_no))
     + (SELECT count(*) - count(DISTINCT out_trade_no) FROM charges)
     + (SELECT count(*) FROM charges c JOIN trades t USING (out_trade_no) WHERE c.amount_cents <> t.amount_cents)
     + (SELECT count(*) FROM charges c WHERE NOT EXISTS (SELECT 1 FROM notifications n WHERE n.notice_id = c.channel_txn))
     + (SELECT count(*) FROM charges c WHERE c.amount_cents <
           (SELECT coalesce(sum(r.amount_cents), 0) FROM refunds r WHERE r.channel_txn = c.channel_txn AND r.state <> 'CLOSED'))
     + (SELECT count(*) FROM refunds WHERE (state = 'PROCESSING') <> (settled_ms IS NULL))`

// Whatever merchant, payer and operator do in whatever order, with whatever dying in between: the ledger stays sound.
func TestLedgerStaysSound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		personality := rapid.SampledFrom(channel.Personalities()).Draw(r, "personality")
		f := newFixture(t, personality)
		f.ok("/operator/trade", fmt.Sprintf(`{"outTradeNo":"A1-1","settleLagMs":%d,"refundState":%q}`,
			rapid.SampledFrom([]int{0, 5000}).Draw(r, "settle"), rapid.SampledFrom([]string{"", "CLOSED", "ABNORMAL"}).Draw(r, "refund")))
		f.prepay(9900)
		for range rapid.IntRange(1, 15).Draw(r, "length") {
			refundNo := rapid.SampledFrom([]string{"R1", "R2", "R3"}).Draw(r, "refund number")
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0:
				f.post("/start", trade)
			case 1:
				f.post("/pay", `{"outTradeNo":"A1-1","decline":true}`)
			case 2, 3:
				f.post("/pay", trade)
			case 4:
				f.post("/close", trade)
			case 5, 6:
				f.post("/refund", f.refundBody(refundNo, rapid.SampledFrom([]int{3000, 6000, 9900}).Draw(r, "cents")))
			case 7:
				f.post("/operator/refund", fmt.Sprintf(`{"refundNo":%q,"state":"SUCCESS"}`, refundNo))
			case 8:
				f.world.run(t.Context())
				f.wait(time.Minute)
			case 9: // the emulator dies, and its successor takes up what is pending
				f.world.tasks = nil
				f.newBank(personality).Start()
			}
			require.Zero(t, f.count(sound))
		}
		f.newBank(personality).Start()
		f.world.run(t.Context())
		require.Zero(t, f.count(sound))
		require.Zero(t, f.count(`SELECT count(*) FROM notifications WHERE state = 'PENDING'`))
		require.Zero(t, f.count(`SELECT count(*) FROM refunds WHERE state = 'PROCESSING'`))
		require.Zero(t, f.count(`SELECT count(*) FROM trades WHERE settle_at_ms > 0`))
	})
}

func TestPayAndCloseAtOnce(t *testing.T) {
	for range 10 {
		f := newFixture(t, channel.Mock())
		f.prepay(9900)
		var group sync.WaitGroup
		for _, path := range []string{"/pay", "/close", "/pay", "/close"} {
			group.Go(func() {
				if reply, err := http.Post(f.url+path, "application/json", strings.NewReader(trade)); err == nil {
					_ = reply.Body.Close()
				}
			})
		}
		group.Wait()
		require.Zero(t, f.count(sound))
		require.Equal(t, 1, f.count(`SELECT count(*) FROM trades WHERE state IN ('SUCCESS', 'CLOSED')`))
	}
}
