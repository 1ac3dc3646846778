package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
)

// developmentKey signs callbacks unless another key is given, so that till can be tried at once. Everybody knows it.
const developmentKey = "till-development-key"

// options are the flags that serve and reconcile share: what the shop is and where its data are.
type options struct {
	data        string
	signingKey  string
	merchant    string
	instance    string
	channels    []string
	stockURL    string
	publicURL   string
	payWindow   time.Duration
	scanEvery   time.Duration
	closePolicy string
	lateSuccess string
	closeBy     []string
	consistency []string
	logLevel    string
}

func (o *options) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.data, "data", "till-data", "directory of the databases; several instances may share one")
	registerKey(flags, &o.signingKey)
	flags.StringVar(&o.merchant, "merchant", "M1", "who we are to the channels")
	flags.StringVar(&o.instance, "instance", "", "name of this instance in logs and leases (default host and process id)")
	flags.StringSliceVar(&o.channels, "channel", []string{"mock"}, "payment channels, the first for orders that name none:\n"+
		"an emulator inside ("+strings.Join(personalityNames(), ", ")+") or NAME=URL of one outside,\n"+
		"which acknowledges and bills like the emulator of its name, or like mock")
	flags.StringVar(&o.stockURL, "stock-url", "", "stock service outside (default: the one inside)")
	flags.StringVar(&o.publicURL, "public-url", "", "where channels outside reach this service, like https://shop.example")
	flags.DurationVar(&o.payWindow, "pay-window", 15*time.Minute, "from an order's creation to its deadline")
	flags.DurationVar(&o.scanEvery, "scan-every", 10*time.Second, "between two scans for orders to close")
	flags.StringVar(&o.closePolicy, "close", string(system.CloseAskFirst), "before closing: ask-first (the channel) or local-only")
	flags.StringVar(&o.lateSuccess, "late-success", string(system.LateRefund), "money for a closed order: refund or reinstate")
	flags.StringSliceVar(&o.closeBy, "close-by", []string{"scan", "message", "expiry"}, "what closes orders")
	flags.StringSliceVar(&o.consistency, "consistency", []string{"local-transaction", "outbox", "reconciliation"},
		"what keeps other services in step")
}

func (o *options) registerLog(flags *pflag.FlagSet, level string) {
	flags.StringVar(&o.logLevel, "log-level", level, "debug, info, warn or error; logs are JSON lines on standard error")
}

func registerKey(flags *pflag.FlagSet, key *string) {
	flags.StringVar(key, "signing-key", developmentKey, "shared with the channels, at least 16 bytes; better given as\nTILL_SIGNING_KEY than on the command line")
}

// flagsFromEnv sets the flags that the command line leaves out from TILL_* variables.
func flagsFromEnv(cmd *cobra.Command) error {
	var problems []error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		name := "TILL_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && !flag.Changed {
			if err := cmd.Flags().Set(flag.Name, value); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	if len(problems) > 0 {
		return usageError{errors.Join(problems...)}
	}
	return nil
}

// channelOption is one --channel: an emulator inside, or a channel outside that behaves like its personality.
type channelOption struct {
	name        string
	url         string // of a channel outside
	personality channel.Personality
}

func (o *options) parseChannels() ([]channelOption, error) {
	var parsed []channelOption
	for _, text := range o.channels {
		name, url, outside := strings.Cut(text, "=")
		known := slices.IndexFunc(channel.Personalities(), func(p channel.Personality) bool { return p.Name == name })
		switch {
		case outside && o.publicURL == "":
			return nil, usageError{fmt.Errorf("--channel %s: a channel outside needs --public-url, to send its callbacks to", text)}
		case !outside && known < 0:
			return nil, usageError{fmt.Errorf("--channel %s: there are emulators of %s, and for a channel outside NAME=URL",
				text, strings.Join(personalityNames(), ", "))}
		}
		option := channelOption{name: name, url: url, personality: channel.Mock()}
		if known >= 0 {
			option.personality = channel.Personalities()[known]
		}
		parsed = append(parsed, option)
	}
	return parsed, nil
}

func personalityNames() []string {
	var names []string
	for _, p := range channel.Personalities() {
		names = append(names, p.Name)
	}
	return names
}

// shopConfig is what the options say about the shop itself.
func (o *options) shopConfig(channels []channelOption) (system.Config, error) {
	notify := "http://" + shopHost
	if o.publicURL != "" {
		notify = strings.TrimSuffix(o.publicURL, "/")
	}
	cfg := system.Config{
		Instance:    o.instance,
		StockURL:    o.stockURL,
		NotifyURL:   notify + "/callback/pay",
		MerchantID:  o.merchant,
		SigningKey:  []byte(o.signingKey),
		PayWindow:   o.payWindow,
		ScanEvery:   o.scanEvery,
		ClosePolicy: system.ClosePolicy(o.closePolicy),
		LateSuccess: system.LateSuccess(o.lateSuccess),
	}
	if cfg.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "till"
		}
		cfg.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if cfg.StockURL == "" {
		cfg.StockURL = "http://" + stockHost
	}
	for _, way := range o.closeBy {
		cfg.CloseBy = append(cfg.CloseBy, system.CloseBy(way))
	}
	for _, way := range o.consistency {
		cfg.Consistency = append(cfg.Consistency, system.Consistency(way))
	}
	for _, c := range channels {
		url := c.url
		if url == "" {
			url = "http://" + channelHost(c.name)
		}
		cfg.Channels = append(cfg.Channels, system.ChannelConfig{Name: c.name, URL: url, AckBody: c.personality.AckBody, Zone: c.personality.Zone})
	}
	if err := cfg.Validate(); err != nil {
		return cfg, usageError{err}
	}
	return cfg, nil
}
