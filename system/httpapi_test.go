package system_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/signature"
)

// message is what an error's body says to people.
func message(t *testing.T, body string) string {
	t.Helper()
	var answer httpjson.ErrorBody
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	return answer.Error.Message
}

func TestWhatNoRouteFits(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		method, path, code string
		status             int
	}{
		{"GET", "/nowhere", "route_unknown", 404},
		{"DELETE", "/orders/A1", "method_not_allowed", 405},
		{"GET", "/callback/pay", "method_not_allowed", 405},
		{"GET", "/orders?limt=1", "parameter_unknown", 400},
		{"GET", "/orders/A1?verbose=1", "parameter_unknown", 400},
		{"GET", "/alerts?limit=1", "parameter_unknown", 400},
	} {
		status, body := f.do(c.method, c.path, "", http.Header{})
		require.Equal(t, c.status, status, c.path)
		require.Equal(t, c.code, code(t, body), c.path)
	}
	status, body := f.do("GET", "/", "", http.Header{})
	require.Equal(t, 200, status)
	for _, route := range system.Routes() {
		require.Contains(t, body, `"`+route.Path+`"`)
	}
}

// What a caller can mend is told by the names that the caller uses, with what is wanted.
func TestMessagesNameTheField(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.create(`{"orderNo":"A2","amountCents":100,"sku":"S1","quantity":2,"channel":"second"}`)
	for _, c := range []struct{ path, body, message string }{
		{"/orders", `{"amountCents":1}`, "orderNo is missing; it must be 1 to 64 of [A-Za-z0-9_-]"},
		{"/orders", `{"orderNo":"A 1","amountCents":1}`, `orderNo must be 1 to 64 of [A-Za-z0-9_-], not "A 1"`},
		{"/orders", `{"orderNo":"A3"}`, "amountCents is missing or 0; it must be 1 to 1000000000"},
		{"/orders", `{"orderNo":"A3","amountCents":-5}`, "amountCents must be 1 to 1000000000, not -5"},
		{"/orders", `{"orderNo":"A3","amountCents":"5"}`, "amountCents must be a whole number of at most 9223372036854775807, not a string"},
		{"/orders", `{"orderNo":"A3","amountCents":5,"currency":"yuan"}`, `currency must be three capital letters like CNY, not "yuan"`},
		{"/orders", `{"orderNo":"A3","amountCents":5,"channel":"paypal"}`, `channel must be one of mock, second, not "paypal"`},
		{"/orders", `{"orderNo":"A3","amountCents":5,"note":"x"}`, `there is no field "note"; there are: orderNo, amountCents, currency, sku, quantity, channel`},
		{"/orders", `{"orderNo":"A1","amountCents":9901}`, "order A1 exists with other content: amountCents is 9900, not 9901"},
		{"/orders", `{"orderNo":"A1","amountCents":9900,"currency":"USD"}`, `order A1 exists with other content: currency is "CNY", not "USD"`},
		{"/orders", `{"orderNo":"A1","amountCents":9900,"channel":"second"}`, `order A1 exists with other content: channel is "mock", not "second"`},
		{"/orders", `{"orderNo":"A2","amountCents":100,"sku":"S2"}`, `order A2 exists with other content: sku is "S1", not "S2"; quantity is 2, not 1; channel is "second", not "mock"`},
		{"/orders/A1/pay", `{}`, `channel must be one of mock, second, not ""`},
		{"/orders/A1/refunds", `{"amountCents":"all"}`, "amountCents must be a whole number of at most 9223372036854775807, not a string"},
	} {
		_, body := f.do("POST", c.path, c.body, http.Header{})
		require.Equal(t, c.message, message(t, body), c.body)
	}
}

func TestRefundConflictNamesTheDifference(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	f.callback(paidA1)
	f.do("POST", "/orders/A1/refunds", `{"refundNo":"F1","amountCents":100}`, http.Header{})
	_, body := f.do("POST", "/orders/A1/refunds", `{"refundNo":"F1","amountCents":101}`, http.Header{})
	require.Equal(t, "refund F1 exists with other content: amountCents is 100, not 101", message(t, body))
}

