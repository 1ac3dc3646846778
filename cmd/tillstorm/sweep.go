package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/scenarios"
	"github.com/tillstorm/tillstorm/sim"
)

func newSweep() *cobra.Command {
	var (
		seeds, shard, junit string
		drawn               drawnFlags
		workers, most       int
		defect              string
		limit               time.Duration
		asJSON, cover       bool
	)
	c := &cobra.Command{
		Use:   "sweep",
		Short: "Run many seeds and tell the ones that fail",
		Long: `sweep runs many seeds and tells the ones that fail. It is also stale, and its exit code
is 4, if it never came to what it must: from 10 seeds on a success of each operation of
the buyers, from 100 on each fault of the profile and each required probe.

With --coverage it tells in which states orders were when a fault met them, at which
statements no process has died, and how likely the next seed shows what none has
shown. What is counted for that is the shape of an order: the changes of its status
with their causes, what its charges met and how they were heard of, the states of its
refunds and the alerts about it, without times and amounts. As likely as an order so
far has a shape of its own, the next one has a new shape (Good-Turing).`,
		Example: `  tillstorm sweep --seeds 1-5000
  tillstorm sweep --seeds 1-1000000 --for 10m --json
  tillstorm sweep --seeds 1-8000 --shard 2/8 --junit report.xml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s := scenarios.Sweep{Workers: workers, For: limit, MaxFailures: most, Journal: drawn.journal, Cover: cover, Defect: defect}
			var err error
			if s.Seeds, err = scenarios.ParseSeeds(seeds); err != nil {
				return fmt.Errorf("--seeds: %w", err)
			}
			if s.Profile, err = drawn.resolve(); err != nil {
				return err
			}
			if shard != "" {
				if s.Shard, err = scenarios.ParseShard(shard); err != nil {
					return fmt.Errorf("--shard: %w", err)
				}
			}
			if workers < 0 || limit < 0 || most < 0 {
				return fmt.Errorf("--workers, --for and --max-failures must not be negative")
			}
			if err := s.Check(); err != nil {
				return err
			}
			if junit != "" { // a report that can't be written is better known before
				if err := os.WriteFile(junit, nil, 0o644); err != nil {
					return fmt.Errorf("--junit: %w", err)
				}
			}
			s.Progress = progress(c.ErrOrStderr(), "seeds", s.Count())
			report, err := s.Run(c.Context())
			if err != nil {
				return err
			}
			if report.Seeds == 0 {
				return fmt.Errorf("not one seed ran: --for %v is too short", limit)
			}
			verdict := printReport(c, s.Title(), report, asJSON)
			if junit != "" {
				if err := writeJUnit(junit, s, report); err != nil {
					return errors.Join(verdict, fmt.Errorf("--junit: %w", err))
				}
			}
			if verdict == nil && c.Context().Err() != nil {
				return interruptedError{report.Seeds, s.Count()}
			}
			return verdict
		},
	}
	f := c.Flags()
	f.StringVar(&seeds, "seeds", "1-500", "the seeds to run, A-B")
	drawn.add(f, "db", "replay's --journal")
	f.StringVar(&shard, "shard", "", "run only the I-th of N parts of the seeds, I/N")
	f.IntVar(&workers, "workers", 0, "worlds at once (default: one for each processor)")
	f.DurationVar(&limit, "for", 0, "take no new seed after this long, for example 10m")
	f.IntVar(&most, "max-failures", 0, "take no new seed once so many have failed (default: run them all)")
	addDefect(f, &defect)
	f.StringVar(&junit, "junit", "", "also write a JUnit report to this file")
	f.BoolVar(&cover, "coverage", false, "also tell where faults have struck, and what is likely to be unseen yet")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// drawnFlags say what seeds are drawn from, and over which databases they run.
type drawnFlags struct {
	profile, strategy string
	journal           sim.Journal
}

// add adds the flags; journal is what the last is called here, elsewhere what it is
// called in the other command.
func (d *drawnFlags) add(f *pflag.FlagSet, journal, elsewhere string) {
	f.StringVar(&d.profile, "profile", "storm", "how much goes wrong: "+names(faults.Profiles(), func(p faults.Profile) string { return p.Name }))
	f.StringVar(&d.strategy, "strategy", "", "how runs are varied: "+names(faults.Strategies(), func(s faults.Strategy) string { return s.Name })+" (default: each seed draws one)")
	f.TextVar(&d.journal, journal, sim.MemDB, "how the databases lock, like "+elsewhere+": memdb, or wal as in production")
}

// resolve returns the profile, with its strategy.
func (d *drawnFlags) resolve() (faults.Profile, error) {
	p, err := faults.ProfileNamed(d.profile)
	if err != nil {
		return p, fmt.Errorf("--profile: %w", err)
	}
	if d.strategy != "" {
		if p.Strategy, err = faults.StrategyNamed(d.strategy); err != nil {
			return p, fmt.Errorf("--strategy: %w", err)
		}
	}
	return p, nil
}

func names[T any](all []T, name func(T) string) string {
	var list []string
	for _, one := range all {
		list = append(list, name(one))
	}
	return strings.Join(list, ", ")
}

// progressEvery is how often a command that takes long says how far it is.
const progressEvery = 5 * time.Second

// progress returns a function that writes a line to w now and then.
func progress(w io.Writer, what string, total int) func(done, failed int) {
	began := time.Now()
	last := began
	return func(done, failed int) {
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		rate := float64(done) / last.Sub(began).Seconds()
		fmt.Fprintf(w, "%d of %d %s, %d failed, %.0f %s/s\n", done, total, what, failed, rate, what)
	}
}

// printReport prints what became of many runs.
func printReport(c *cobra.Command, ran string, r *scenarios.Report, asJSON bool) error {
	verdict := string(r.Verdict())
	if r.Verdict() == scenarios.Pass && c.Context().Err() != nil {
		verdict = "interrupted, and so far " + verdict
	}
	if err := printJSONOr(c, r, r.Failures, asJSON, func(w io.Writer) { printSummary(w, verdict+": "+ran, r) }); err != nil {
		return err
	}
	return verdictError{r.Verdict()}.orNil()
}

// printJSONOr prints a report: as one JSON object, with the failures to standard error, or
// as failures and a summary.
func printJSONOr(c *cobra.Command, report any, failures []scenarios.SeedFailure, asJSON bool, summary func(io.Writer)) error {
	if !asJSON {
		printFailures(c.OutOrStdout(), failures)
		summary(c.OutOrStdout())
		return nil
	}
	printFailures(c.ErrOrStderr(), failures)
	enc := json.NewEncoder(c.OutOrStdout())
	enc.SetEscapeHTML(false)
	return enc.Encode(report)
}

// maxTold is how many different failures are told in full.
const maxTold = 5

// printFailures tells one failure of each kind, and where else there were some.
func printFailures(w io.Writer, failures []scenarios.SeedFailure) {
	alike := map[string][]scenarios.SeedFailure{}
	var distinct []scenarios.SeedFailure
	for _, f := range failures {
		if alike[f.Fingerprint] = append(alike[f.Fingerprint], f); len(alike[f.Fingerprint]) == 1 {
			distinct = append(distinct, f)
		}
	}
	for i, f := range distinct {
		if i == maxTold {
			fmt.Fprintf(w, "... and %d more kinds of failure; --json lists all\n\n", len(distinct)-maxTold)
			return
		}
		fmt.Fprintln(w, f.Text)
		if n := len(alike[f.Fingerprint]); n > 1 {
			fmt.Fprintf(w, "  (%d failures of this kind; %s)\n\n", n, runsOf(alike[f.Fingerprint]))
		}
	}
}

// maxRuns is how many runs are named that have failed alike.
const maxRuns = 10

// runsOf names the runs that some failures are of, each once.
func runsOf(failures []scenarios.SeedFailure) string {
	what := "seeds"
	var runs []string
	for _, f := range failures {
		run := strconv.FormatUint(f.Seed, 10)
		if f.File != "" {
			what, run = "files", f.File
		}
		if f.File != "" && f.Seed > 0 {
			run += " seed " + strconv.FormatUint(f.Seed, 10)
		}
		if !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	text := what + ": " + strings.Join(runs[:min(maxRuns, len(runs))], ", ")
	if more := len(runs) - maxRuns; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func printSummary(w io.Writer, what string, r *scenarios.Report) {
	wall := time.Duration(r.WallNs)
	fmt.Fprintf(w, "%s: %d run, %d passed, %d broken, %d unknown, %d stale, %d nondeterministic\n",
		what, r.Seeds, r.Passed, r.Broken, r.Unknown, r.Stale, r.Nondeterministic)
	fmt.Fprintf(w, "  %d steps, %d statements, %v simulated in %v (%.0f runs/s)\n",
		r.Steps, r.Statements, time.Duration(r.SimNs).Round(time.Second), wall.Round(time.Millisecond), float64(r.Seeds)/wall.Seconds())
	fmt.Fprintf(w, "  faults: %s\n  operations: %s\n  probes: %s\n  trace hash %s\n",
		counts(r.FaultsFired), counts(r.Operations), counts(r.Probes), r.TraceHash)
	printUnreached(w, r)
	if r.Coverage != nil {
		printCoverage(w, r.Coverage)
	}
}

// printUnreached tells what many runs have not come to, and what to do about it.
func printUnreached(w io.Writer, r *scenarios.Report) {
	if len(r.Unreached) == 0 {
		return
	}
	fmt.Fprintf(w, "  never reached: %s\n", strings.Join(r.Unreached, ", "))
	if v := r.Vacuous(); len(v) > 0 {
		fmt.Fprintf(w, "  So many seeds should have come to %s, and prove nothing about it. Make it come up: a fault by\n"+
			"  its odds in faults/profile.go, an operation or a probe by what the buyers do in scenarios/workload.go, or\n"+
			"  by such a fault. If a probe can't come up, say why at its place in checker/probes.go.\n", strings.Join(v, ", "))
	}
}

// counts tells what came up, and how often.
func counts(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
		}
	}
	return strings.Join(parts, ", ")
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",cdata"`
}

// writeJUnit writes the failures, and the sweep itself as one test case.
func writeJUnit(file string, s scenarios.Sweep, r *scenarios.Report) error {
	name := "sweep " + s.Profile.Name + " " + s.Seeds.String()
	suite := junitSuite{Name: name, Tests: 1 + len(r.Failures), Time: fmt.Sprintf("%.3f", time.Duration(r.WallNs).Seconds())}
	suite.Cases = []junitCase{{Name: name, Class: "tillstorm"}}
	if v := r.Vacuous(); len(v) > 0 {
		suite.Failures++
		suite.Cases[0].Failure = &junitFailure{Message: "never reached: " + strings.Join(v, ", ")}
	}
	for _, f := range r.Failures {
		suite.Failures++
		suite.Cases = append(suite.Cases, junitCase{
			Name: fmt.Sprintf("seed %d", f.Seed), Class: "tillstorm." + f.Property, Failure: &junitFailure{f.Message, f.Text},
		})
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte(xml.Header), append(text, '\n')...), 0o644)
}
