package system_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// machineStates are where an order may stand when something happens to it, each reached by what people and channels do.
var machineStates = []struct {
	name  string
	reach func(f *fixture)
}{
	{"none", func(*fixture) {}},
	{"created", func(f *fixture) { f.create(orderA1) }},
	{"closed", func(f *fixture) { f.create(orderA1); f.clock.advance(15 * time.Minute); f.scan() }},
	{"paid", func(f *fixture) { f.create(orderA1); f.callback(paidA1) }},
	{"partly back", func(f *fixture) {
		f.create(orderA1)
		f.callback(paidA1)
		f.refund(`{"refundNo":"Q1","amountCents":100}`)
	}},
	{"refunding", func(f *fixture) { f.create(orderA1); f.callback(paidA1); f.refund(`{"refundNo":"Q1"}`) }},
	{"refund failed", func(f *fixture) {
		f.create(orderA1)
		f.callback(paidA1)
		f.refund(`{"refundNo":"Q1"}`)
		f.refundCallback(ofQ1("CLOSED", 9900))
	}},
	{"refunded", func(f *fixture) {
		f.create(orderA1)
		f.callback(paidA1)
		f.refund(`{"refundNo":"Q1"}`)
		f.refundCallback(ofQ1("SUCCESS", 9900))
	}},
}

const orderA1 = `{"orderNo":"A1","amountCents":9900}`

func ofQ1(state string, cents int) string {
	return fmt.Sprintf(`{"refundNo":"Q1","channel":"mock","state":%q,"amountCents":%d,"currency":"CNY"}`, state, cents)
}

// centsOfQ1 is the amount of Q1 as the order's state has it.
func (f *fixture) centsOfQ1() (cents int) {
	_ = f.db.QueryRowContext(f.Context(), `SELECT amount_cents FROM refunds WHERE refund_no = 'Q1'`).Scan(&cents)
	return max(1, cents)
}

// machineEvents are what may happen to an order. Each tells what was answered.
var machineEvents = map[string]func(f *fixture) (int, string){
	"create":         func(f *fixture) (int, string) { return f.create(orderA1) },
	"create other":   func(f *fixture) (int, string) { return f.create(`{"orderNo":"A1","amountCents":1}`) },
	"pay elsewhere":  func(f *fixture) (int, string) { return f.do("POST", "/orders/A1/pay", `{"channel":"second"}`, nil) },
	"charge T1":      func(f *fixture) (int, string) { return f.callback(paidA1) },
	"charge T2":      chargeT2,
	"reinstate T2":   func(f *fixture) (int, string) { defer f.relay(); return chargeT2(f) }, // under the policy, with what follows
	"cancel":         func(f *fixture) (int, string) { return f.do("POST", "/orders/A1/cancel", `{}`, nil) },
	"close scan":     func(f *fixture) (int, string) { f.clock.advance(15 * time.Minute); f.scan(); return 0, "" },
	"refund":         func(f *fixture) (int, string) { return f.refund(`{"refundNo":"Q2"}`) },
	"refund success": func(f *fixture) (int, string) { return f.refundCallback(ofQ1("SUCCESS", f.centsOfQ1())) },
	"refund failure": func(f *fixture) (int, string) { return f.refundCallback(ofQ1("CLOSED", f.centsOfQ1())) },
}

func chargeT2(f *fixture) (int, string) { return f.callback(strings.ReplaceAll(paidA1, "T1", "T2")) }

// machineCase is what one event makes of one state. Log, records and refunds are the rows that it adds or changes.
type machineCase struct{ event, state, answer, log, records, refunds string }

