package scenarios

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// The folder of the incidents may be another, of somebody's own:
// go test ./scenarios -run TestIncidents -incidents DIR.
var incidentFolder = flag.String("incidents", "incidents", "the folder of the incident files")

// incidentFiles returns the files of the repository by name.
func incidentFiles(t *testing.T) map[string]*Incident { return incidentsIn(t, "incidents") }

func incidentsIn(t *testing.T, folder string) map[string]*Incident {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	incidents := map[string]*Incident{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		incident, err := ParseIncident(file, string(text))
		require.NoError(t, err)
		require.NoError(t, incident.CheckDefects())
		canonical, err := FormatIncident(file, string(text))
		require.NoError(t, err)
		assert.Equal(t, canonical, string(text), "go run ./cmd/tillstorm fmt %s", file)
		incidents[strings.TrimSuffix(filepath.Base(file), ".txtar")] = incident
	}
	return incidents
}

// TestIncidents runs each file exactly as it is written.
func TestIncidents(t *testing.T) {
	for name, incident := range incidentsIn(t, *incidentFolder) {
		t.Run(name, func(t *testing.T) {
			report, err := Batch{Incidents: []*Incident{incident}}.Run(t.Context())
			require.NoError(t, err)
			for _, f := range report.Failures {
				t.Errorf("%s", f.Text)
			}
			require.Equal(t, Pass, report.Verdict())
		})
	}
}

// What the files leave open varies with the seed, and is a plan again.
func TestIncidentVaries(t *testing.T) {
	incident := incidentFiles(t)["pay"]
	seeds := Seeds{1, 3}
	report, err := Batch{Incidents: []*Incident{incident}, Seeds: &seeds}.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, report.Passed)

	c := incident.Case()
	c.Seed, c.Vary = 1, true
	varied, err := Run(c, nil)
	require.NoError(t, err)
	asWritten, err := Run(incident.Case(), nil)
	require.NoError(t, err)
	assert.NotEqual(t, asWritten.TraceHash, varied.TraceHash)
	again, err := Run(reread(t, IncidentOf(varied)).Case(), nil)
	require.NoError(t, err)
	assert.Equal(t, varied.TraceHash, again.TraceHash)
}

// What a seed draws can be written down as a file, which needs the seed no more.
func TestDrawnRunIsAnIncident(t *testing.T) {
	arena := sim.NewArena()
	defer arena.Close()
	for seed := range uint64(4) {
		drawn, err := Run(Draw(seed, storm(t)), arena)
		require.NoError(t, err)
		incident := reread(t, IncidentOf(drawn))
		again, err := Run(incident.Case(), arena)
		require.NoError(t, err)
		assert.Equal(t, drawn.TraceHash, again.TraceHash, "seed %d", seed)
		assert.Equal(t, drawn.Verdict, again.Verdict)
	}
}

// What an operator cannot do to a row is a mistake in the file: it is told, not tried
// again for ever.
func TestImpossibleHandIsAMistake(t *testing.T) {
	x, err := ParseIncident("hand.txtar", shortIncident[:strings.Index(shortIncident, "14:00:00.500")]+
		"14:00:01.000 buyer pays A\n-- faults --\noperator edits shop/payment_records/A cents -9999 from 2s\n")
	require.NoError(t, err)
	_, err = Run(x.Case(), nil)
	require.ErrorContains(t, err, "CHECK constraint failed")
}

// reread writes an incident down and reads it.
func reread(t *testing.T, x *Incident) *Incident {
	again, err := ParseIncident(x.Name, x.String())
	require.NoError(t, err, x.String())
	return again
}

// An incident has its own start, stock and window.
func TestIncidentHasItsOwnWorld(t *testing.T) {
	incident, err := ParseIncident("own.txtar", `
-- setup --
start 2026-12-31 23:50:00.000
stock S7 1
order A 1.00 CNY sku S7 expires 2027-01-01T00:05:00.000
order B 1.00 CNY sku S7 expires 2027-01-01T00:05:01.000
-- timeline --
23:59:00.000 buyer creates A
23:59:01.000 buyer creates B
2027-01-01T00:01:00.000 buyer pays A
2027-01-01T00:30:00.000 buyer reads A
`)
	require.NoError(t, err)
	r, err := Run(incident.Case(), nil)
	require.NoError(t, err)
	require.Equal(t, Pass, r.Verdict)
	assert.Equal(t, "2026-12-31 23:50:00 +0800", r.Trace.Start.Format("2006-01-02 15:04:05 -0700"))
	assert.Equal(t, 1, r.Probes["order paid"])
	assert.Equal(t, 1, r.Probes["order closed"], "there was stock for one, and B was never paid")
	var answers []string
	for i := range r.Trace.Records {
		if one := &r.Trace.Records[i]; one.Event == sim.EventAnswer && one.Message.Kind == "read" {
			answers = append(answers, r.Trace.Clock(one.At)+" "+status(one.Message.Body))
		}
	}
	assert.Equal(t, []string{"2027-01-01T00:30:00.000200 PAID"}, answers)
}
