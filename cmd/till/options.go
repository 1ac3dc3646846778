package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

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

	visitor bool // goes by the settings that the directory's instances have, and never changes them
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
			return nil, usageError{fmt.Errorf("%s has %q, a channel outside, which needs %s to send its callbacks to",
				named("channel"), text, named("public-url"))}
		case !outside && known < 0:
			return nil, usageError{fmt.Errorf("%s has %q; there are emulators of %s, and for a channel outside NAME=URL",
				named("channel"), text, strings.Join(personalityNames(), ", "))}
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
	return cfg, byFlags(cfg.Problems())
}

// flagOf is the flag from which a field of the shop's configuration is made.
var flagOf = map[string]string{
	"Channels": "channel", "ClosePolicy": "close", "CloseBy": "close-by", "Consistency": "consistency", "LateSuccess": "late-success",
	"MerchantID": "merchant", "NotifyURL": "public-url", "RefundNotifyURL": "public-url", "PayWindow": "pay-window",
	"ScanEvery": "scan-every", "SigningKey": "signing-key", "StockURL": "stock-url",
}

// byFlags tells what is wrong with the shop's configuration in the operator's words. Of one flag it tells one thing.
func byFlags(problems []system.Problem) error {
	var told []string
	var errs []error
	for _, p := range problems {
		flag := flagOf[p.Field]
		if !slices.Contains(told, flag) {
			told = append(told, flag)
			errs = append(errs, fmt.Errorf("%s %s", named(flag), p.What))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return usageError{errors.Join(errs...)}
}
