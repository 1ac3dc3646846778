package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/system"
)

const wholeIncident = `# Everything that a file can say

# and why

-- setup --
# the shops
start       2026-03-02 13:59:00.000
policy      close local-only   # asks nobody
policy  late-success    reinstate
policy close-by scan,expiry
policy messages lost
policy leases granted-to-all

stock S1 3
stock S7 10


order       A  198.00 CNY  sku S7 quantity 2 expires 14:15:00.000
order       B12 0.01 CNY channel alipay
must-fail   late-success-ignored  no-orphan-money
-- timeline --
14:00:00.000  buyer creates A
14:00:00.000  buyer creates B12
14:00:01.000250  buyer attempts A alipay
14:00:02.000  buyer pays A alipay
14:00:02.000  buyer pays A
14:00:02.000  buyer pays B12 wechat attempt 3
14:00:03.000  buyer cancels B12
14:00:04.000  buyer refunds A
14:00:04.000  buyer refunds A 0.98 CNY
2026-03-03T00:10:00.000  buyer reads A
-- faults --
network drops callback(A)#1 # lost
"shop-1" crashes "create(A)#1/UPDATE orders:after" restarts 2s
`

func TestParseIncident(t *testing.T) {
	x, err := ParseIncident("whole.txtar", wholeIncident)
	require.NoError(t, err)
	at := func(text string) time.Duration {
		when, err := time.ParseInLocation(clockFormat, text, zone)
		require.NoError(t, err)
		return when.Sub(time.Date(2026, 3, 2, 13, 59, 0, 0, zone)) - linkTime // what arrives then is sent before
	}
	assert.Equal(t, &Incident{
		Name:  "whole.txtar",
		Story: "# Everything that a file can say\n\n# and why",
		Start: time.Date(2026, 3, 2, 13, 59, 0, 0, zone),
		Policy: Policy{
			Close: system.CloseLocalOnly, LateSuccess: system.LateReinstate, CloseBy: []system.CloseBy{system.CloseByScan, system.CloseByExpiry},
			MessagesLost: true, LeasesGrantAll: true,
		},
		PayWindow: 15 * time.Minute,
		Stock:     map[string]int64{"S1": 3, "S7": 10},
		Orders: []NumberedOrder{
			{"A", Order{Cents: 198_00, Channel: "wechat", SKU: "S7", Quantity: 2}},
			{"B12", Order{Cents: 1, Channel: "alipay"}},
		},
		MustFail: []MustFail{{Defect: "late-success-ignored", Property: "no-orphan-money"}},
		Operations: []Operation{
			{Verb: Creates, Order: "A", At: at("2026-03-02T14:00:00")},
			{Verb: Creates, Order: "B12", At: at("2026-03-02T14:00:00")},
			{Verb: Attempts, Order: "A", Channel: "alipay", At: at("2026-03-02T14:00:01.00025")},
			{Verb: Pays, Order: "A", Channel: "alipay", Attempt: 2, At: at("2026-03-02T14:00:02")},
			{Verb: Pays, Order: "A", Channel: "wechat", Attempt: 1, At: at("2026-03-02T14:00:02")},
			{Verb: Pays, Order: "B12", Channel: "wechat", Attempt: 3, At: at("2026-03-02T14:00:02")},
			{Verb: Cancels, Order: "B12", At: at("2026-03-02T14:00:03")},
			{Verb: Refunds, Order: "A", Cents: 198_00, At: at("2026-03-02T14:00:04")},
			{Verb: Refunds, Order: "A", Cents: 98, At: at("2026-03-02T14:00:04")},
			{Verb: Reads, Order: "A", At: at("2026-03-03T00:10:00")},
		},
		Faults: faults.Plan{
			{Kind: faults.Drop, At: "callback(A)#1"},
			{Kind: faults.Crash, At: "shop-1/create(A)#1/UPDATE orders:after", For: 2 * time.Second},
		},
	}, unplaced(x))
}

