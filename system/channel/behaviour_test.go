package channel_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/channel"
)

// ok posts what must be answered with 200.
func (f *fixture) ok(path, body string) map[string]any {
	f.Helper()
	status, answer := f.post(path, body)
	require.Equal(f, 200, status, "%s: %v", path, answer)
	return answer
}

// refused posts what must be refused with the code.
func (f *fixture) refused(path, body, want string) {
	f.Helper()
	_, answer := f.post(path, body)
	require.Equal(f, want, code(answer), "%s %s: %v", path, body, answer)
}

func (f *fixture) state() any {
	f.Helper()
	return f.ok("/query", trade)["state"]
}

func (f *fixture) wait(d time.Duration) { f.world.ms.Add(d.Milliseconds()) }

func (f *fixture) prepayUntil(limit time.Duration) {
	f.Helper()
	f.ok("/prepay", fmt.Sprintf(`{"merchantId":"M1","outTradeNo":"A1-1","orderNo":"A1","amountCents":9900,
		"currency":"CNY","notifyUrl":%q,"timeExpireMs":%d}`, f.notify, f.world.ms.Load()+limit.Milliseconds()))
}

func (f *fixture) refundBody(number string, cents int) string {
	return fmt.Sprintf(`{"merchantId":"M1","outTradeNo":"A1-1","refundNo":%q,"amountCents":%d,"totalCents":9900,"notifyUrl":%q}`,
		number, cents, f.notify)
}

func TestCloseAnswersOfEachPersonality(t *testing.T) {
	for _, c := range []struct {
		personality                   channel.Personality
		unknown, paying, paid, closed string
	}{
		{channel.Mock(), "TRADE_NOT_EXIST", "USER_PAYING", "ORDERPAID", "ORDER_CLOSED"},
		{channel.WechatLike(), "TRADE_NOT_EXIST", "USER_PAYING", "ORDERPAID", "ORDER_CLOSED"},
		{channel.AlipayLike(), "TRADE_NOT_EXIST", "SYSTEM_ERROR", "TRADE_HAS_SUCCESS", "TRADE_STATUS_ERROR"},
		{channel.StripeLike(), "TRADE_NOT_EXIST", "USER_PAYING", "ORDERPAID", "ORDER_CLOSED"},
	} {
		t.Run(c.personality.Name, func(t *testing.T) {
			f := newFixture(t, c.personality)
			f.refused("/close", trade, c.unknown)
			f.prepay(9900)
			f.ok("/start", trade)
			f.refused("/close", trade, c.paying)
			f.ok("/pay", trade)
			f.refused("/close", trade, c.paid)

			g := newFixture(t, c.personality)
			g.prepay(9900)
			g.ok("/start", trade)
			g.wait(2 * time.Minute) // the payer has given up
			require.Equal(t, "CLOSED", g.ok("/close", trade)["state"])
			g.refused("/close", trade, c.closed)
			g.refused("/pay", trade, "ORDER_CLOSED")
		})
	}
	lenient := channel.WechatLike()
	lenient.Close.Unknown = ""
	require.Equal(t, "CLOSED", newFixture(t, lenient).ok("/close", trade)["state"])
}

