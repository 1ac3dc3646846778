package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSweepTellsItsCoverageIfAsked(t *testing.T) {
	stdout, _, err := command(t, "sweep", "--seeds", "1-2", "--coverage")
	require.NoError(t, err)
	assert.Regexp(t, `none +CREATED +PAID +CLOSED +REFUNDING +REFUNDED\n`, stdout)
	assert.Regexp(t, `\n +delay( +\d+| +\.){6} *\n`, stdout)
	assert.Regexp(t, `\n\d+ of \d+ cells are empty\.\n`, stdout)
	assert.Contains(t, stdout, "24 orders have ")
	assert.Contains(t, stdout, "  never reached: ", "two seeds can't come to everything")

	report, err := jsonOf(t, "coverage", "sweep", "--seeds", "1-2", "--coverage", "--json")
	require.NoError(t, err)
	assert.EqualValues(t, 24, report["coverage"].(map[string]any)["orders"])
	report, err = jsonOf(t, "operations", "sweep", "--seeds", "1-2", "--json")
	require.NoError(t, err)
	assert.NotContains(t, report, "coverage")
}
