package system_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
)

// The whole way with both services real: create, prepay, pay, callback.
func TestShopAndChannelTogether(t *testing.T) {
	clock, work := newClock(), &loops{}
	bank, err := channel.New(channel.Config{SigningKey: signingKey}, channel.Env{
		Clock: clock, Loops: work, DB: openDB(t, clock, channel.Migrate), HTTP: &http.Client{}, NewID: ids(), Log: quiet(),
	})
	require.NoError(t, err)
	bankServer := httptest.NewServer(bank.Handler())
	t.Cleanup(bankServer.Close)

	shopServer := httptest.NewUnstartedServer(nil)
	f := &fixture{T: t, clock: clock, db: openDB(t, clock, system.Migrate), url: "http://" + shopServer.Listener.Addr().String()}
	shop, err := system.New(system.Config{
		Channels: []system.ChannelConfig{{Name: "mock", URL: bankServer.URL}}, NotifyURL: f.url + "/callback/pay", MerchantID: "M1", SigningKey: signingKey,
	}, system.Env{Clock: clock, Loops: work, DB: f.db, HTTP: &http.Client{}, NewID: ids(), Log: quiet()})
	require.NoError(t, err)
	shopServer.Config.Handler = shop.Handler()
	shopServer.Start()
	t.Cleanup(shopServer.Close)

	status, body := f.create(`{"orderNo":"A1","amountCents":9900}`)
	require.Equal(t, 201, status, body)
	reply, err := http.Post(bankServer.URL+"/pay", "application/json", strings.NewReader(`{"outTradeNo":"A1-1"}`))
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Equal(t, 200, reply.StatusCode)
	require.Equal(t, system.Created, f.order("A1").Status)

	work.runOnce(t.Context())
	order := f.order("A1")
	require.Equal(t, system.Paid, order.Status)
	require.Equal(t, 200*time.Millisecond, time.Duration(order.PaidMs-order.CreatedMs)*time.Millisecond)
	require.Equal(t, []string{"T-A1-1-1"}, f.column(`SELECT channel_txn FROM payment_records`))
}

// An alipay-like channel knows no trade before the buyer scans its code, so none can be closed there. The deadline that
// it was told is what keeps a closed order from being paid for days.
func TestUnscannedTradeEndsWithItsOrder(t *testing.T) {
	w := newTown(t)
	w.openBank("alipay", channel.AlipayLike())
	w.url = w.start(w.cfg, nil, nil)
	for _, no := range []string{"A1", "A2"} {
		status, body := w.create(`{"orderNo":"` + no + `","amountCents":9900,"channel":"alipay"}`)
		require.Equal(t, 201, status, body)
	}
	pay := func(no string) int {
		reply, err := http.Post(w.urls["alipay"]+"/pay", "application/json", strings.NewReader(`{"outTradeNo":"`+no+`-1"}`))
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		return reply.StatusCode
	}
	w.clock.advance(15*time.Minute - time.Millisecond)
	require.Equal(t, 200, pay("A1"))
	w.clock.advance(time.Millisecond)
	require.Equal(t, 409, pay("A2"))
	w.run("close-scan")
	require.Equal(t, 409, pay("A2"))
	require.Equal(t, system.Paid, w.order("A1").Status)
	require.Equal(t, system.Closed, w.order("A2").Status)
}