func TestAlipayTradeBeginsWithTheScan(t *testing.T) {
	f := newFixture(t, channel.AlipayLike())
	f.prepay(9900)
	f.refused("/query", trade, "TRADE_NOT_EXIST")
	f.refused("/close", trade, "TRADE_NOT_EXIST")
	f.ok("/pay", trade) // the code was payable all the time
	require.Equal(t, "SUCCESS", f.state())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM charges`))
}

func TestTimeLimitIsCheckedAtTheStart(t *testing.T) {
	f := newFixture(t, channel.WechatLike())
	f.prepayUntil(time.Minute)
	f.wait(59 * time.Second)
	require.Equal(t, "USERPAYING", f.ok("/start", trade)["state"])
	f.wait(30 * time.Second)
	require.Equal(t, "SUCCESS", f.ok("/pay", trade)["state"])

	f = newFixture(t, channel.WechatLike())
	f.prepayUntil(time.Minute)
	f.wait(time.Minute)
	f.refused("/start", trade, "TRADE_EXPIRED")
	f.refused("/pay", trade, "TRADE_EXPIRED")
	require.Equal(t, "NOTPAY", f.state())
}

func TestTokenLifeAndAutoClose(t *testing.T) {
	f := newFixture(t, channel.WechatLike())
	f.prepay(9900)
	f.wait(2 * time.Hour)
	f.refused("/pay", trade, "TOKEN_EXPIRED")
	f.prepay(9900)
	f.wait(14 * 24 * time.Hour)
	require.Equal(t, "CLOSED", f.state())
	f.refused("/pay", trade, "ORDER_CLOSED")
}

func TestOddities(t *testing.T) {
	f := newFixture(t, channel.Mock())
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","queryLagMs":3000,"notFoundMs":1000,"settleLagMs":5000,
		"faults":[{"path":"/close","kind":"error","times":1}],
		"copies":2,"channelTxn":"TX"}`)
	f.prepay(9900)
	f.refused("/query", trade, "TRADE_NOT_EXIST")
	f.refused("/close", trade, "SYSTEM_ERROR")
	f.wait(time.Second)
	require.Equal(t, "NOTPAY", f.state())

	require.Equal(t, "USERPAYING", f.ok("/pay", trade)["state"])
	require.Equal(t, "USERPAYING", f.ok("/pay", trade)["state"])
	f.refused("/close", trade, "USER_PAYING")
	require.Zero(t, f.count(`SELECT count(*) FROM charges`))

	settle := f.world.tasks
	f.world.tasks = nil // the emulator dies, and another takes up the charge
	require.Len(t, settle, 1)
	f.newBank(channel.Mock()).Start()
	resume := f.world.tasks
	f.world.tasks = nil
	resume[0](t.Context())
	next := f.world.tasks
	f.world.tasks = nil
	next[0](t.Context())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM charges WHERE channel_txn = 'TX'`))
	require.Equal(t, "NOTPAY", f.state()) // a query lags, a close knows
	f.refused("/close", trade, "ORDERPAID")
	f.wait(3 * time.Second)
	require.Equal(t, "SUCCESS", f.state())

	settle[0](t.Context()) // the dead emulator's task would have found it done
	f.world.run(t.Context())
	require.Len(t, f.received, 3)
	f.ok("/operator/resend", trade)
	f.world.run(t.Context())
	require.Len(t, f.received, 4)
	require.Equal(t, f.received[0], f.received[3])

	f.refused("/operator/trade", `{"outTradeNo":"A1-1","copies":-1}`, "PARAM_ERROR")
	f.refused("/operator/trade", `{"outTradeNo":"A1-1","refundState":"LOST"}`, "PARAM_ERROR")
}

func TestFaultsAreSpent(t *testing.T) {
	f := newFixture(t, channel.Mock())
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","faults":[{"path":"/prepay","kind":"lost","times":1},
		{"path":"/close","kind":"limit","times":2},{"path":"/refund","kind":"lost","times":1}]}`)
	status, answer := f.prepay(9900)
	require.Equal(t, 500, status, answer)
	require.Equal(t, "NOTPAY", f.state()) // lost, but done
	f.refused("/close", trade, "FREQUENCY_LIMITED")
	f.ok("/pay", trade)
	f.refused("/close", trade, "FREQUENCY_LIMITED")
	f.refused("/close", trade, "ORDERPAID")
	f.refused("/refund", f.refundBody("R1", 100), "SYSTEM_ERROR")
	require.Equal(t, false, f.ok("/refund", f.refundBody("R1", 100))["fundsMoved"])
	f.refused("/operator/trade", `{"outTradeNo":"A1-1","faults":[{"path":"/pay","kind":"error","times":1}]}`, "PARAM_ERROR")
	f.refused("/operator/trade", `{"outTradeNo":"A1-1","faults":[{"path":"/close","kind":"odd","times":1}]}`, "PARAM_ERROR")
}

