// Command tillstorm storms the order and payment system and says what became of the
// money.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/scenarios"
)

// exitInvalid is the exit code for bad usage and bad input.
const exitInvalid = 2

// exitInterrupted is the exit code of a command that a signal has cut short.
const exitInterrupted = 130

// interruptedError says how far a command came. What it has seen had passed.
type interruptedError struct{ ran, of int }

func (e interruptedError) Error() string {
	return fmt.Sprintf("interrupted after %d of %d runs", e.ran, e.of)
}

// verdictError carries a verdict that is not a pass to the exit code.
type verdictError struct{ verdict scenarios.Verdict }

func (e verdictError) Error() string { return string(e.verdict) }

// orNil returns nil for a pass.
func (e verdictError) orNil() error {
	if e.verdict == scenarios.Pass {
		return nil
	}
	return e
}

// gcPercent lets the heap grow to five times what is in use before it is collected: a
// world is small and soon over, and collecting more often costs a sixth of a sweep.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return planted(c, args) }
	command, err := root.ExecuteContextC(ctx)
	var verdict verdictError
	var interrupted interruptedError
	var child childError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &verdict):
		return verdict.verdict.ExitCode()
	case errors.As(err, &child):
		return child.code
	case errors.As(err, &interrupted):
		fmt.Fprintln(os.Stderr, "tillstorm:", interrupted)
		return exitInterrupted
	}
	fmt.Fprintf(os.Stderr, "tillstorm: %v\nSee '%s --help'.\n", err, command.CommandPath())
	return exitInvalid
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tillstorm",
		Short: "Storm an order and payment system, and prove that the money stays right",
		Long: `tillstorm runs a complete order and payment system under a simulated clock and
network, loses, delays and repeats its messages, crashes it between any two
statements, and checks that nobody is charged twice and no closed order comes back.

Exit codes: 0 passed, 1 a property is broken, 2 bad usage or a bad file, 3 a check ran out of its
budget, 4 something planned was never reached, 5 one seed gave two traces, 130 a
signal cut it short. ('go run' turns them all into 1; 'go build' keeps them.)`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(explainFlag)
	root.AddCommand(newRun(), newSweep(), newReplay(), newCrash(), newDefects(), newNew(), newFmt(), newVerbs(), newInvariants(), newFaults())
	return root
}
