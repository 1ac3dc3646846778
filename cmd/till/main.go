// Command till serves the order and payment system for real: over embedded SQLite databases and, unless it is told
// otherwise, with the payment channel's emulator and the stock service inside.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// usageError is a mistake in how till was called; it exits with 2, as cobra's own do.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:])) }

// run is main without the exit: 0, 1 when something failed, 2 when till was called wrongly.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "till:", err)
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "till",
		Short: "An order and payment service that is never wrong about money",
		Long: `till takes orders, asks a payment channel to collect the money, believes the
channel's signed callbacks, closes what nobody paid in time, and gives back what
came too late.

  till serve                       # then, in another terminal:
  curl -X POST localhost:8080/orders -d '{"orderNo":"A1","amountCents":9900}'
  curl -X POST localhost:8080/channel/mock/pay -d '{"outTradeNo":"A1-1"}'
  curl localhost:8080/orders/A1    # PAID, once the channel's callback has come

Every flag can also be given as an environment variable: --pay-window is
TILL_PAY_WINDOW. "till serve --help" lists the routes.`,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		// How many letters may be wrong in a command's name to be suggested.
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; try %q", err, cmd.CommandPath()+" --help")}
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return flagsFromEnv(cmd) }
	root.AddCommand(newServe(), newSign(), newReconcile())
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	advice := fmt.Sprintf("try %q", cmd.CommandPath()+" --help")
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		advice = fmt.Sprintf("did you mean %q?", near[0])
	}
	return usageError{fmt.Errorf("%q doesn't know %q; %s", cmd.CommandPath(), args[0], advice)}
}
