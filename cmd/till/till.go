package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
	"github.com/tillstorm/tillstorm/system/embedded"
	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/inventory"
)

// till is a shop with everything that it needs, over the databases of one directory.
type till struct {
	shop    *system.Shop
	handler http.Handler // of the shop, and of the services inside under their paths

	agreed    *agreement
	log       *slog.Logger
	loops     *realLoops
	inside    map[string]http.Handler // by host
	client    *http.Client
	mux       *http.ServeMux
	routes    []httpjson.Route
	banks     []*channel.Channel
	databases []*sql.DB
}

// openTill opens the databases, which are made and migrated if need be, and puts the services together. It starts none.
// Background work will run until ctx ends.
func openTill(ctx context.Context, o *options, log *slog.Logger) (*till, error) {
	channels, err := o.parseChannels()
	if err != nil {
		return nil, err
	}
	cfg, err := o.shopConfig(channels)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.data, 0o750); err != nil {
		return nil, fmt.Errorf("%s: %w", named("data"), err)
	}
	agreed, changed, err := agree(ctx, o.data, o.settings(), o.visitor)
	if err != nil {
		return nil, err
	}
	if len(changed) > 0 {
		log.Warn("the settings are others than before", "changed", changed, "data", o.data)
	}
	t := &till{agreed: agreed, log: log, loops: &realLoops{ctx: ctx}, inside: map[string]http.Handler{}, mux: http.NewServeMux()}
	t.client = &http.Client{Transport: &insideTransport{handlers: t.inside, network: http.DefaultTransport}}
	if err := t.addAll(ctx, o, channels, cfg); err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.handler = t.mux
	return t, nil
}

// addAll opens the databases of the services that are inside, and of the shop.
func (t *till) addAll(ctx context.Context, o *options, channels []channelOption, cfg system.Config) error {
	for _, c := range channels {
		if c.url != "" {
			continue
		}
		if err := t.addChannel(ctx, o, c); err != nil {
			return err
		}
	}
	if o.stockURL == "" {
		if err := t.addStock(ctx, o.data); err != nil {
			return err
		}
	}
	return t.addShop(ctx, o.data, cfg)
}

// open opens one database, to be closed with the till.
func (t *till) open(ctx context.Context, dir, name string, migrate func(context.Context, *sql.DB) error) (*sql.DB, error) {
	db, err := openDB(ctx, dir, name, migrate)
	if err == nil {
		t.databases = append(t.databases, db)
	}
	return db, err
}

// serveInside makes a service known to the others by its host, and to everybody under a path.
func (t *till) serveInside(host, path string, handler http.Handler, routes []httpjson.Route) {
	t.inside[host] = handler
	t.routes = append(t.routes, below(path, routes)...)
	t.mux.Handle(path+"/", http.StripPrefix(path, handler))
}

func (t *till) addChannel(ctx context.Context, o *options, c channelOption) error {
	db, err := t.open(ctx, o.data, "channel-"+c.name, channel.Migrate)
	if err != nil {
		return err
	}
	cfg := channel.Config{Name: c.name, Personality: c.personality, SigningKey: []byte(o.signingKey)}
	bank, err := channel.New(cfg, channel.Env{
		Clock: realClock{}, Loops: t.loops, DB: db, HTTP: t.client, NewID: newID, Log: t.log,
	})
	if err != nil {
		return err
	}
	t.banks = append(t.banks, bank)
	t.serveInside(channelHost(c.name), channelPath+c.name, bank.Handler(), channel.Routes())
	return nil
}

func (t *till) addStock(ctx context.Context, dir string) error {
	db, err := t.open(ctx, dir, "stock", inventory.Migrate)
	if err != nil {
		return err
	}
	stock, err := inventory.New(inventory.Env{DB: db, NewID: newID, Log: t.log})
	if err != nil {
		return err
	}
	t.serveInside(stockHost, stockPath, stock.Handler(), inventory.Routes())
	return nil
}

func (t *till) addShop(ctx context.Context, dir string, cfg system.Config) error {
	orders, err := t.open(ctx, dir, "orders", system.Migrate)
	if err != nil {
		return err
	}
	messages, err := t.open(ctx, dir, "messages", embedded.Migrate)
	if err != nil {
		return err
	}
	env := embedded.Env{Loops: t.loops, DB: messages, Log: t.log}
	broker, err := embedded.NewBroker(env)
	if err != nil {
		return err
	}
	leases, err := embedded.NewLeases(env)
	if err != nil {
		return err
	}
	t.shop, err = system.New(cfg, system.Env{
		Clock: realClock{}, Loops: t.loops, DB: orders, HTTP: t.client, NewID: newID, Log: t.log,
		Broker: broker, Leases: leases,
	})
	if err != nil {
		return err
	}
	t.inside[shopHost] = t.shop.Handler()
	t.mux.Handle("/", t.shop.Handler())
	t.routes = append(system.Routes(), t.routes...)
	t.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { httpjson.WriteRoutes(w, t.routes) })
	return nil
}

// start starts the background work of all services.
func (t *till) start() {
	for _, bank := range t.banks {
		bank.Start()
	}
	t.shop.Start()
}

// close closes the databases, last opened first, and only then lets others change the settings.
func (t *till) close() error {
	var errs []error
	for n := len(t.databases) - 1; n >= 0; n-- {
		errs = append(errs, t.databases[n].Close())
	}
	return errors.Join(append(errs, t.agreed.close())...)
}
