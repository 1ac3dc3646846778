package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
)

// sweeper writes a program that answers as a sweep does: it fails at the seeds named, each
// with the property named, and takes no further seed after the first failure.
func sweeper(t *testing.T, failures map[int]string) string {
	script := "#!/bin/sh\nfirst=${3%-*}; last=${3#*-}\nseed=$first\nwhile [ $seed -le $last ]; do case $seed in\n"
	for seed, property := range failures {
		out, err := json.Marshal(Report{Seeds: 1, Verdicts: Verdicts{Broken: 1}, Failures: []SeedFailure{{Seed: uint64(seed), Property: property}}})
		require.NoError(t, err)
		script += fmt.Sprintf("%d) echo '%s'; exit 1;;\n", seed, out)
	}
	script += "esac; seed=$((seed+1)); done\necho '{}'\n"
	program := filepath.Join(t.TempDir(), "sweeper")
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	return program
}

// A defect is caught by the property that it names. Others are strays: the range goes on
// behind them, but not for ever.
func TestCatch(t *testing.T) {
	d := &Defect{Name: "it", Properties: []string{"charge-once", "effect-once"}}
	h := Hunt{Profile: faults.Profile{Name: "storm"}}
	strays := map[int]string{}
	for seed := 1; seed <= maxStrays; seed++ {
		strays[seed] = "gap-found"
	}
	strays[maxStrays+1] = "charge-once"
	for name, c := range map[string]struct {
		failures map[int]string
		seeds    Seeds
		took     int
		by       string
		strays   []string
	}{
		"nothing fails":             {nil, Seeds{1, 30}, 0, "", nil},
		"the first seed":            {map[int]string{7: "effect-once"}, Seeds{7, 30}, 1, "effect-once", nil},
		"the last seed":             {map[int]string{30: "charge-once"}, Seeds{21, 30}, 10, "charge-once", nil},
		"behind the range":          {map[int]string{31: "charge-once"}, Seeds{21, 30}, 0, "", nil},
		"another property":          {map[int]string{2: "gap-found"}, Seeds{1, 30}, 0, "", []string{"gap-found"}},
		"another property, then it": {map[int]string{2: "gap-found", 5: "charge-once"}, Seeds{1, 30}, 5, "charge-once", []string{"gap-found"}},
		"always another":            {strays, Seeds{1, 30}, 0, "", []string{"gap-found"}},
	} {
		t.Run(name, func(t *testing.T) {
			var found HuntedDefect
			took, err := h.catch(t.Context(), sweeper(t, c.failures), d, c.seeds, &found)
			require.NoError(t, err)
			assert.Equal(t, c.took, took)
			assert.Equal(t, c.by, found.CaughtBy)
			assert.Equal(t, c.took > 0, found.Caught)
			assert.Equal(t, c.strays, found.Strays)
		})
	}
}

// A program that is killed or prints no report is an error, never a defect that got away.
func TestCatchNeedsAReport(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dies")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho out of memory >&2; exit 2\n"), 0o700))
	_, err := Hunt{}.catch(t.Context(), program, &Defect{}, Seeds{1, 30}, &HuntedDefect{})
	assert.EqualError(t, err, "sweep --seeds 1-30: exit status 2: out of memory")
}

func TestHuntRanges(t *testing.T) {
	for text, ranges := range map[string]string{
		"1-1000": "[1-200 201-400 401-600 601-800 801-1000]",
		"11-17":  "[11 12 13 14 15]",
		"4-6":    "[4 5 6]",
	} {
		seeds, err := ParseSeeds(text)
		require.NoError(t, err)
		assert.Equal(t, ranges, fmt.Sprint(Hunt{Seeds: seeds}.ranges()), text)
	}
}

// The hunt means nothing if its control fails, or if anything got away.
func TestHuntVerdict(t *testing.T) {
	good := HuntControl{Seeds: 10, Passed: true, Blatant: 1}
	for _, c := range []struct {
		report  HuntReport
		verdict Verdict
	}{
		{HuntReport{Caught: 2, Total: 2, Control: good}, Pass},
		{HuntReport{Caught: 1, Total: 2, Control: good}, Broken},
		{HuntReport{Caught: 2, Total: 2, Control: HuntControl{Passed: true}}, Broken},
		{HuntReport{Caught: 2, Total: 2, Control: HuntControl{Blatant: 3}}, Broken},
	} {
		assert.Equal(t, c.verdict, c.report.Verdict(), "%+v", c.report)
	}
}