func TestFinishedTellsTheChargeAgain(t *testing.T) {
	f := newFixture(t, channel.AlipayLike())
	f.prepay(9900)
	f.refused("/operator/finish", trade, "TRADE_NOT_PAID")
	f.ok("/pay", trade)
	f.ok("/operator/finish", trade)
	f.world.run(t.Context())
	require.Contains(t, f.received[len(f.received)-1], `"channelTxn":"T-A1-1-1","state":"FINISHED"`)
}

func TestSilentTradeTellsNobody(t *testing.T) {
	f := newFixture(t, channel.WechatLike())
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","silent":true}`)
	f.prepay(9900)
	f.ok("/pay", trade)
	f.world.run(t.Context())
	require.Empty(t, f.received)
	require.Equal(t, "SUCCESS", f.state())
}

func TestConcealedChargeTellsOfItsRefund(t *testing.T) {
	f := newFixture(t, channel.StripeLike())
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","chargeUntold":true}`)
	f.prepay(9900)
	f.ok("/pay", trade)
	f.ok("/refund", f.refundBody("R1", 100))
	f.world.run(t.Context())
	require.Len(t, f.received, 1)
	require.Contains(t, f.received[0], `"refundNo":"R1"`)
}

func TestFewNoticesEndUnheard(t *testing.T) {
	f := newFixture(t, channel.WechatLike())
	f.answer = func(int) int { return 500 }
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","mostSends":2}`)
	f.prepay(9900)
	f.ok("/pay", trade)
	f.world.run(t.Context())
	require.Len(t, f.received, 2)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM notifications WHERE state = 'GIVEN_UP'`))
}

func TestNoticesMayNameNoTrade(t *testing.T) {
	f := newFixture(t, channel.StripeLike())
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","tradeUnnamed":true}`)
	f.prepay(9900)
	f.ok("/pay", trade)
	f.world.run(t.Context())
	require.Len(t, f.received, 1)
	require.NotContains(t, f.received[0], "outTradeNo")
	require.Contains(t, f.received[0], `"orderNo":"A1"`)
}

func TestFailedThenSucceeded(t *testing.T) {
	f := newFixture(t, channel.StripeLike())
	f.prepay(9900)
	require.Equal(t, "PAYERROR", f.ok("/pay", `{"outTradeNo":"A1-1","decline":true}`)["state"])
	require.Equal(t, "SUCCESS", f.ok("/pay", trade)["state"])
	f.world.run(t.Context())
	require.Len(t, f.received, 2)
	require.Contains(t, f.received[0], `"state":"FAILED"`)
	require.NotContains(t, f.received[0], "channelTxn")
	require.Contains(t, f.received[1], `"state":"SUCCESS"`)
}

func TestRefundNumberIsExecutedOnce(t *testing.T) {
	f := newFixture(t, channel.Mock())
	f.prepay(9900)
	f.refused("/refund", f.refundBody("R1", 6000), "TRADE_NOT_PAID")
	f.ok("/pay", trade)
	first := f.ok("/refund", f.refundBody("R1", 6000))
	require.Equal(t, "PROCESSING", first["state"])
	require.Equal(t, true, first["fundsMoved"])
	again := f.ok("/refund", f.refundBody("R1", 6000))
	require.Equal(t, false, again["fundsMoved"])
	f.refused("/refund", f.refundBody("R1", 5000), "REFUND_NO_USED")
	f.refused("/refund", f.refundBody("R2", 6000), "REFUND_TOO_MUCH")
	f.refused("/refund", strings.Replace(f.refundBody("R2", 1), "9900", "9901", 1), "PARAM_ERROR")
	f.refused("/refund/query", `{"refundNo":"R2"}`, "REFUND_NOT_EXIST")

	f.world.run(t.Context())
	require.Equal(t, "SUCCESS", f.ok("/refund/query", `{"refundNo":"R1"}`)["state"])
	require.Equal(t, "REFUND", f.state())
	require.Equal(t, `{"orderNo":"A1","outTradeNo":"A1-1","refundNo":"R1","channel":"mock","merchantId":"M1","state":"SUCCESS","amountCents":6000,"currency":"CNY"}`,
		f.received[len(f.received)-1])
	require.Equal(t, 1, f.count(`SELECT count(*) FROM refunds`))
}

