package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/scenarios"
)

func newRun() *cobra.Command {
	var (
		seeds, defect    string
		mustFail, asJSON bool
	)
	c := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run incident files",
		Long: `run runs incident files, each exactly as it is written. With --seeds, each runs once
for every seed, which draws what a file leaves open: the network's latencies.

With --must-fail, each runs once in a build with each of the defects that it names, and
must break the property that it names; others may break besides. That needs the
sources, go and gcc.`,
		Example: `  tillstorm run scenarios/incidents/*.txtar
  tillstorm run scenarios/incidents/close.txtar --seeds 1-100
  tillstorm run scenarios/incidents/*.txtar --must-fail`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var b scenarios.Batch
			for _, file := range files {
				incident, err := readIncident(file)
				if err != nil {
					return err
				}
				incident.Defect = defect
				warnUnproven(c, incident)
				b.Incidents = append(b.Incidents, incident)
			}
			if mustFail {
				return prove(c, b.Incidents, asJSON)
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
	f.BoolVar(&mustFail, "must-fail", false, "check that each file breaks under the defects that it names")
	addDefect(f, &defect)
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	c.MarkFlagsMutuallyExclusive("must-fail", "seeds")
	c.MarkFlagsMutuallyExclusive("must-fail", "defect")
	return c
}

// warnUnproven says that nothing shows what an incident is good for.
func warnUnproven(c *cobra.Command, x *scenarios.Incident) {
	if len(x.MustFail) == 0 && os.Getenv(plantedVariable) == "" {
		fmt.Fprintf(c.ErrOrStderr(), "%s: warning: no line 'must-fail DEFECT PROPERTY': nothing shows that it would catch anything\n", x.Name)
	}
}

// prove runs incidents under the defects that they name.
func prove(c *cobra.Command, incidents []*scenarios.Incident, asJSON bool) error {
	p := scenarios.Proof{Incidents: incidents}
	p.Progress = func(f scenarios.ProvenFile) { fmt.Fprintln(c.ErrOrStderr(), f) }
	report, err := p.Run(c.Context())
	if err != nil {
		return err
	}
	if err := printJSONOr(c, report, nil, asJSON, func(w io.Writer) { printProof(w, report) }); err != nil {
		return err
	}
	return verdictError{report.Verdict()}.orNil()
}

func printProof(w io.Writer, r *scenarios.ProofReport) {
	for _, f := range r.Files {
		if f.Broken {
			fmt.Fprintf(w, "%s\n  %s\n", f, f.Message)
		} else {
			fmt.Fprintf(w, "NOT PROVEN: %s\n  see go run ./cmd/tillstorm replay %s --defect %s\n", f, f.File, f.Defect)
		}
	}
	fmt.Fprintf(w, "%d of %d break as they must under their defects, %d files name none, in %v\n",
		r.Proven, r.Total, len(r.Unnamed), time.Duration(r.WallNs).Round(time.Second))
}

func readIncident(file string) (*scenarios.Incident, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	x, err := scenarios.ParseIncident(file, string(text))
	if err != nil {
		return nil, err
	}
	return x, x.CheckDefects()
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

func newNew() *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:     "new NAME",
		Short:   "Begin an incident file",
		Long:    "new writes a file NAME.txtar with comments, which runs as it is, to be filled in.",
		Example: "  tillstorm new coupon-spent-twice && tillstorm run scenarios/incidents/coupon-spent-twice.txtar",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			text, err := scenarios.Template(args[0])
			if err != nil {
				return err
			}
			file := filepath.Join(folder, args[0]+".txtar")
			out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return err
			}
			if _, err := out.WriteString(text); err != nil {
				out.Close()
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), file)
			return out.Close()
		},
	}
	c.Flags().StringVar(&folder, "dir", "scenarios/incidents", "the folder of the file")
	return c
}
