package system

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// ClosePolicy says what closing an unpaid order asks of the channel.
type ClosePolicy string

// CloseLocalOnly closes by our own facts without asking the channel. A charge whose callback is still on its way then
// meets a closed order, and its record is kept as late.
const CloseLocalOnly ClosePolicy = "local-only"

// maxScanBatch bounds ScanBatch, so that no scan holds a long read.
const maxScanBatch = 100

// Config is what an operator decides about a shop. A zero value means the default in brackets.
type Config struct {
	Instance        string        // this instance's name in logs and health answers [shop]
	Channel         string        // the payment channel's name, as its callbacks spell it [mock]
	ChannelURL      string        // where the channel is called, for example http://channel
	NotifyURL       string        // where the channel posts its callbacks: this service's /callback/pay
	MerchantID      string        // who we are to the channel
	SigningKey      []byte        // shared with the channel, at least 16 bytes
	PayWindow       time.Duration // from an order's creation to its deadline [15m]
	ScanEvery       time.Duration // between two closing scans; how late closing may be [10s]
	ScanBatch       int           // orders read at once by a scan, at most 100 [100]
	CallTimeout     time.Duration // for one call of the channel; must leave the caller its patience [3s]
	SignatureMaxAge time.Duration // by this node's clock, in both directions [5m]
	ClosePolicy     ClosePolicy   // [local-only]
}

func (c Config) withDefaults() Config {
	setDefault(&c.Instance, "shop")
	setDefault(&c.Channel, "mock")
	setDefault(&c.PayWindow, 15*time.Minute)
	setDefault(&c.ScanEvery, 10*time.Second)
	setDefault(&c.ScanBatch, maxScanBatch)
	setDefault(&c.CallTimeout, 3*time.Second)
	setDefault(&c.SignatureMaxAge, 5*time.Minute)
	setDefault(&c.ClosePolicy, CloseLocalOnly)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports everything that is wrong with the configuration at once. Fields left zero are fine where they have a
// default.
func (c Config) Validate() error {
	c = c.withDefaults()
	var problems []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("config: "+format, args...))
		}
	}
	require(isName(c.Channel, maxChannelName), "Channel must be 1 to %d of [A-Za-z0-9_-], not %q", maxChannelName, c.Channel)
	require(isURL(c.ChannelURL), "ChannelURL must be an absolute http(s) URL, not %q", c.ChannelURL)
	require(isURL(c.NotifyURL), "NotifyURL must be an absolute http(s) URL, not %q", c.NotifyURL)
	require(c.MerchantID != "", "MerchantID must be set")
	require(len(c.SigningKey) >= 16, "SigningKey must have at least 16 bytes, it has %d", len(c.SigningKey))
	// The database counts in milliseconds; a window that rounds to none would close orders at their creation.
	require(c.PayWindow >= time.Millisecond, "PayWindow must be at least 1ms, not %v", c.PayWindow)
	require(c.ScanEvery > 0, "ScanEvery must be positive, not %v", c.ScanEvery)
	require(c.ScanBatch > 0 && c.ScanBatch <= maxScanBatch, "ScanBatch must be 1 to %d, not %d", maxScanBatch, c.ScanBatch)
	require(c.CallTimeout > 0, "CallTimeout must be positive, not %v", c.CallTimeout)
	require(c.SignatureMaxAge > 0, "SignatureMaxAge must be positive, not %v", c.SignatureMaxAge)
	require(c.ClosePolicy == CloseLocalOnly, "ClosePolicy must be %q, not %q", CloseLocalOnly, c.ClosePolicy)
	return errors.Join(problems...)
}

func isURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != ""
}
