package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Each pin is kept, as the file is written and whatever the latencies are.
func TestPins(t *testing.T) {
	seen := map[string]bool{}
	for name, x := range incidentsIn(t, "testdata/pins") {
		for _, p := range x.Pins {
			seen[p.Actor+" "+p.Verb] = true
		}
		for _, seeds := range []*Seeds{nil, {1, 6}} {
			report, err := Batch{Incidents: []*Incident{x}, Seeds: seeds}.Run(t.Context())
			require.NoError(t, err)
			for _, f := range report.Failures {
				t.Errorf("%s: %s", name, f.Text)
			}
			require.Equal(t, Pass, report.Verdict())
		}
	}
	for _, v := range pinVerbs {
		assert.True(t, seen[v.actor+" "+v.verb], "no file of testdata/pins has the pin %s %s", v.actor, v.verb)
	}
}

// What a pin holds is there at its time, to the microsecond.
func TestPinsHoldToTheMicrosecond(t *testing.T) {
	x := incidentsIn(t, "testdata/pins")["paid-and-refunded"]
	for seed := range uint64(3) {
		c := x.Case()
		c.Seed, c.Vary = seed, seed > 0
		r, err := Run(c, nil)
		require.NoError(t, err)
		var happened []string
		for i := range r.Trace.Records {
			if line := statusLine(r.Trace, &r.Trace.Records[i]); line != "" {
				happened = append(happened, line)
			}
		}
		assert.Equal(t, []string{
			"14:00:00.040000 A CREATED", "14:05:02.050000 A PAID", "14:06:00.050000 A REFUNDING", "14:06:06.100000 A REFUNDED",
		}, happened, "seed %d", seed)
	}
}

func statusLine(trace *sim.Trace, r *sim.Record) string {
	if !isRow(r, "shop", "orders") {
		return ""
	}
	return trace.Clock(r.At) + " " + r.Change.Text("order_no") + " " + r.Change.Text("status")
}

// A pin that is not kept is stale, and told with its line and what came nearest.
func TestMissedPins(t *testing.T) {
	const text = "-- setup --\npolicy close-by scan\norder A 1.00 CNY sku S1 expires 14:01:00.000\n-- timeline --\n14:00:00.021 buyer creates A\n"
	for _, one := range []struct{ line, told string }{
		{"14:00:00.500 shop commits A PAID", "never reached, and nothing like it"},
		{"14:00:00.030 shop prepays A", "late, for the system came to shop-"},
		{"14:10:00.000 closer commits A CLOSED on shop-1", "never reached; what came nearest was shop-2/close-scan@14:01:04.507/COMMIT(A):before at 14:01:04."},
	} {
		x, err := ParseIncident("f.txtar", text+one.line+"\n")
		require.NoError(t, err)
		r, err := Run(x.Case(), nil)
		require.NoError(t, err)
		require.Equal(t, Stale, r.Verdict, one.line)
		require.Contains(t, strings.Join(r.Staleness(), "\n"), "f.txtar:6: "+strings.Split(one.line, "\n")[0])
		require.Contains(t, strings.Join(r.Staleness(), "\n"), one.told)
	}
}

// Every example in the vocabulary is a line that a file may have.
func TestExamplesAreLines(t *testing.T) {
	const rest = "order A 198.00 CNY sku S1\n-- timeline --\n14:00:00.021 buyer creates A\n14:00:01.000 buyer attempts A alipay\n14:00:02.000 buyer pays A\n"
	try := func(text string) {
		_, err := ParseIncident("f.txtar", text)
		assert.NoError(t, err, text)
	}
	for _, l := range SetupLines() {
		if strings.HasPrefix(l.Form, "order ") {
			continue // it is in the rest
		}
		try("-- setup --\n" + l.Example + "\n" + rest)
	}
	for _, l := range VerbLines() {
		try("-- setup --\n" + rest + "14:01:00.000 " + l.Example + "\n")
	}
	for _, l := range ExpectLines() {
		try("-- setup --\n" + rest + "-- expect --\n" + l.Example + "\n")
	}
}

// The file that new writes runs as it is.
func TestTemplate(t *testing.T) {
	text, err := Template("coupon-spent-twice")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "coupon-spent-twice.txtar")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	x := incidentsIn(t, filepath.Dir(file))["coupon-spent-twice"]
	assert.True(t, strings.HasPrefix(x.Story, "# Coupon spent twice\n"))
	report, err := Batch{Incidents: []*Incident{x}}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, Pass, report.Verdict(), "%v", report.Failures)
	_, err = Template("../x")
	require.ErrorContains(t, err, "is no name for an incident")
}