func TestFormatIncident(t *testing.T) {
	text, err := FormatIncident("whole.txtar", wholeIncident)
	require.NoError(t, err)
	assert.Equal(t, `# Everything that a file can say

# and why
-- setup --
# the shops
start      2026-03-02 13:59:00.000
policy     close local-only  # asks nobody
policy     late-success reinstate
policy     close-by scan,expiry
policy     messages lost
policy     leases granted-to-all

stock      S1 3
stock      S7 10

order      A 198.00 CNY sku S7 quantity 2 expires 14:15:00.000
order      B12 0.01 CNY channel alipay
must-fail  late-success-ignored no-orphan-money
-- timeline --
14:00:00.000             buyer  creates   A
14:00:00.000             buyer  creates   B12
14:00:01.000250          buyer  attempts  A alipay
14:00:02.000             buyer  pays      A alipay
14:00:02.000             buyer  pays      A
14:00:02.000             buyer  pays      B12 wechat attempt 3
14:00:03.000             buyer  cancels   B12
14:00:04.000             buyer  refunds   A
14:00:04.000             buyer  refunds   A 0.98 CNY
2026-03-03T00:10:00.000  buyer  reads     A
-- faults --
network   drops    callback(A)#1  # lost
"shop-1"  crashes  "create(A)#1/UPDATE orders:after"  restarts 2s
`, text)
	again, err := FormatIncident("whole.txtar", text)
	require.NoError(t, err)
	assert.Equal(t, text, again)
}

