package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/scenarios"
)

// incidentFile writes an incident, and returns its name.
func incidentFile(t *testing.T, setup, rest string) string {
	file := filepath.Join(t.TempDir(), "x.txtar")
	text := "-- setup --\norder A 198.00 CNY\n" + setup + "-- timeline --\n14:00:00.021 buyer creates A\n" + rest
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// A file breaks under its defect as it says, or it is told what it does instead.
func TestRunMustFail(t *testing.T) {
	const lateFile = "../../scenarios/incidents/late-callback-after-close.txtar"
	toothless := incidentFile(t, "must-fail late-success-ignored no-orphan-money\n", "")
	unnamed := incidentFile(t, "", "")
	report, err := jsonOf(t, "files proven total unnamed wall_ns", "run", lateFile, toothless, unnamed, "--must-fail", "--json")
	require.Equal(t, verdictError{scenarios.Broken}, err)
	assert.EqualValues(t, 1, report["proven"])
	assert.EqualValues(t, 2, report["total"])
	assert.Equal(t, []any{unnamed}, report["unnamed"])
	for _, one := range report["files"].([]any) {
		file := one.(map[string]any)
		assert.Equal(t, file["file"] == lateFile, file["broken"], "%v", file)
		assert.Empty(t, file["error"])
	}
}

func TestRunWarnsOfAFileThatNamesNoDefect(t *testing.T) {
	file := incidentFile(t, "", "")
	_, stderr, err := command(t, "run", file)
	require.NoError(t, err)
	assert.Contains(t, stderr, file+": warning: no line 'must-fail DEFECT PROPERTY'")
}

func TestUnknownDefectIsAMistakeInTheFile(t *testing.T) {
	file := incidentFile(t, "must-fail late-success-ignord no-orphan-money\n", "")
	_, _, err := command(t, "run", file)
	assert.ErrorContains(t, err, file+`:3:11: unknown defect "late-success-ignord", do you mean "late-success-ignored"?`)
	assert.Equal(t, exitInvalid, run(t.Context(), []string{"run", file}))
}

// What a file expects and does not come to is told with its line, as the property expect.
func TestRunOfAFileThatExpectsSomethingElse(t *testing.T) {
	file := incidentFile(t, "", "-- expect --\norder A is PAID\n")
	report, err := jsonOf(t, "", "run", file, "--json")
	require.Equal(t, verdictError{scenarios.Broken}, err)
	failure := report["failures"].([]any)[0].(map[string]any)
	assert.Equal(t, "expect", failure["property"])
	assert.Contains(t, failure["message"], file+":6: expected order A is PAID, but it is CLOSED since 14:15:")
	assert.Contains(t, failure["message"], "(198.00 CNY)")
}

// A pin that is never reached is stale, in every command that runs the file.
func TestRunOfAFileWithAPinThatIsNeverReached(t *testing.T) {
	file := incidentFile(t, "", "14:05:00.000 shop commits A PAID\n")
	report, err := jsonOf(t, "", "run", file, "--json")
	require.Equal(t, verdictError{scenarios.Stale}, err)
	assert.Equal(t, []any{"shop commits A PAID"}, report["unreached"])
	stdout, _, err := command(t, "replay", file)
	require.Equal(t, verdictError{scenarios.Stale}, err)
	assert.Contains(t, stdout, file+":5: 14:05:00.000 shop commits A PAID: never reached")
}

func TestNewWritesAFileThatRuns(t *testing.T) {
	folder := t.TempDir()
	stdout, _, err := command(t, "new", "coupon-spent-twice", "--dir", folder)
	require.NoError(t, err)
	file := filepath.Join(folder, "coupon-spent-twice.txtar")
	assert.Equal(t, file, strings.TrimSpace(stdout))
	_, _, err = command(t, "run", file)
	require.NoError(t, err)
	_, _, err = command(t, "new", "coupon-spent-twice", "--dir", folder)
	assert.ErrorContains(t, err, "exists")
}
