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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/scenarios"
	"github.com/tillstorm/tillstorm/sim"
)

func newSweep() *cobra.Command {
	var (
		seeds, profile, shard, junit string
		journal                      sim.Journal
		workers                      int
		limit                        time.Duration
		asJSON                       bool
	)
	c := &cobra.Command{
		Use:   "sweep",
		Short: "Run many seeds and tell the ones that fail",
		Example: `  tillstorm sweep --seeds 1-5000
  tillstorm sweep --seeds 1-1000000 --for 10m --json
  tillstorm sweep --seeds 1-8000 --shard 2/8 --junit report.xml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s := scenarios.Sweep{Journal: journal, Workers: workers, For: limit}
			var err error
			if s.Seeds, err = scenarios.ParseSeeds(seeds); err != nil {
				return fmt.Errorf("--seeds: %w", err)
			}
			if s.Profile, err = faults.ProfileNamed(profile); err != nil {
				return fmt.Errorf("--profile: %w", err)
			}
			if shard != "" {
				if s.Shard, err = scenarios.ParseShard(shard); err != nil {
					return fmt.Errorf("--shard: %w", err)
				}
			}
			if workers < 0 || limit < 0 {
				return fmt.Errorf("--workers and --for must not be negative")
			}
			if err := s.Check(); err != nil {
				return err
			}
			if junit != "" { // a report that can't be written is better known before
				if err := os.WriteFile(junit, nil, 0o644); err != nil {
					return fmt.Errorf("--junit: %w", err)
				}
			}
			s.Progress = progress(c.ErrOrStderr(), s.Count())
			report, err := s.Run(c.Context())
			if err != nil {
				return err
			}
			if report.Seeds == 0 {
				return fmt.Errorf("not one seed ran: --for %v is too short", limit)
			}
			verdict := printReport(c, s, report, asJSON)
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
	f.StringVar(&profile, "profile", "storm", "how much goes wrong: "+profileNames())
	f.TextVar(&journal, "db", sim.MemDB, "the databases' `journal`: memdb, in memory, or wal, files with a write-ahead log as in production")
	f.StringVar(&shard, "shard", "", "run only the I-th of N parts of the seeds, I/N")
	f.IntVar(&workers, "workers", 0, "worlds at once (default: one for each processor)")
	f.DurationVar(&limit, "for", 0, "take no new seed after this long, for example 10m")
	f.StringVar(&junit, "junit", "", "also write a JUnit report to this file")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func profileNames() string {
	var names []string
	for _, p := range faults.Profiles() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// progressEvery is how often a sweep says how far it is.
const progressEvery = 5 * time.Second

// progress returns a function that writes a line to w now and then.
func progress(w io.Writer, total int) func(done, failed int) {
	began := time.Now()
	last := began
	return func(done, failed int) {
		if time.Since(last) < progressEvery {
			return
		}
		last = time.Now()
		rate := float64(done) / last.Sub(began).Seconds()
		fmt.Fprintf(w, "%d of %d seeds, %d failed, %.0f seeds/s\n", done, total, failed, rate)
	}
}

func printReport(c *cobra.Command, s scenarios.Sweep, r *scenarios.Report, asJSON bool) error {
	out := c.OutOrStdout()
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
		out = c.ErrOrStderr()
	}
	printFailures(out, r)
	if !asJSON {
		if err := printSummary(out, s, r); err != nil {
			return err
		}
	}
	if v := r.Verdict(); v != scenarios.Pass {
		return verdictError{v}
	}
	return nil
}

// maxTold is how many different failures are told in full.
const maxTold = 5

// printFailures tells one failure of each kind.
func printFailures(w io.Writer, r *scenarios.Report) {
	times := map[string]int{}
	var distinct []scenarios.SeedFailure
	for _, f := range r.Failures {
		if times[f.Fingerprint]++; times[f.Fingerprint] == 1 {
			distinct = append(distinct, f)
		}
	}
	for i, f := range distinct {
		if i == maxTold {
			fmt.Fprintf(w, "... and %d more kinds of failure; --json lists all\n\n", len(distinct)-maxTold)
			return
		}
		fmt.Fprintln(w, f.Text)
		if n := times[f.Fingerprint]; n > 1 {
			fmt.Fprintf(w, "  (%d failures of this kind)\n\n", n)
		}
	}
}

func printSummary(w io.Writer, s scenarios.Sweep, r *scenarios.Report) error {
	wall := time.Duration(r.WallNs)
	fmt.Fprintf(w, "%s: seeds %s, profile %s: %d run, %d passed, %d broken, %d unknown, %d stale, %d nondeterministic\n",
		r.Verdict(), s.Seeds, conditions(s), r.Seeds, r.Passed, r.Broken, r.Unknown, r.Stale, r.Nondeterministic)
	fmt.Fprintf(w, "  %d steps, %d statements, %v simulated in %v (%.0f seeds/s)\n",
		r.Steps, r.Statements, time.Duration(r.SimNs).Round(time.Second), wall.Round(time.Millisecond), float64(r.Seeds)/wall.Seconds())
	_, err := fmt.Fprintf(w, "  faults: %s\n  probes: %s\n  trace hash %s\n", counts(r.FaultsFired), counts(r.Probes), r.TraceHash)
	return err
}

// conditions tells under what a sweep ran: "storm", or "storm over wal".
func conditions(s scenarios.Sweep) string {
	if s.Journal == sim.MemDB {
		return s.Profile.Name
	}
	return s.Profile.Name + " over " + s.Journal.String()
}

func counts(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
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
	name := "sweep " + conditions(s) + " " + s.Seeds.String()
	suite := junitSuite{Name: name, Tests: 1 + len(r.Failures), Time: fmt.Sprintf("%.3f", time.Duration(r.WallNs).Seconds())}
	suite.Cases = []junitCase{{Name: name, Class: "tillstorm"}}
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
