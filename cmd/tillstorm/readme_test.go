package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
)

// The README lists the properties with their sentences; both are written once, in
// the checker.
func TestReadmeListsTheProperties(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "| property | sentence |\n|---|---|\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var want strings.Builder
	for _, p := range checker.Properties() {
		want.WriteString("| " + p.Name + " | " + p.Sentence + " |\n")
	}
	require.Equal(t, strings.TrimSpace(want.String()), table)
}

// The README shows an incident file as it is.
func TestReadmeShowsTheIncident(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	incident, err := os.ReadFile("../../scenarios/incidents/late-callback-after-close.txtar")
	require.NoError(t, err)
	require.Contains(t, string(readme), "```\n"+string(incident)+"```\n")
}