var machineCases = []machineCase{
	{"create", "none", "201 CREATED", "CREATED create", "", ""},
	{"create", "created", "200 CREATED", "", "", ""},
	{"create", "closed", "200 CLOSED", "", "", ""},
	{"create", "paid", "200 PAID", "", "", ""},
	{"create", "partly back", "200 PAID", "", "", ""},
	{"create", "refunding", "200 REFUNDING", "", "", ""},
	{"create", "refund failed", "200 REFUNDING", "", "", ""},
	{"create", "refunded", "200 REFUNDED", "", "", ""},

	{"create other", "none", "201 CREATED", "CREATED create", "", ""},
	{"create other", "created", "409 order_conflict", "", "", ""},
	{"create other", "closed", "409 order_conflict", "", "", ""},
	{"create other", "paid", "409 order_conflict", "", "", ""},
	{"create other", "partly back", "409 order_conflict", "", "", ""},
	{"create other", "refunding", "409 order_conflict", "", "", ""},
	{"create other", "refund failed", "409 order_conflict", "", "", ""},
	{"create other", "refunded", "409 order_conflict", "", "", ""},

	{"pay elsewhere", "none", "404 order_unknown", "", "", ""},
	{"pay elsewhere", "created", "200 CREATED", "", "", ""},
	{"pay elsewhere", "closed", "409 order_not_payable", "", "", ""},
	{"pay elsewhere", "paid", "409 order_not_payable", "", "", ""},
	{"pay elsewhere", "partly back", "409 order_not_payable", "", "", ""},
	{"pay elsewhere", "refunding", "409 order_not_payable", "", "", ""},
	{"pay elsewhere", "refund failed", "409 order_not_payable", "", "", ""},
	{"pay elsewhere", "refunded", "409 order_not_payable", "", "", ""},

	// A repeat is answered as the first time, whatever has become of the order since.
	{"charge T1", "none", "404 attempt_unknown", "", "", ""},
	{"charge T1", "created", "200 PAID", "PAID callback", "T1 applied", ""},
	{"charge T1", "closed", "200 CLOSED", "", "T1 late", "R-mock-T1 9900 late REQUESTED"},
	{"charge T1", "paid", "200 PAID", "", "", ""},
	{"charge T1", "partly back", "200 PAID", "", "", ""},
	{"charge T1", "refunding", "200 PAID", "", "", ""},
	{"charge T1", "refund failed", "200 PAID", "", "", ""},
	{"charge T1", "refunded", "200 PAID", "", "", ""},

	{"charge T2", "none", "404 attempt_unknown", "", "", ""},
	{"charge T2", "created", "200 PAID", "PAID callback", "T2 applied", ""},
	{"charge T2", "closed", "200 CLOSED", "", "T2 late", "R-mock-T2 9900 late REQUESTED"},
	{"charge T2", "paid", "200 PAID", "", "T2 surplus", "R-mock-T2 9900 surplus REQUESTED"},
	{"charge T2", "partly back", "200 PAID", "", "T2 surplus", "R-mock-T2 9900 surplus REQUESTED"},
	{"charge T2", "refunding", "200 REFUNDING", "", "T2 surplus", "R-mock-T2 9900 surplus REQUESTED"},
	{"charge T2", "refund failed", "200 REFUNDING", "", "T2 surplus", "R-mock-T2 9900 surplus REQUESTED"},
	{"charge T2", "refunded", "200 REFUNDED", "", "T2 surplus", "R-mock-T2 9900 surplus REQUESTED"},

	{"reinstate T2", "none", "404 attempt_unknown", "", "", ""},
	{"reinstate T2", "created", "200 PAID", "PAID callback", "T2 applied", ""},
	{"reinstate T2", "closed", "200 CLOSED", "PAID reinstate", "T2 late", ""},
	{"reinstate T2", "paid", "200 PAID", "", "T2 surplus", "R-mock-T2 9900 surplus ACCEPTED"},
	{"reinstate T2", "partly back", "200 PAID", "", "T2 surplus", "R-mock-T2 9900 surplus ACCEPTED"},
	{"reinstate T2", "refunding", "200 REFUNDING", "", "T2 surplus", "R-mock-T2 9900 surplus ACCEPTED"},
	{"reinstate T2", "refund failed", "200 REFUNDING", "", "T2 surplus", "R-mock-T2 9900 surplus ACCEPTED"},
	{"reinstate T2", "refunded", "200 REFUNDED", "", "T2 surplus", "R-mock-T2 9900 surplus ACCEPTED"},

	{"cancel", "none", "404 order_unknown", "", "", ""},
	{"cancel", "created", "200 CLOSED", "CLOSED cancelled", "", ""},
	{"cancel", "closed", "200 CLOSED", "", "", ""},
	{"cancel", "paid", "409 order_not_cancellable", "", "", ""},
	{"cancel", "partly back", "409 order_not_cancellable", "", "", ""},
	{"cancel", "refunding", "409 order_not_cancellable", "", "", ""},
	{"cancel", "refund failed", "409 order_not_cancellable", "", "", ""},
	{"cancel", "refunded", "409 order_not_cancellable", "", "", ""},

	{"close scan", "none", "", "", "", ""},
	{"close scan", "created", "", "CLOSED deadline", "", ""},
	{"close scan", "closed", "", "", "", ""},
	{"close scan", "paid", "", "", "", ""},
	{"close scan", "partly back", "", "", "", ""},
	{"close scan", "refunding", "", "", "", ""},
	{"close scan", "refund failed", "", "", "", ""},
	{"close scan", "refunded", "", "", "", ""},

	{"refund", "none", "404 order_unknown", "", "", ""},
	{"refund", "created", "409 order_not_refundable", "", "", ""},
	{"refund", "closed", "409 order_not_refundable", "", "", ""},
	{"refund", "paid", "202 REQUESTED", "REFUNDING refund", "", "Q2 9900 request REQUESTED"},
	{"refund", "partly back", "202 REQUESTED", "REFUNDING refund", "", "Q2 9800 request REQUESTED"},
	{"refund", "refunding", "422 refund_exceeds_paid", "", "", ""},
	{"refund", "refund failed", "202 REQUESTED", "", "", "Q2 9900 request REQUESTED"},
	{"refund", "refunded", "422 refund_exceeds_paid", "", "", ""},

	{"refund success", "none", "404 refund_unknown", "", "", ""},
	{"refund success", "created", "404 refund_unknown", "", "", ""},
	{"refund success", "closed", "404 refund_unknown", "", "", ""},
	{"refund success", "paid", "404 refund_unknown", "", "", ""},
	{"refund success", "partly back", "200 success", "", "", "Q1 100 request SUCCEEDED"},
	{"refund success", "refunding", "200 success", "REFUNDED refund", "", "Q1 9900 request SUCCEEDED"},
	{"refund success", "refund failed", "200 success", "REFUNDED refund", "", "Q1 9900 request SUCCEEDED"},
	{"refund success", "refunded", "200 success", "", "", ""},

	{"refund failure", "none", "404 refund_unknown", "", "", ""},
	{"refund failure", "created", "404 refund_unknown", "", "", ""},
	{"refund failure", "closed", "404 refund_unknown", "", "", ""},
	{"refund failure", "paid", "404 refund_unknown", "", "", ""},
	{"refund failure", "partly back", "200 success", "", "", "Q1 100 request FAILED"},
	{"refund failure", "refunding", "200 success", "", "", "Q1 9900 request FAILED"},
	{"refund failure", "refund failed", "200 success", "", "", ""},
	{"refund failure", "refunded", "200 success", "", "", ""},
}

