package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/scenarios"
)

var pageRow = regexp.MustCompile(`(?m)^\| ([a-z0-9-]+) \| .* \| ([a-z-]+) \| (\d+) \|`)

// The page about defects is of the defects that there are, as they are called now: each
// was caught by a property that it names, or the page says that it was not, and counts it so.
func TestDefectsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/defects.md")
	require.NoError(t, err)
	all, err := scenarios.ReadDefects("../../scenarios/defects")
	require.NoError(t, err)
	rows := map[string]string{} // what caught each
	for _, row := range pageRow.FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2]
	}
	assert.Contains(t, string(page), fmt.Sprintf("\n%d of %d were caught.", len(rows), len(all)), "write the page again: make defects")
	for _, d := range all {
		row := fmt.Sprintf("| %s | %s |", d.Name, d.Title)
		if rows[d.Name] == "" {
			row += " NOT CAUGHT |"
		} else {
			assert.Contains(t, d.Properties, rows[d.Name], d.Name)
		}
		assert.Contains(t, string(page), row)
	}
}

var propertyRow = regexp.MustCompile(`(?m)^\| ([a-z-]+) \| ([a-z0-9,; -]+) \| ([0-9; ]+) \|$`)

// The page about properties has for each a defect that there is, and the seed at which it
// was broken.
func TestPropertiesPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/properties.md")
	require.NoError(t, err)
	known := map[string]bool{}
	all, err := scenarios.ReadDefects("../../scenarios/defects")
	require.NoError(t, err)
	for _, d := range all {
		known[d.Name] = true
	}
	var names []string
	for _, row := range propertyRow.FindAllStringSubmatch(string(page), -1) {
		names = append(names, row[1])
		groups, seeds := strings.Split(row[2], ";"), strings.Split(row[3], ";")
		assert.Len(t, seeds, len(groups), "%s: a seed for each group of defects", row[1])
		for _, name := range strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
			assert.True(t, known[name], "%s: there is no defect %s", row[1], name)
		}
	}
	var want []string
	for _, p := range checker.Properties() {
		want = append(want, p.Name)
	}
	assert.Equal(t, want, names)
}

// A defect of one's own is a file anywhere.
func TestDefectOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.patch")
	patch, err := os.ReadFile("../../scenarios/defects/late-success-ignored.patch")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, patch, 0o600))
	const incident = "../../scenarios/incidents/late-callback-after-close.txtar"
	assert.Equal(t, 1, run(t.Context(), []string{"run", incident, "--defect", file}))

	for _, args := range [][]string{
		{"replay", "--seed", "1", "--defect", "/no/such.patch"}, {"replay", "--seed", "1", "--defect", "late-success-ignord"},
		{"sweep", "--seeds", "1", "--defect", "./main.go"},
	} {
		assert.Equal(t, exitInvalid, run(t.Context(), args), "%v", args)
	}
}

// What is no defect is told before anything runs.
func TestBrokenDefectsAreToldFirst(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"first.patch", "second.patch"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("Title\n\nCaught by: nothing\n"), 0o600))
	}
	_, _, err := command(t, "defects", "--dir", folder)
	require.Error(t, err)
	assert.Equal(t, 2, strings.Count(err.Error(), `.patch:3: unknown property "nothing"`))
	assert.Equal(t, exitInvalid, run(t.Context(), []string{"defects", "--dir", folder}))
}

func TestDefectsNeedSeedsForEachPart(t *testing.T) {
	for flags, mistake := range map[string]string{
		"--seeds 1-4":    "--seeds: 1-4 has 4; at least 5 are needed, one for each part",
		"--workers -2":   "--workers must not be negative, but is -2",
		"--seeds 5-1":    "--seeds",
		"--profile mild": "profile",
	} {
		args := append([]string{"defects"}, strings.Fields(flags)...)
		_, _, err := command(t, args...)
		assert.ErrorContains(t, err, mistake, flags)
		assert.Equal(t, exitInvalid, run(t.Context(), args), flags)
	}
}