func TestAbnormalRefundIsDecidedByHand(t *testing.T) {
	f := newFixture(t, channel.WechatLike())
	f.ok("/operator/trade", `{"outTradeNo":"A1-1","refundState":"ABNORMAL","refundLagMs":7200000}`)
	f.prepay(9900)
	f.ok("/pay", trade)
	f.ok("/refund", f.refundBody("R1", 100))
	f.refused("/refund", f.refundBody("R2", 100), "FREQUENCY_LIMITED")
	f.world.run(t.Context())
	require.Equal(t, "ABNORMAL", f.ok("/refund/query", `{"refundNo":"R1"}`)["state"])
	require.Equal(t, "CLOSED", f.ok("/operator/refund", `{"refundNo":"R1","state":"CLOSED"}`)["state"])
	require.Equal(t, "CLOSED", f.ok("/operator/refund", `{"refundNo":"R1","state":"SUCCESS"}`)["state"])
	f.world.run(t.Context())
	require.Contains(t, f.received[len(f.received)-1], `"state":"CLOSED"`)
	f.ok("/refund", f.refundBody("R2", 9900)) // the money of a closed refund is free again
}

func TestAlipayRefundIsDoneInTheReply(t *testing.T) {
	f := newFixture(t, channel.AlipayLike())
	f.prepay(9900)
	f.ok("/pay", trade)
	f.ok("/refund", f.refundBody("R1", 4000))
	require.Equal(t, "SUCCESS", f.state())
	require.Equal(t, "SUCCESS", f.ok("/refund", f.refundBody("R2", 5900))["state"])
	asked := f.ok("/query", trade)
	require.Equal(t, "CLOSED", asked["state"]) // ambiguous, but for the charge's number
	require.Equal(t, "T-A1-1-1", asked["channelTxn"])
	f.answer = func(int) int { return 500 }
	f.world.run(t.Context())
	first := `{"orderNo":"A1","outTradeNo":"A1-1","refundNo":"R1","channel":"alipay-like","merchantId":"M1","channelTxn":"T-A1-1-1","state":"SUCCESS","amountCents":9900,"currency":"CNY"}`
	second := `{"orderNo":"A1","outTradeNo":"A1-1","refundNo":"R2","channel":"alipay-like","merchantId":"M1","state":"CLOSED","amountCents":9900,"currency":"CNY"}`
	require.Contains(t, f.received, first)
	require.Contains(t, f.received, second)
	require.Len(t, f.received, 3*8)
}