// Every event in every state, through the API, and a second time: what is answered, and which rows there are then.
func TestEveryEventInEveryState(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range machineCases {
		name := c.event + ", " + c.state
		require.False(t, seen[name], "%s stands there twice", name)
		seen[name] = true
		t.Run(name, c.run)
	}
	require.Len(t, seen, len(machineEvents)*len(machineStates), "each event has each state")
}

func (c machineCase) run(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *system.Config) {
		if strings.HasPrefix(c.event, "reinstate") {
			cfg.LateSuccess = system.LateReinstate
		}
	})
	for _, s := range machineStates {
		if s.name == c.state {
			s.reach(f)
		}
	}
	f.loops.forget() // only what the event brings about is looked at
	before := f.machineRows()
	answer := inShort(machineEvents[c.event](f))
	after := f.machineRows()
	require.Equal(t, c.answer, answer)
	require.Equal(t, machineRows{c.log, c.records, c.refunds}, after.without(before))

	// The same again: the same word, and not a row more.
	again := inShort(machineEvents[c.event](f))
	require.Equal(t, word(answer), word(again))
	require.Equal(t, after, f.machineRows())
	logged := f.column(`SELECT to_status FROM order_status_log ORDER BY log_id DESC LIMIT 1`)
	require.Equal(t, logged, f.column(`SELECT status FROM orders`), "the order stands where its log ends")
	if len(logged) == 1 {
		require.EqualValues(t, logged[0], f.order("A1").Status)
	}
}

// inShort is an answer's HTTP status and its one word.
func inShort(status int, body string) string {
	if status == 0 {
		return ""
	}
	var answer struct {
		Status, State, Result string
		Error                 struct{ Code string }
	}
	_ = json.Unmarshal([]byte(body), &answer)
	for _, word := range []string{answer.Error.Code, answer.Status, answer.State, answer.Result} {
		if word != "" {
			return fmt.Sprint(status, " ", word)
		}
	}
	return fmt.Sprint(status, " ", body, http.StatusText(status))
}

func word(answer string) string { return answer[strings.IndexByte(answer, ' ')+1:] }

// machineRows are the rows about an order, line by line.
type machineRows struct{ log, records, refunds string }

func (f *fixture) machineRows() machineRows {
	f.Helper()
	lines := func(query string) string { return strings.Join(f.column(query), "\n") }
	return machineRows{
		log:     lines(`SELECT to_status || ' ' || cause FROM order_status_log ORDER BY log_id`),
		records: lines(`SELECT channel_txn || ' ' || disposition FROM payment_records ORDER BY recorded_ms, channel_txn`),
		refunds: lines(`SELECT refund_no || ' ' || amount_cents || ' ' || cause || ' ' || state FROM refunds ORDER BY refund_no`),
	}
}

// without leaves out the lines that were there before.
func (r machineRows) without(before machineRows) machineRows {
	minus := func(lines, known string) string {
		old := strings.Split(known, "\n")
		return strings.Join(slices.DeleteFunc(strings.Split(lines, "\n"), func(line string) bool { return slices.Contains(old, line) }), "\n")
	}
	return machineRows{minus(r.log, before.log), minus(r.records, before.records), minus(r.refunds, before.refunds)}
}
