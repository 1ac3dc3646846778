package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/scenarios"
	"github.com/tillstorm/tillstorm/sim"
)

func newReplay() *cobra.Command {
	var (
		seed          uint64
		trace, defect string
		drawn         drawnFlags
		added         []string
	)
	c := &cobra.Command{
		Use:   "replay [FILE]",
		Short: "Run one seed, or one incident file, again and tell what happened",
		Long: `replay runs one seed, or one incident file, twice, and tells what came of it, what had
been done to it, and, for each broken property, the lines of the trace that matter. Of a
run that is broken it tells the faults about the orders that came to harm, and the last
of the others; of one that passed, the heaviest. With --trace - the whole trace goes to
standard output and everything else to standard error; beside a trace's FILE, each
history that fits no order of events becomes a page, FILE.PROPERTY.ORDER.html without
FILE's ending.

A FILE runs as it is written; with --seed, the network's latencies are drawn. Each
--fault is tried on top of the file, as one more line of its faults.`,
		Example: `  tillstorm replay --seed 42
  tillstorm replay --seed 42 --trace -            # the whole trace as text
  tillstorm replay --seed 42 --trace 42.jsonl     # as JSON lines
  tillstorm replay pay.txtar --fault 'network drops callback(A)#1'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			seeded := c.Flags().Changed("seed")
			var replayed scenarios.Case
			var err error
			switch {
			case len(args) == 1:
				replayed, err = fileCase(args[0], added)
				replayed.Seed, replayed.Vary = seed, seeded
			case seeded:
				replayed, err = seedCase(seed, &drawn, added)
			default:
				err = fmt.Errorf("what is to be replayed: --seed N, or an incident FILE")
			}
			if err != nil {
				return err
			}
			replayed.Journal, replayed.Defect = drawn.journal, defect
			return replay(c, replayed, trace)
		},
	}
	f := c.Flags()
	f.Uint64Var(&seed, "seed", 0, "the seed to run")
	drawn.add(f, "journal", "sweep's --db")
	c.SetFlagErrorFunc(explainDB)
	f.StringArrayVar(&added, "fault", nil, "also do this to a FILE's run, for example 'network drops callback(A)#1'")
	addDefect(f, &defect)
	f.StringVar(&trace, "trace", "", "write the trace to this file: JSON lines if it ends in .jsonl, else text; - is standard output")
	return c
}

// explainDB sends who brings a sweep's --db along to --journal: --db chooses among the
// databases of one run.
func explainDB(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedName() == "db" {
		return fmt.Errorf("%w: how the databases lock is --journal memdb or --journal wal here", err)
	}
	return explainFlag(c, err)
}

func seedCase(seed uint64, drawn *drawnFlags, added []string) (scenarios.Case, error) {
	p, err := drawn.resolve()
	if err != nil {
		return scenarios.Case{}, err
	}
	if len(added) > 0 {
		return scenarios.Case{}, fmt.Errorf("--fault needs a FILE: a seed draws its own")
	}
	return scenarios.Draw(seed, p), nil
}

func fileCase(file string, added []string) (scenarios.Case, error) {
	incident, err := readIncident(file)
	if err != nil {
		return scenarios.Case{}, err
	}
	c := incident.Case()
	for _, line := range added {
		plan, err := incident.ParseFaults(line, slices.Concat(incident.Faults, c.Added))
		if err != nil {
			return c, fmt.Errorf("--fault %q: %w", line, err)
		}
		c.Added = append(c.Added, plan...)
	}
	return c, nil
}

// replay runs a case twice and tells what became of it.
func replay(c *cobra.Command, replayed scenarios.Case, trace string) error {
	arena := replayed.Journal.NewArena()
	defer arena.Close()
	result, err := scenarios.Run(replayed, arena)
	if err != nil {
		return err
	}
	if err := writeTrace(trace, result.Trace, c.OutOrStdout()); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	if err := writeMisfits(trace, result.Misfits); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	told := c.OutOrStdout()
	if trace == "-" {
		told = c.ErrOrStderr()
	}
	difference, err := scenarios.Recheck(result)
	if err != nil {
		return err
	}
	if difference != "" {
		fmt.Fprintf(told, "nondeterministic: two runs of %s differ: %s\n", replayed.Title(), difference)
		return verdictError{scenarios.Nondeterministic}
	}
	return printRun(told, result)
}

func writeTrace(file string, t *sim.Trace, stdout io.Writer) error {
	switch {
	case file == "":
		return nil
	case file == "-":
		return t.WriteText(stdout)
	case filepath.Ext(file) == ".jsonl":
		return writeFile(file, t.WriteJSON)
	}
	return writeFile(file, t.WriteText)
}

// writeMisfits writes a page beside the trace's file for each history that fits no order
// of events.
func writeMisfits(trace string, misfits []checker.Misfit) error {
	if trace == "" || trace == "-" {
		return nil
	}
	for _, m := range misfits {
		page := fmt.Sprintf("%s.%s.%s.html", strings.TrimSuffix(trace, filepath.Ext(trace)), m.Property, m.Order)
		if err := writeFile(page, m.WriteHTML); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(file string, write func(io.Writer) error) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// printRun tells what came of a run, and what was done to it.
func printRun(w io.Writer, r *scenarios.Result) error {
	fmt.Fprintf(w, "%s: %s: %d steps, %d statements, %v simulated, trace hash %016x\noperations: %s\nprobes: %s\n",
		r.Verdict, r.Case.Title(), r.Steps, r.Statements, r.SimTime, r.TraceHash, counts(r.Operations), counts(r.Probes))
	for _, one := range r.Staleness() {
		fmt.Fprintln(w, one)
	}
	printFired(w, r)
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\n%s", scenarios.Explain(r, f))
	}
	return verdictError{r.Verdict}.orNil()
}

// printFired tells the faults of a run. Only where something broke have they done harm.
func printFired(w io.Writer, r *scenarios.Result) {
	title, rest := "what went wrong", "lighter, about no order that came to harm, or after that"
	if len(r.Failures) == 0 {
		title, rest = "the faults that it went through", "lighter or of more frequent kinds"
	}
	fired, left := r.ToldFaults()
	if len(fired) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, one := range fired {
		fmt.Fprintf(w, "  %s  %s\n", r.Trace.Clock(one.When), one)
	}
	if left > 0 {
		fmt.Fprintf(w, "  and %d more, %s\n", left, rest)
	}
}
