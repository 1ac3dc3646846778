package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/scenarios"
)

func newInvariants() *cobra.Command {
	return list("invariants", "List the properties that every run must keep", func(add func(columns ...string)) {
		for _, p := range checker.Properties() {
			add(p.Name, p.Sentence)
		}
	})
}

func newFaults() *cobra.Command {
	return list("faults", "List what can go wrong in a run", func(add func(columns ...string)) {
		for _, k := range faults.Kinds() {
			add(string(k), k.Form(), k.Describe())
		}
		add() // ends the columns
		for _, p := range faults.Placeholders() {
			add(p.Word, p.Example, p.Means)
		}
	})
}

func newVerbs() *cobra.Command {
	return list("verbs", "List what an incident file may say: in its setup, after the times of its timeline, and in expect", func(add func(columns ...string)) {
		for _, s := range scenarios.SetupLines() {
			add("setup", s.Form, s.Means, s.Example)
		}
		for _, v := range scenarios.VerbLines() {
			kind := "stimulus"
			if v.Pin {
				kind = "pin"
			}
			add(kind, v.Form, v.Does, v.Example)
		}
		for _, e := range scenarios.ExpectLines() {
			add("expect", e.Form, e.Means, e.Example)
		}
	})
}

// list makes a command that prints lines in columns.
func list(use, short string, fill func(add func(columns ...string))) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fill(func(columns ...string) { fmt.Fprintln(w, strings.Join(columns, "\t")) })
			return w.Flush()
		},
	}
}
