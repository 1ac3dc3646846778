package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

const (
	// requestPatience is how long a request may take before its context ends.
	requestPatience = 20 * time.Second
	// drainPatience is how long a stopping process waits for requests and background work under way.
	drainPatience = 10 * time.Second
	// maxInFlight bounds the requests that are worked on at once; more are told to come again.
	maxInFlight = 256
)

func newServe() *cobra.Command {
	var o options
	var addr string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve orders, payments, and by default the channel's emulator and the stock service",
		Long: `serve runs the service until it is interrupted. Everything is kept in SQLite
databases in the --data directory; several instances may serve one directory, and
any may be killed at any time. What they must agree on, like the merchant, is
changed by ending all of them and starting with other flags.

Routes (an error is {"error":{"code":...,"message":...}}; docs/till.md has the codes):

` + routesHelp(),
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLog(cmd.ErrOrStderr(), o.logLevel)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), addr, &o, log)
		},
	}
	cmd.Flags().StringVar(&addr, "addr", ":8080", "address to listen on")
	o.register(cmd.Flags())
	o.registerLog(cmd.Flags(), "info")
	return cmd
}

func newLog(to io.Writer, level string) (*slog.Logger, error) {
	var at slog.Level
	if err := at.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError{fmt.Errorf("%s must be debug, info, warn or error, not %q", named("log-level"), level)}
	}
	return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: at})), nil
}

// serve runs until ctx ends, and then stops in order: no new requests, those under way finish, background work ends, the
// databases close. What doesn't finish in time is as good as killed, and that harms nothing.
func serve(ctx context.Context, addr string, o *options, log *slog.Logger) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("%s: %w", named("addr"), err)
	}
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	t, err := openTill(work, o, log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if o.signingKey == developmentKey {
		warnOfKey(listener.Addr(), log)
	}
	server := newServer(t.handler, log)
	served := make(chan error, 1)
	t.start()
	go func() { served <- server.Serve(listener) }()
	log.Info("serving", "addr", listener.Addr().String(), "data", o.data)

	select {
	case err = <-served:
	case <-ctx.Done():
		log.Info("stopping")
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			log.Warn("requests were cut off", "error", err)
		}
	}
	stopWork()
	if !t.loops.wait(drainPatience) {
		log.Warn("background work was cut off")
	}
	err = errors.Join(err, t.close())
	log.Info("stopped")
	return err
}

// warnOfKey tells who can declare orders paid while callbacks are signed with the development key.
func warnOfKey(addr net.Addr, log *slog.Logger) {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		log.Info("callbacks are signed with the development key; set " + variable("signing-key") + " before others can reach this address")
		return
	}
	log.Warn("whoever reaches this address can declare any order paid: callbacks are signed with the development key, which everybody knows; set "+
		variable("signing-key")+", or listen on 127.0.0.1 only", "addr", addr.String())
}

// newServer is an HTTP server with limits: no client can hold a connection, a body or a place in line for ever.
func newServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           limited(logged(handler, log)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      requestPatience + 10*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
