package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
)

// pins hold steps of the system, named without their node, until a time.
type pins struct {
	faults.Script
	steps   map[string]time.Duration
	reached map[string]bool
}

func (p *pins) Step(s sim.Step) sim.Strike {
	name := strings.TrimPrefix(s.Name(), s.Node+"/")
	until, pinned := p.steps[name]
	if !pinned || p.reached[name] {
		return sim.Strike{}
	}
	p.reached[name] = true
	return sim.Strike{Stall: until - s.At}
}

// Armed implements sim.Foresight: a pinned run is not left out.
func (p *pins) Armed(s sim.Step) bool {
	_, pinned := p.steps[strings.TrimPrefix(s.Name(), s.Node+"/")]
	return pinned
}

// Over implements sim.Foresight.
func (p *pins) Over(_ string, at time.Duration) bool { return at > horizon }

// clock returns a time of the world's first day, "14:15:00.315", as true time.
func clock(t *testing.T, text string) time.Duration {
	at, err := time.ParseInLocation("15:04:05.000", text, zone)
	require.NoError(t, err)
	return at.Sub(time.Date(0, 1, 1, usualStart.Hour(), 0, 0, 0, zone))
}

// The founding incident. The buyer pays 1.342 s before the scan looks; the callback
// comes 3.556 s after the close. This shop closes without asking the channel. The
// order was created at 14:00:00.021 and its deadline is 14:15:00.000, to the
// millisecond: with a window of 15 minutes the scan would have been 19 ms early.
func TestLateCallbackAfterClose(t *testing.T) {
	at := func(text string) time.Duration { return clock(t, text) }
	const (
		statement = 200 * time.Microsecond
		commit    = time.Millisecond
		link      = 5 * time.Millisecond
		scan      = "close-scan@14:14:54.507" // the last one before the deadline, which runs late
	)
	p := &pins{Script: *faults.NewScript(nil), reached: map[string]bool{}}
	p.steps = map[string]time.Duration{
		"create(A)#1/InsertOrder:before":       at("14:00:00.021") - statement,
		"create(A)#1/prepay:before":            at("14:00:01.100"),
		"create(A)#1/StorePrepayToken:before":  at("14:00:01.130") - commit,
		"pay(A)#1/InsertCharge:before":         at("14:14:58.660") - statement,
		scan + "/ListDueOrders:before":         at("14:15:00.002") - statement,
		scan + "/COMMIT(A):before":             at("14:15:00.315") - commit,
		"notify(T-A-1-1)#1/sleep:after":        at("14:15:03.871") - link,
		"callback(A)#1/answer:before":          at("14:15:03.900"),
		"notify-copy(T-A-1-1#2)#1/sleep:after": at("14:15:04.271") - link, // from a second server of the channel
	}
	c := Case{
		PayWindow: 15*time.Minute - 21*time.Millisecond,
		Policy:    Policy{Close: system.CloseLocalOnly, CloseBy: []system.CloseBy{system.CloseByScan}},
		Workload: Workload{
			Orders: map[string]*Order{"A": {Cents: 198_00, Channel: "wechat"}},
			Operations: []Operation{
				{Verb: Creates, Order: "A"},
				{Verb: Pays, Order: "A", Channel: "wechat", Attempt: 1, At: at("14:14:58.650")},
				{Verb: Reads, Order: "A", At: at("14:15:10.000")},
			},
		},
	}
	w, err := build(&c, nil, p)
	require.NoError(t, err)
	defer w.Close()
	w.World.Run(horizon)
	w.settle(true)
	for name := range p.steps {
		assert.True(t, p.reached[name], "the pin %s was never reached", name)
	}

	var happened []string
	for i := range w.Trace().Records {
		line := incidentLine(w.Trace(), &w.Trace().Records[i])
		if line != "" && !strings.Contains(strings.Join(happened, "\n"), line[len("15:04:05.000"):]) { // news only
			happened = append(happened, line)
		}
	}
	assert.Equal(t, []string{
		"14:00:00.021 order A inserted",
		"14:00:01.130 payment link P-A-1",
		"14:14:58.660 channel charges T-A-1-1 19800",
		"14:15:00.002 scan finds 1 row",
		"14:15:00.315 A CLOSED deadline",
		"14:15:03.871 callback arrives",
		"14:15:03.873 record T-A-1-1 late 19800",
		`14:15:03.900 callback answered 200 {"orderNo":"A","status":"CLOSED","result":"success"}`,
		"14:15:06.882 buyer has back R-wechat-T-A-1-1 19800",
		"14:15:10.005 buyer reads CLOSED",
	}, happened)

	failures, unknown := w.evidence.Finish()
	assert.Empty(t, failures)
	assert.False(t, unknown)
	_, rows, err := w.orders.Query("SELECT o.status, r.state, r.cause, r.amount_cents FROM orders o JOIN refunds r ON r.order_no = o.order_no")
	require.NoError(t, err)
	assert.Equal(t, [][]any{{"CLOSED", "SUCCEEDED", "late", int64(198_00)}}, rows, "one refund")
}

// incidentLine returns a record as a line of the incident's timeline, "" if it is
// not part of it.
func incidentLine(trace *sim.Trace, r *sim.Record) string {
	when := trace.Start.Add(r.At).Format("15:04:05.000") + " "
	switch c := r.Change; {
	case r.Event == sim.EventSQL && r.Op == "InsertOrder":
		return when + "order A inserted"
	case r.Event == sim.EventSQL && r.Op == "ListDueOrders" && r.Detail == "1 row":
		return when + "scan finds " + r.Detail
	case c != nil && c.Table == "payment_orders" && c.Text("state") == "OPEN" && c.Text("prepay_token") != "":
		return when + "payment link " + c.Text("prepay_token")
	case r.Event == sim.EventSQL && r.Op == "InsertCharge":
		return when + "channel charges T-A-1-1 19800"
	case c != nil && c.Table == "orders" && c.Text("status") != "CREATED":
		return when + c.Text("order_no") + " " + c.Text("status") + " " + c.Text("close_reason")
	case c != nil && c.Table == "refunds" && c.Database == "wechat" && c.Text("state") == "SUCCESS":
		return when + "buyer has back " + c.Text("refund_no") + " 19800"
	case c != nil && c.Table == "payment_records":
		return when + "record " + c.Text("channel_txn") + " " + c.Text("disposition") + " 19800"
	case r.Event == sim.EventDeliver && r.Message.Kind == "callback" && r.Message.Leg == sim.Request:
		return when + "callback arrives"
	case r.Event == sim.EventAnswer && r.Message.Kind == "callback":
		return when + "callback answered 200 " + strings.TrimSpace(string(r.Message.Body))
	case r.Event == sim.EventAnswer && r.Message.Kind == "read":
		return when + "buyer reads " + status(r.Message.Body)
	}
	return ""
}

func status(body []byte) string {
	_, rest, _ := strings.Cut(string(body), `"status":"`)
	status, _, _ := strings.Cut(rest, `"`)
	return status
}