func TestIdempotencyKeys(t *testing.T) {
	f := newFixture(t, channel.StripeLike())
	keyed := func(key, path, body string) (int, string) {
		r, err := http.NewRequest("POST", f.url+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Idempotency-Key", key)
		reply, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer reply.Body.Close()
		var text strings.Builder
		_, err = fmt.Fprint(&text, reply.Header.Get("Idempotent-Replayed"))
		require.NoError(t, err)
		return reply.StatusCode, text.String()
	}
	status, replayed := keyed("K1", "/close", trade)
	require.Equal(t, 404, status)
	require.Empty(t, replayed)
	f.prepay(9900)
	status, replayed = keyed("K1", "/close", trade) // the first answer, though the trade is there by now
	require.Equal(t, 404, status)
	require.Equal(t, "true", replayed)
	status, _ = keyed("K1", "/query", trade)
	require.Equal(t, 400, status)
	status, _ = keyed("K2", "/refund", `{"refundNo":""}`)
	require.Equal(t, 400, status)
	require.Zero(t, f.count(`SELECT count(*) FROM idempotency_keys WHERE key = 'K2'`))
	f.wait(24 * time.Hour)
	status, _ = keyed("K1", "/close", trade)
	require.Equal(t, 200, status)

	_, err := f.db.Exec(`INSERT INTO idempotency_keys SELECT 'K3', fingerprint, 0, '', at_ms FROM idempotency_keys WHERE key = 'K1'`)
	require.NoError(t, err)
	status, _ = keyed("K3", "/close", trade)
	require.Equal(t, 409, status)
}

func TestBill(t *testing.T) {
	f := newFixture(t, channel.Mock())
	shanghai := channel.Mock().Zone
	at := func(text string) int64 {
		moment, err := time.ParseInLocation(time.DateTime, text, shanghai)
		require.NoError(t, err)
		return moment.UnixMilli()
	}
	charge := func(order, when string, cents int) {
		f.world.ms.Store(at(when))
		f.ok("/prepay", fmt.Sprintf(`{"merchantId":"M1","outTradeNo":"%[1]s-1","orderNo":%[1]q,"amountCents":%[2]d,"currency":"CNY","notifyUrl":"http://shop"}`, order, cents))
		f.ok("/pay", fmt.Sprintf(`{"outTradeNo":"%s-1"}`, order))
		f.world.tasks = nil
	}
	charge("A0", "2026-01-01 23:59:59", 100)
	charge("A1", "2026-01-02 00:00:00", 9900)
	charge("A2", "2026-01-02 12:00:00", 83) // a fee of 0.498, once rounded
	charge("A3", "2026-01-02 23:59:59", 84) // 0.504
	f.ok("/refund", f.refundBody("R1", 9900))
	charge("A4", "2026-01-03 00:00:00", 100)
	f.ok("/operator/bill", `{"date":"2026-01-02","delayMs":60000}`)
	f.ok("/operator/bill-row", `{"action":"hide","reference":"T-A2-1-1"}`)
	f.ok("/operator/bill-row", `{"action":"change","reference":"T-A3-1-1","amountCents":85,"orderNo":"B3","currency":"USD"}`)
	f.ok("/operator/bill-row", fmt.Sprintf(`{"action":"add","reference":"GHOST","kind":"charge","outTradeNo":"G-1","orderNo":"G","amountCents":5,"currency":"CNY","atMs":%d}`, at("2026-01-02 01:00:00")))

	f.world.ms.Store(at("2026-01-03 10:00:59"))
	f.refused("/bill", `{"date":"2026-01-02"}`, "BILL_NOT_READY")
	f.world.ms.Store(at("2026-01-03 10:01:00"))
	read := func() (rows []string) {
		for after := ""; ; {
			page := f.ok("/bill", fmt.Sprintf(`{"date":"2026-01-02","after":%q,"limit":2}`, after))
			for _, row := range page["rows"].([]any) {
				r := row.(map[string]any)
				rows = append(rows, fmt.Sprint(r["kind"], " ", r["channelTxn"], " ", r["refundNo"], " ", r["amountCents"], " ", r["feeCents"]))
			}
			if after = page["next"].(string); after == "" {
				return rows
			}
		}
	}
	bill := []string{
		"charge T-A1-1-1 <nil> 9900 59", "charge GHOST <nil> 5 0", "charge T-A3-1-1 <nil> 85 1", "refund T-A1-1-1 R1 9900 59",
	}
	require.Equal(t, bill, read())
	f.ok("/operator/bill-row", `{"action":"hide","reference":"GHOST"}`) // too late
	require.Equal(t, bill, read())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM bill_rows WHERE out_trade_no = 'A3-1' AND order_no = 'B3' AND currency = 'USD'`))
	require.Equal(t, 84, f.count(`SELECT amount_cents FROM charges WHERE order_no = 'A3'`))
	f.refused("/bill", `{"date":"2 January"}`, "PARAM_ERROR")
	require.Empty(t, f.ok("/bill", `{"date":"2025-12-31"}`)["rows"])
}
