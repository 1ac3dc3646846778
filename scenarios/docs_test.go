package scenarios

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewriteDocs = flag.Bool("rewrite-docs", false, "write the tables of the docs anew")

// The docs list all lines; the table is the vocabulary itself.
// go test ./scenarios -run TestDocs -rewrite-docs writes it anew.
func TestDocsListAllLines(t *testing.T) {
	const file, head = "../docs/writing-incidents.md", "What `tillstorm verbs` prints.\n\n"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, _, found := strings.Cut(string(text), head)
	require.True(t, found)
	want := before + head + lineTables()
	if *rewriteDocs {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	require.Equal(t, want, string(text))
}

func lineTables() string {
	var b strings.Builder
	table := func(title string) {
		b.WriteString("### " + title + "\n\n| line | what it says | example |\n|---|---|---|\n")
	}
	row := func(form, means, example string) {
		b.WriteString("| `" + strings.ReplaceAll(form, "|", `\|`) + "` | " + strings.ReplaceAll(means, "|", `\|`) + " | `" + example + "` |\n")
	}
	table("setup")
	for _, l := range SetupLines() {
		row(l.Form, l.Means, l.Example)
	}
	for _, pins := range []bool{false, true} {
		b.WriteString("\n")
		table(map[bool]string{false: "timeline: stimuli", true: "timeline: pins"}[pins])
		for _, l := range VerbLines() {
			if l.Pin == pins {
				row(l.Form, l.Does, l.Example)
			}
		}
	}
	b.WriteString("\n")
	table("expect")
	for _, l := range ExpectLines() {
		row(l.Form, l.Means, l.Example)
	}
	return b.String()
}
