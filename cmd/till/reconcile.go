package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/system"
)

func newReconcile() *cobra.Command {
	o := options{visitor: true}
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare orders, payments, stock and the channels' bills once, now",
		Long: `reconcile runs every comparison that is due: our own books, the stock service's
journal, and the channels' bills of the days that are over. It repairs nothing. Each
difference becomes one alert, however often it is found; reconcile prints the new
ones and exits with 1 if there are any, and GET /alerts tells them all. It may run
beside instances that serve the same --data, and must be given the same settings.

A day's bill is compared when the day is over in the channel's time zone and the
bill is made, 10:15 hours later; today is not compared yet.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLog(cmd.ErrOrStderr(), o.logLevel)
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(o.data, "orders.db")); err != nil {
				return usageError{fmt.Errorf("%s: %s has no orders.db, so there is nothing to compare", named("data"), o.data)}
			}
			t, err := openTill(cmd.Context(), &o, log)
			if err != nil {
				return err
			}
			err = reconcile(cmd.Context(), t, cmd.OutOrStdout())
			return errors.Join(err, t.close())
		},
	}
	o.register(cmd.Flags())
	o.registerLog(cmd.Flags(), "error")
	return cmd
}

// reconcile compares everything once and prints the alerts that are new. New alerts are an error too.
func reconcile(ctx context.Context, t *till, out io.Writer) error {
	before, err := alertsAfter(ctx, t, 0)
	if err != nil {
		return err
	}
	var last int64
	if len(before) > 0 {
		last = before[len(before)-1].AlertID
	}
	reconcileErr := t.shop.Reconcile(ctx)
	found, err := alertsAfter(ctx, t, last)
	for _, a := range found {
		fmt.Fprintf(out, "%s %s: %s\n", a.Kind, a.Subject, a.Detail)
	}
	if reconcileErr != nil || err != nil {
		return errors.Join(reconcileErr, err)
	}
	if len(found) == 0 {
		fmt.Fprintf(out, "nothing new; earlier alerts: %d\n", len(before))
	}
	if err := tellCompared(ctx, t, out); err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("new differences: %d", len(found))
	}
	return nil
}

// tellCompared says what was compared, so that nobody takes a day that isn't for one that is in order.
func tellCompared(ctx context.Context, t *till, out io.Writer) error {
	days, err := t.shop.BillDays(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "compared: our books and the stock journal, as they are now")
	for _, d := range days {
		bills := fmt.Sprintf("%s's bill of %s", d.Channel, d.First)
		if d.Days > 1 {
			bills = fmt.Sprintf("%s's %d bills of %s to %s", d.Channel, d.Days, d.First, d.Last)
		}
		if d.Compared {
			fmt.Fprintln(out, "compared:", bills)
			continue
		}
		fmt.Fprintf(out, "not yet:  %s; asked for when that day is over, next at %s\n", bills, d.Next.Format("2006-01-02 15:04 -0700"))
	}
	return nil
}

// alertsAfter asks the shop for its alerts, page by page.
func alertsAfter(ctx context.Context, t *till, after int64) ([]system.Alert, error) {
	var alerts []system.Alert
	for {
		var page struct {
			Alerts []system.Alert
			Next   int64
		}
		url := fmt.Sprintf("http://%s/alerts?after=%d", shopHost, after)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		reply, err := t.client.Do(r)
		if err != nil {
			return nil, err
		}
		err = json.NewDecoder(reply.Body).Decode(&page)
		if err = errors.Join(err, reply.Body.Close()); err != nil {
			return nil, fmt.Errorf("read alerts: %w", err)
		}
		alerts = append(alerts, page.Alerts...)
		if after = page.Next; after == 0 {
			return alerts, nil
		}
	}
}
