package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/scenarios"
)

func newRun() *cobra.Command {
	var (
		seeds, defect string
		asJSON        bool
	)
	c := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run incident files",
		Long: `run runs incident files, each exactly as it is written. With --seeds, each runs once
for every seed, which draws what a file leaves open: the network's latencies.`,
		Example: `  tillstorm run scenarios/incidents/*.txtar
  tillstorm run scenarios/incidents/close.txtar --seeds 1-100`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var b scenarios.Batch
			for _, file := range files {
				incident, err := readIncident(file)
				if err != nil {
					return err
				}
				incident.Defect = defect
				b.Incidents = append(b.Incidents, incident)
			}
			ran := strings.Join(files, ", ")
			if seeds != "" {
				s, err := scenarios.ParseSeeds(seeds)
				if err != nil {
					return fmt.Errorf("--seeds: %w", err)
				}
				b.Seeds = &s
				ran += ", seeds " + s.String()
			}
			b.Progress = progress(c.ErrOrStderr(), "runs", b.Count())
			report, err := b.Run(c.Context())
			if err != nil {
				return err
			}
			if err := printReport(c, ran, report, asJSON); err != nil || c.Context().Err() == nil {
				return err
			}
			return interruptedError{report.Seeds, b.Count()}
		},
	}
	f := c.Flags()
	f.StringVar(&seeds, "seeds", "", "vary the network's latencies: the seeds to run, A-B")
	addDefect(f, &defect)
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func readIncident(file string) (*scenarios.Incident, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return scenarios.ParseIncident(file, string(text))
}

func newFmt() *cobra.Command {
	return &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Rewrite incident files in their canonical layout",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			for _, file := range files {
				if err := formatFile(file); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func formatFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	canonical, err := scenarios.FormatIncident(file, string(text))
	if err != nil || canonical == string(text) {
		return err
	}
	return os.WriteFile(file, []byte(canonical), 0o644)
}