func TestEachRefusedSignatureSaysWhy(t *testing.T) {
	f := newFixture(t)
	f.create(`{"orderNo":"A1","amountCents":9900}`)
	other := strings.Replace(paidA1, "{", `{"merchantId":"M2",`, 1)
	for _, c := range []struct {
		body, signed, code, message string
	}{
		{paidA1, "", "signature_missing", "there is no X-Signature header; it reads t="},
		{paidA1, "...", "signature_malformed", "X-Signature must read t="},
		{paidA1, signature.Sign([]byte("another key, not ours"), []byte(paidA1), f.clock.Now()), "signature_invalid",
			"X-Signature is not ours: it was made with another key, or for another body or time"},
		{paidA1, signature.Sign(signingKey, []byte(paidA1), f.clock.Now().Add(-6*time.Minute)), "signature_stale",
			"X-Signature is good, but its time is 6m0s ago; at most 5m0s is taken"},
		{other, signature.Sign(signingKey, []byte(other), f.clock.Now()), "merchant_unknown",
			`merchantId is "M2", and this shop is another merchant`},
	} {
		_, body := f.signed(c.body, c.signed)
		require.Equal(t, c.code, code(t, body))
		require.Contains(t, message(t, body), c.message)
	}
}

// impatient is the fixture's database for somebody who doesn't wait for its lock.
func (f *fixture) impatient() *sql.DB {
	to := connectorTo(f.clock, f.path())
	to.dsn = strings.Replace(to.dsn, "_busy_timeout=5000", "_busy_timeout=20", 1)
	db := sql.OpenDB(to)
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	return db
}

func TestALockedDatabaseIsBusyAndSick(t *testing.T) {
	f := newFixture(t)
	f.url = f.startOver(f.impatient(), &http.Client{})
	holder, err := f.db.BeginTx(t.Context(), nil) // another process, which doesn't let go
	require.NoError(t, err)
	reply, err := http.Post(f.url+"/orders", "", strings.NewReader(`{"orderNo":"A1","amountCents":9900}`))
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	require.Equal(t, 503, reply.StatusCode)
	require.Equal(t, "1", reply.Header.Get("Retry-After"))
	_, body := f.create(`{"orderNo":"A1","amountCents":9900}`)
	require.Equal(t, "busy", code(t, body))
	status, body := f.do("GET", "/healthz", "", http.Header{})
	require.Equal(t, 503, status)
	require.Equal(t, "database_unwritable", code(t, body))

	require.NoError(t, holder.Rollback())
	status, body = f.create(`{"orderNo":"A1","amountCents":9900}`)
	require.Equal(t, 201, status, body)
	before := f.dump()
	status, _ = f.do("GET", "/healthz", "", http.Header{})
	require.Equal(t, 200, status)
	require.Equal(t, before, f.dump())
}

func TestAReadOnlyDatabaseIsSick(t *testing.T) {
	f := newFixture(t)
	db := f.impatient()
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(context.Background(), "PRAGMA query_only = 1")
	require.NoError(t, err)
	f.url = f.startOver(db, &http.Client{})
	status, body := f.do("GET", "/healthz", "", http.Header{})
	require.Equal(t, 503, status)
	require.Equal(t, "database_unwritable", code(t, body))
	status, _ = f.do("GET", "/orders", "", http.Header{})
	require.Equal(t, 200, status)
}

func TestCheckPayNotice(t *testing.T) {
	require.NoError(t, system.CheckPayNotice([]byte(paidA1)))
	for body, want := range map[string]string{
		`{`:                                                    "body_invalid",
		strings.Replace(paidA1, "A1", "A/1", 1):                "order_no_invalid",
		strings.Replace(paidA1, "mock", "", 1):                 "channel_invalid",
		strings.Replace(paidA1, "T1", "T 1", 1):                "channel_txn_invalid",
		strings.Replace(paidA1, "9900", "0", 1):                "amount_invalid",
		strings.Replace(paidA1, "{", `{"currency":"yuan",`, 1): "currency_invalid",
		strings.Replace(paidA1, "{", `{"outTradeNo":"?",`, 1):  "out_trade_no_invalid",
	} {
		var refusal *httpjson.Error
		require.ErrorAs(t, system.CheckPayNotice([]byte(body)), &refusal, body)
		require.Equal(t, want, refusal.Code, body)
	}
}
