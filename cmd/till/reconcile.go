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
	var o options
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare orders, payments, stock and the channels' bills once, now",
		Long: `reconcile runs every comparison that is due: our own books, the stock service's
journal, and the channels' bills of the days that are over. It repairs nothing. Each
difference becomes one alert, however often it is found; reconcile prints the new
ones and exits with 1 if there are any, and GET /alerts tells them all. It may run
beside instances that serve the same --data.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLog(cmd.ErrOrStderr(), o.logLevel)
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(o.data, "orders.db")); err != nil {
				return usageError{fmt.Errorf("--data %s has no orders.db, so there is nothing to compare", o.data)}
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
	switch {
	case reconcileErr != nil || err != nil:
		return errors.Join(reconcileErr, err)
	case len(found) > 0:
		return fmt.Errorf("new differences: %d", len(found))
	}
	fmt.Fprintf(out, "nothing new; earlier alerts: %d\n", len(before))
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
