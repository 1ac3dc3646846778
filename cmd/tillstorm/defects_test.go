package main

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/scenarios"
)

var pageRow = regexp.MustCompile(`(?m)^\| ([a-z0-9-]+) \| .* \| ([a-z-]+) \| (\d+) \|`)

// The page about defects is of the defects that there are, as they are called now, and
// each was caught by a property that it names.
func TestDefectsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/defects.md")
	require.NoError(t, err)
	all, err := scenarios.ReadDefects("../../scenarios/defects")
	require.NoError(t, err)
	rows := map[string]string{} // what caught each
	for _, row := range pageRow.FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2]
	}
	assert.Len(t, rows, len(all), "write the page again: make defects")
	for _, d := range all {
		assert.Contains(t, d.Properties, rows[d.Name], d.Name)
		assert.Contains(t, string(page), fmt.Sprintf("| %s | %s |", d.Name, d.Title))
	}
}
