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
