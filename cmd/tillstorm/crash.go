package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/scenarios"
)

func newCrash() *cobra.Command {
	var (
		depth, budget, workers int
		defect                 string
		asJSON                 bool
	)
	c := &cobra.Command{
		Use:   "crash FILE",
		Short: "Crash an incident at every step, and lose every reply once",
		Long: `crash runs an incident once for each of its steps, with the process crashed there and
booted again a second later, and once for each answer in it, with that lost. Every
step of every node counts, boot and idle polling included, until the incident is
over: no buyer waits, nothing is pending, and five seconds more. With --depth 2 the
same node crashes once more, at the steps of its recovery (those until the run is
over, without polling that finds nothing); beyond the budget these are sampled evenly.`,
		Example: `  tillstorm crash scenarios/incidents/pay.txtar
  tillstorm crash scenarios/incidents/pay.txtar --depth 2 --budget 5000 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			incident, err := readIncident(args[0])
			if err != nil {
				return err
			}
			incident.Defect = defect
			if depth < 1 || depth > 2 || budget < 0 || workers < 0 {
				return fmt.Errorf("--depth must be 1 or 2, --budget and --workers must not be negative")
			}
			e := scenarios.CrashEnumeration{Incident: incident, Depth: depth, Budget: budget, Workers: workers}
			e.Progress = func(what string, runs int) func(done, failed int) {
				fmt.Fprintf(c.ErrOrStderr(), "%s: %d runs\n", what, runs)
				return progress(c.ErrOrStderr(), "runs", runs)
			}
			report, err := e.Run(c.Context())
			if err != nil {
				return err
			}
			if err := printJSONOr(c, report, report.Failures, asJSON, func(w io.Writer) { printCrashes(w, report) }); err != nil {
				return err
			}
			if v := report.Verdict(); v != scenarios.Pass || c.Context().Err() == nil {
				return verdictError{v}.orNil()
			}
			return interruptedError{report.Tried, report.Points + report.Replies}
		},
	}
	f := c.Flags()
	f.IntVar(&depth, "depth", 1, "2 also crashes in the recovery from each crash")
	f.IntVar(&budget, "budget", 2000, "the most runs that --depth 2 adds")
	f.IntVar(&workers, "workers", 0, "worlds at once (default: one for each processor)")
	addDefect(f, &defect)
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func printCrashes(w io.Writer, r *scenarios.CrashReport) {
	fmt.Fprintf(w, "%s: %s: %d steps to crash at, %d replies to lose\n", r.Verdict(), r.File, r.Points, r.Replies)
	if r.Depth > 1 {
		fmt.Fprintf(w, "  %d steps to crash at in recovery, of which %d were tried%s\n",
			r.RecoveryPoints, r.TriedInRecovery, sampled(r.TriedInRecovery, r.RecoveryPoints))
	}
	fmt.Fprintf(w, "  %d tried in %v: %d passed, %d broken, %d unknown, %d stale, %d nondeterministic\n",
		r.Tried, time.Duration(r.WallNs).Round(time.Millisecond), r.Passed, r.Broken, r.Unknown, r.Stale, r.Nondeterministic)
	fmt.Fprintf(w, "  %d of the system's statements have no step in this file (--json names them)\n", len(r.StatementsWithoutPoint))
}

func sampled(tried, of int) string {
	if tried < of {
		return ", evenly sampled"
	}
	return ""
}
