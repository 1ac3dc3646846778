package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// The founding incident happens to the millisecond as its file has it.
func TestLateCallbackAfterClose(t *testing.T) {
	x := incidentFiles(t)["late-callback-after-close"]
	x.Faults = nil // the crash in mid-callback is told by the file alone
	r, err := Run(x.Case(), nil)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict, "%v %v", r.Failures, r.Missed)
	var happened []string
	for i := range r.Trace.Records {
		line := incidentLine(r.Trace, &r.Trace.Records[i])
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
		`14:15:03.873 callback answered 200 {"orderNo":"A","status":"CLOSED","result":"success"}`,
		"14:15:06.882 buyer has back R-wechat-T-A-1-1 19800",
		"14:15:10.000 buyer reads CLOSED",
	}, happened)
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