func TestParseIncidentErrors(t *testing.T) {
	// setup and timeline make the rest of a file that is right.
	setup := func(lines string) string {
		return "-- setup --\n" + lines + "\norder A 1.00 CNY\n-- timeline --\n14:00:00.000 buyer creates A\n"
	}
	timeline := func(lines string) string {
		return "# x\n-- setup --\norder A 1.00 CNY\n-- timeline --\n14:00:00.000 buyer creates A\n" + lines + "\n"
	}
	plan := func(lines string) string { return timeline("-- faults --\n" + lines) }
	for _, one := range []struct{ text, err string }{
		{"", "1:1: there is no timeline: nothing would happen"},
		{"order A\n", "1:1: above the first section there are only comments, which begin with #"},
		{"# x\n\n 14:00:00.000\n", "3:1: above the first section there are only comments"},
		{setup("") + "-- fault --\n", `6:4: unknown section "fault", do you mean "faults"?`},
		{setup("") + "-- setup --\n", `6:4: the section "setup" stands here a second time`},
		{setup("orders B 1.00 CNY"), `2:1: unknown word "orders", do you mean "order"?`},
		{setup("start 2026-03-02"), "2:17: here a time, for example 14:00:00.000 is missing"},
		{setup("start 2026-02-30 14:00:00.000"), "2:7: 2026-02-30 14:00:00.000 is not a time such as 2026-03-02 14:00:00.000"},
		{setup("start 2026-03-02 14:00:00.000\nstart 2026-03-02 14:00:00.000"), "3:1: start stands here a second time"},
		{setup("policy"), "2:7: here a policy is missing"},
		{setup("policy opening local"), `2:8: unknown policy "opening"; there are close, late-success`},
		{setup("policy close remote"), `2:14: unknown value of the policy close "remote"; there are ask-first, local-only`},
		{setup("policy close-by message,scan"), `2:17: unknown value of the policy close-by "message,scan"`},
		{setup("policy close local-only\npolicy close ask-first"), "3:8: policy close stands here a second time"},
		{setup("policy close local-only now"), `2:25: "now" is too much here`},
		{setup("stock s1 10"), `2:7: "s1" is not a SKU such as S1`},
		{setup("stock S1 0"), `2:10: stock must be a number from 1 to 1000000, not "0"`},
		{setup("stock S1 10\nstock S1 12"), "3:7: stock S1 stands here a second time"},
		{setup("order B 1.00 CNY"), "2:7: no line of the timeline creates order B"},
		{setup("order b 1.00 CNY"), `2:7: "b" is not an order's number such as A or A17`},
		{setup("order A 1.00 CNY"), "3:7: order A stands here a second time"},
		{setup("order B 1.0 CNY"), `2:9: "1.0" is not an amount such as 198.00`},
		{setup("order B 0.00 CNY"), `2:9: "0.00" is not an amount`},
		{setup("order B 1.00 USD"), `2:14: unknown currency "USD"; there are CNY`},
		{setup("order B 1.00"), "2:13: here a currency is missing"},
		{setup("order B 1.00 CNY sku S9"), `2:22: there is no stock of "S9"; a line such as 'stock S9 10' puts some in`},
		{setup("order S1 1.00 CNY sku S1"), "2:7: an order and a SKU can't both be called S1"},
		{setup("order B 1.00 CNY quantity 2"), "2:1: order B has a quantity, but no sku"},
		{setup("order B 1.00 CNY sku S1 sku S1"), "2:25: sku of order B stands here a second time"},
		{setup("order B 1.00 CNY colour red"), `2:18: unknown word "colour"; there are sku, quantity, channel, expires`},
		{setup("order B 1.00 CNY channel paypal"), `2:26: unknown channel "paypal"; there are wechat, alipay, stripe`},
		{setup("must-fail x nonsense"), `2:13: unknown property "nonsense"; there are charge-once`},
		{setup("must-fail x charge-once\nmust-fail x closed-is-final"), "3:11: must-fail x stands here a second time"},
		{"-- setup --\norder A 1.00 CNY expires 13:00:00.000\n", "2:26: 13:00:00.000 is before the start, 2026-03-02T14:00:00"},
		{"-- setup --\norder A 1.00 CNY expires 14:00:00.500\n-- timeline --\n14:00:00.000 buyer creates A\n", "2:26: order A expires less than a second after it is created"},
		{"-- setup --\norder A 1.00 CNY expires 14:15:00.000\norder B 1.00 CNY expires 14:15:00.000\n-- timeline --\n" +
			"14:00:00.000 buyer creates A\n14:00:01.000 buyer creates B\n",
			"3:26: order B would wait 14m59s for its money and others 15m0s: the shops have one window for all"},
		{timeline("14:00 buyer reads A"), `6:1: "14:00" is not a time such as 14:00:00.000`},
		{timeline("25:00:00.000 buyer reads A"), `6:1: "25:00:00.000" is not a time`},
		{timeline("2026-04-01T00:00:00.000 buyer reads A"), "6:1: 2026-04-01T00:00:00.000 is more than 7 days after the start"},
		{timeline("14:00:01.000 buyer reads A\n14:00:00.999 buyer reads A"), "7:1: 14:00:00.999 is before the line above: time goes backwards"},
		{timeline("14:00:01.000 byer reads A"), `6:14: unknown actor "byer", do you mean "buyer"?`},
		{timeline("14:00:01.000 buyer buys A"), `6:20: unknown verb of the buyer "buys", do you mean "pays"?`},
		{timeline("14:00:01.000 buyer reads"), "6:25: here an order's number is missing"},
		{timeline("14:00:01.000 buyer reads B"), `6:26: unknown order "B"; the setup has no line 'order B ...'`},
		{timeline("14:00:01.000 buyer pays A alipay"), "6:27: no line before this one opens an attempt of order A on alipay"},
		{timeline("14:00:01.000 buyer pays A alipay attempt"), "6:41: here a number is missing"},
		{timeline("14:00:01.000 buyer reads A twice"), `6:28: unknown view "twice"; there are log, refunds, list, alerts, metrics, health`},
		{timeline("14:00:01.000 buyer reads A log twice"), `6:32: "twice" is too much here`},
		{timeline("-- faults --\n\nshop-1 explodes now"), `8:8: unknown verb "explodes"`},
		{plan("network drops callback(A)#1\nnetwork  drops  callback(A)#1 # twice"), "8:1: this fault stands here a second time"},
		{plan("wechat settles-late A-1 by 40h"), `7:28: by is 1ms to 24h, not "40h"`},
		{plan("shop-9 crashes callback(A)#1/COMMIT:before restarts 2s"), `7:1: unknown node "shop-9", do you mean "shop-1"?`},
		{plan("broker crashes callback(A)#1/COMMIT:before restarts 2s"), `7:1: unknown node "broker"; there are shop-1, shop-2, stock, staff, buyer, stranger, wechat, alipay`},
		{plan("shop-1 crashes callback(Z)#1/COMMIT:before restarts 2s"), `7:16: unknown order "Z"; the setup has no line 'order Z ...'`},
		{plan("shop-1 crashes x#1/COMMIT(Z):before restarts 2s"), `7:16: unknown order "Z"`},
		{plan("network drops callback(Z)#1"), `7:15: unknown order "Z"`},
		{plan("network cuts shop-1>wechta from 0s for 1s"), `7:14: unknown node "wechta", do you mean "wechat"?`},
		{plan("network parts shop<>stripe from 0s for 1s"), `7:15: unknown node "shop"`},
		{plan("network cuts stock>stock from 0s for 1s"), "7:14: a way has two ends"},
		{plan("database slows shops by 1s from 0s for 1s"), `7:16: unknown database "shops", do you mean "shop"?`},
		{plan("database fills nowhere from 0s for 1s"), `7:16: unknown database "nowhere"; there are shop, stock, wechat, alipay`},
		{plan("clock skews nowhere by 1s for 1s"), `7:13: unknown node "nowhere"`},
		{plan("stripe tells-at-close A-1"), `7:1: unknown channel "stripe"; there are wechat, alipay`},
		{plan("stripe delays-bill 2026-03-02 by 2h"), `7:1: unknown channel "stripe"`},
		{plan("wechat tells-at-close Z-1"), `7:23: unknown order "Z"`},
		{plan("wechat tells-at-close A"), `7:23: a trade is ORDER-ATTEMPT, for example A-1, not "A"`},
		{plan("wechat numbers A-1 as Z-1"), `7:23: unknown order "Z"`},
		{plan("operator edits shop/payment_records/Z cents 1 from 0s"), `7:16: unknown order "Z"`},
		{plan("operator edits shop/payment_orders/A cents 1 from 0s"), `7:16: unknown table "shop/payment_orders"; there are shop/orders, shop/payment_records, shop/refunds`},
		{plan("operator deletes shop/order_status_log/A from 0s"), `7:18: unknown table "shop/order_status_log"; there are shop/orders, shop/payment_records, shop/refunds, stock/stock_journal`},
		{plan("operator edits stock/stock_journal/A cents 1 from 0s"), `7:16: unknown table "stock/stock_journal"`},
	} {
		_, err := ParseIncident("bad.txtar", one.text)
		assert.ErrorContains(t, err, "bad.txtar:"+one.err, one.text)
		_, formatErr := FormatIncident("bad.txtar", one.text)
		assert.Equal(t, err, formatErr)
	}
}

// What only a run tells is not refused: tasks, operations, and keys that may be something
// else than orders.
func TestParseFaultsLeavesTheRestToTheRun(t *testing.T) {
	x := shortOne(t, "")
	plan, err := x.ParseFaults(`
network  drops  whatever(T-Z-1-1)#1
network  drops  "expired close(S1)#1"
shop-1   stalls  nobody(A-r1)#1/nothing:after  for 1s
broker   loses  close(A)#1
network  clogs  shop-1>broker  by 1s  from 0s  for 1s
wechat   invents-row  Z-1  cents 100
operator  deletes  stock/stock_journal/A  from 0s
operator  edits  shop/orders/A  cents 5  from 0s
`, nil)
	require.NoError(t, err)
	assert.Len(t, plan, 8)
	_, err = x.ParseFaults("broker loses close(A)#1", plan)
	assert.EqualError(t, err, "1:1: this fault stands here a second time")
}
