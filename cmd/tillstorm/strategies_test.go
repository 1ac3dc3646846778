package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/faults"
)

// The page about strategies names all that there are, with their sentences.
func TestStrategiesPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/strategies.md")
	require.NoError(t, err)
	for _, s := range faults.Strategies() {
		assert.Contains(t, string(page), "**"+s.Name+"**: "+s.Sentence+".")
	}
	for _, p := range faults.Profiles() {
		assert.Contains(t, string(page), "| "+p.Name+" | "+p.Sentence+" |")
	}
}
