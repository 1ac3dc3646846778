package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tillstorm/tillstorm/scenarios"
)

func newDefects() *cobra.Command {
	var (
		folder, seeds, page string
		only                []string
		drawn               drawnFlags
		workers             int
		asJSON              bool
	)
	c := &cobra.Command{
		Use:   "defects",
		Short: "Plant defects in the system, and see how soon the search finds them",
		Long: `defects plants each of the defects of a folder in the system, builds that, and sweeps
until it is caught: in five disjoint ranges of the seeds, since one could have luck. A
defect is a file NAME.patch: a title, "Caught by: PROPERTY or PROPERTY", and a unified
diff of files in system/. The sources themselves are not touched.

As a control, one blatant defect must be caught within 5 seeds, and the unchanged system
must pass the same seeds; otherwise what was found means nothing. It needs the sources,
and go and gcc. Files that are no defects, or don't apply to the sources, are all told
before anything runs.`,
		Example: `  tillstorm defects
  tillstorm defects --only close-unguarded-update --json
  tillstorm defects --dir ~/my-defects --seeds 1-1000
  tillstorm defects --page docs/defects.md`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h := scenarios.Hunt{Workers: workers}
			var err error
			if h.Seeds, err = scenarios.ParseSeeds(seeds); err != nil {
				return fmt.Errorf("--seeds: %w", err)
			}
			if n := h.Seeds.Count(); n < scenarios.HuntRanges {
				return fmt.Errorf("--seeds: %s has %d; at least %d are needed, one for each part", h.Seeds, n, scenarios.HuntRanges)
			}
			if workers < 0 {
				return fmt.Errorf("--workers must not be negative, but is %d", workers)
			}
			if h.Profile, err = drawn.resolve(); err != nil {
				return err
			}
			h.Defects, err = scenarios.ReadDefects(folder, only...)
			if err = errors.Join(err, scenarios.CheckDefects(c.Context(), h.Defects)); err != nil {
				return err
			}
			h.Progress = func(d scenarios.HuntedDefect) { fmt.Fprintln(c.ErrOrStderr(), d) }
			report, err := h.Run(c.Context())
			if err != nil {
				return err
			}
			if page != "" {
				if err := os.WriteFile(page, []byte(huntPage(report)), 0o644); err != nil {
					return fmt.Errorf("--page: %w", err)
				}
			}
			return printHunt(c, report, asJSON)
		},
	}
	f := c.Flags()
	f.StringVar(&folder, "dir", "scenarios/defects", "the folder of the defects")
	f.StringVar(&seeds, "seeds", "1-1000", "the seeds to look in, A-B, in five parts")
	f.StringSliceVar(&only, "only", nil, "only the defects of these names")
	f.IntVar(&workers, "workers", 0, "defects at once (default: one for each processor)")
	f.StringVar(&drawn.profile, "profile", "storm", "how much goes wrong")
	f.StringVar(&drawn.strategy, "strategy", "", "how runs are varied (default: each seed draws one)")
	f.StringVar(&page, "page", "", "write what was found as a page of the docs, in Markdown, to this file")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// huntPage is docs/defects.md.
func huntPage(r *scenarios.HuntReport) string {
	var b strings.Builder
	var medians []int
	for _, d := range r.Defects {
		if d.Caught {
			medians = append(medians, d.SeedsToCatch)
		}
	}
	slices.Sort(medians)
	middle, most := 0, 0
	if n := len(medians); n > 0 {
		middle, most = medians[n/2], medians[n-1]
	}
	fmt.Fprintf(&b, `# Which defects are found, and how soon

Every harness can be green. This page says what this one finds: %d small wrong changes to the system, as developers under
pressure make them, each a patch in `+"`scenarios/defects/`"+`. Each was planted, and seeds were swept until the property that it
names was broken, in five disjoint parts of the seeds %s under the profile %s. A dash is a part that did not catch it.

%d of %d were caught. The median over the parts is %d seeds in the middle of those, and %d at the most.
As a control the unchanged system passed %d seeds, all that any defect took, and a blatant defect was caught within %d.

The page is written by

    go run ./cmd/tillstorm defects --page docs/defects.md

| defect | what is wrong | caught by | seeds, median | in each part | strategies |
|---|---|---|---|---|---|
`, r.Total, r.Seeds, r.Profile, r.Caught, r.Total, middle, most, r.Control.Seeds, r.Control.Blatant)
	for _, d := range r.Defects {
		row := append([]string{d.Name, strings.ReplaceAll(d.Title, "|", "\\|")}, d.Row()[1:]...)
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString(`
Look at one with ` + "`go run ./cmd/tillstorm sweep --defect NAME --max-failures 1`" + `. The strategies are those of the seeds that caught
it, see [strategies](strategies.md). Whoever wrote the defects knew the system: the page says what kinds of mistakes are found
how soon, not how many of those that nobody has thought of.
`)
	return b.String()
}

func printHunt(c *cobra.Command, r *scenarios.HuntReport, asJSON bool) error {
	if err := printJSONOr(c, r, nil, asJSON, func(w io.Writer) { printHunted(w, r) }); err != nil {
		return err
	}
	var failed []string
	for _, d := range r.Defects {
		if d.Error != "" {
			failed = append(failed, d.Name+": "+d.Error)
		}
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "\n"))
	}
	return verdictError{r.Verdict()}.orNil()
}

func printHunted(w io.Writer, r *scenarios.HuntReport) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "defect\tcaught by\tseeds to catch\teach range\tstrategies")
	for _, d := range r.Defects {
		fmt.Fprintln(t, strings.Join(d.Row(), "\t"))
	}
	t.Flush()
	fmt.Fprintf(w, "%d of %d caught in %v; control: the unchanged system passed %d seeds: %t; a blatant defect took %d\n",
		r.Caught, r.Total, time.Duration(r.WallNs).Round(time.Second), r.Control.Seeds, r.Control.Passed, r.Control.Blatant)
	if r.IsVoid() {
		fmt.Fprintln(w, "VOID: the control failed, so that none of this means anything")
	}
}

// plantedVariable says to a program with which defect it was built.
const plantedVariable = "TILLSTORM_PLANTED"

// addDefect adds --defect. The command sees its name only when it runs in a build that has
// the defect: see planted.
func addDefect(f *pflag.FlagSet, name *string) {
	f.StringVar(name, "defect", "", "with this defect planted in the system: a name from scenarios/defects, or a FILE.patch")
}

// childError carries the exit code of the build that has the defect.
type childError struct{ code int }

func (e childError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// planted runs the same command line in a build that has the defect of --defect, if there
// is one to plant.
func planted(c *cobra.Command, args []string) error {
	flag := c.Flags().Lookup("defect")
	if flag == nil || !flag.Changed || flag.Value.String() == os.Getenv(plantedVariable) {
		return nil
	}
	folder, err := os.MkdirTemp("", "tillstorm-defect-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	program, err := scenarios.BuildWith(c.Context(), flag.Value.String(), folder)
	if err != nil {
		return fmt.Errorf("--defect: %w", err)
	}
	child := exec.CommandContext(context.WithoutCancel(c.Context()), program, args...) // it gets the terminal's signals itself
	child.Env = append(os.Environ(), plantedVariable+"="+flag.Value.String())
	child.Stdin, child.Stdout, child.Stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
	err = child.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return childError{0}
	case errors.As(err, &exit):
		return childError{exit.ExitCode()}
	}
	return err
}
