package checker_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

func sealed(key, body string, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// A callback that is not to be believed, and is, is told with all that is wrong with it.
func TestForgeriesAreTold(t *testing.T) {
	const notice = `{"orderNo":"A","outTradeNo":"A-1","channel":"mock","channelTxn":"T1","merchantId":"M","amountCents":19800,"currency":"CNY"}`
	const sentIt = "stranger sent it, not mock: "
	trueSeal := sealed("ours", notice, start)
	with := func(old, now string) string { return strings.Replace(notice, old, now, 1) }
	later := start.Add(2 * time.Hour)
	for name, one := range map[string]struct{ body, seal, tells string }{
		"unsigned":        {notice, "", sentIt + "it is not signed"},
		"nonsense":        {notice, "t=now,v1=00", sentIt + "its signature is none"},
		"other key":       {notice, sealed("theirs", notice, later), sentIt + "it is signed with another key than the channel's"},
		"stolen key":      {notice, sealed("ours", notice, later), sentIt + "it is signed with the channel's key, which somebody else must have"},
		"replayed":        {notice, trueSeal, sentIt + "it is a copy of the channel's own, signed 2h0m0s ago"},
		"other amount":    {with("19800", "119800"), trueSeal, sentIt + "it was altered after it was signed, amountCents from 19800 to 119800, and 198.00 CNY is due"},
		"other currency":  {with("CNY", "JPY"), trueSeal, sentIt + "it was altered after it was signed, currency from CNY to JPY, and in another currency: 198.00 CNY is due"},
		"unknown attempt": {with("A-1", "A-99"), sealed("ours", with("A-1", "A-99"), later), "must have, and we know of no attempt A-99 of order A on mock"},
		"other merchant":  {with(`"M"`, `"M0"`), sealed("ours", with(`"M"`, `"M0"`), later), "must have, and it is for the merchant M0, and we are M"},
	} {
		t.Run(name, func(t *testing.T) {
			trace := &sim.Trace{}
			evidence := checker.New(trace).Judge("authentic-only")
			evidence.SealedFor("M", []byte("ours"))
			teller := newTeller(trace)
			require.NoError(t, teller.tell("create(A)#1 commits order A CREATED 198.00, shop.payment_orders:A-1 out_trade_no=A-1 order_no=A channel=mock"))
			arrive := func(name, from, body, seal string) {
				m := &sim.Message{Exchange: name, Leg: sim.Request, Kind: "callback", Key: "A", From: from, To: "shop", Body: []byte(body), Header: http.Header{}}
				if seal != "" {
					m.Header.Set("X-Signature", seal)
				}
				teller.add(sim.Record{Node: from, Event: sim.EventSend, Op: name, Message: m})
				teller.add(sim.Record{Node: "shop-1", Event: sim.EventDeliver, Op: name, Message: m})
			}
			arrive("callback(A)#1", "mock", notice, trueSeal)
			teller.now = 2 * time.Hour
			arrive("callback(A)#2", "stranger", one.body, one.seal)
			require.NoError(t, teller.tell("callback(A)#2 commits order A PAID"))
			failures, _ := evidence.Finish()
			require.Len(t, failures, 1)
			assert.True(t, strings.HasSuffix(failures[0].Message, one.tells), failures[0].Message)
		})
	}
}
