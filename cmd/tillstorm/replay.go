package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/scenarios"
	"github.com/tillstorm/tillstorm/sim"
)

func newReplay() *cobra.Command {
	var (
		seed           uint64
		profile, trace string
		journal        sim.Journal
	)
	c := &cobra.Command{
		Use:   "replay",
		Short: "Run one seed again and tell what happened",
		Long: `replay runs one seed, twice, and tells what went wrong, what came of it, and, for
each broken property, the lines of the trace that matter. With --trace - the whole
trace goes to standard output and everything else to standard error.`,
		Example: `  tillstorm replay --seed 42
  tillstorm replay --seed 42 --trace -            # the whole trace as text
  tillstorm replay --seed 42 --trace 42.jsonl     # as JSON lines`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := faults.ProfileNamed(profile)
			if err != nil {
				return fmt.Errorf("--profile: %w", err)
			}
			arena := journal.NewArena()
			defer arena.Close()
			drawn := scenarios.Draw(seed, p)
			result, err := scenarios.Run(drawn, arena)
			if err != nil {
				return err
			}
			if err := writeTrace(trace, result.Trace, c.OutOrStdout()); err != nil {
				return fmt.Errorf("--trace: %w", err)
			}
			told := c.OutOrStdout()
			if trace == "-" {
				told = c.ErrOrStderr()
			}
			difference, err := scenarios.Recheck(drawn, result)
			if err != nil {
				return err
			}
			if difference != "" {
				fmt.Fprintf(told, "nondeterministic: two runs of seed %d differ: %s\n", seed, difference)
				return verdictError{scenarios.Nondeterministic}
			}
			return printRun(told, result, p)
		},
	}
	f := c.Flags()
	f.Uint64Var(&seed, "seed", 0, "the seed to run")
	f.StringVar(&profile, "profile", "storm", "the profile it failed under: "+profileNames())
	f.TextVar(&journal, "journal", sim.MemDB, "the `journal` it failed with, see sweep --db")
	f.StringVar(&trace, "trace", "", "write the trace to this file: JSON lines if it ends in .jsonl, else text; - is standard output")
	_ = c.MarkFlagRequired("seed")
	return c
}

func writeTrace(file string, t *sim.Trace, stdout io.Writer) error {
	switch {
	case file == "":
		return nil
	case file == "-":
		return t.WriteText(stdout)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	write := t.WriteText
	if filepath.Ext(file) == ".jsonl" {
		write = t.WriteJSON
	}
	if err := write(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// printRun tells what went wrong in a run and what came of it.
func printRun(w io.Writer, r *scenarios.Result, p faults.Profile) error {
	fmt.Fprintf(w, "seed %d, profile %s: what went wrong:\n", r.Seed, p.Name)
	for _, one := range r.Fired {
		fmt.Fprintf(w, "  %s  %s\n", r.Trace.Clock(one.When), one)
	}
	fmt.Fprintf(w, "\n%s: %d steps, %d statements, %v simulated, trace hash %016x\nprobes: %s\n",
		r.Verdict, r.Steps, r.Statements, r.SimTime, r.TraceHash, counts(r.Probes))
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\n%s", scenarios.Explain(r, f, p))
	}
	if r.Verdict != scenarios.Pass {
		return verdictError{r.Verdict}
	}
	return nil
}
