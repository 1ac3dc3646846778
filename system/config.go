package system

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ClosePolicy says what closing an unpaid order asks of the channels.
type ClosePolicy string

// The policies of closing.
const (
	// CloseAskFirst closes an order only after every channel has said that nothing was paid, and has closed its trade.
	CloseAskFirst ClosePolicy = "ask-first"
	// CloseLocalOnly closes by our own facts. A charge whose callback is still on its way then meets a closed order.
	CloseLocalOnly ClosePolicy = "local-only"
)

// LateSuccess says what becomes of a charge that meets a closed order.
type LateSuccess string

// The policies for late success.
const (
	LateRefund    LateSuccess = "refund"    // the money goes back
	LateReinstate LateSuccess = "reinstate" // the order opens again if its stock can be frozen again, else as above
)

// CloseBy is one way to notice that an order is due. Each works without the others.
type CloseBy string

// The ways to close. Only the scan never misses an order; the others make closing punctual.
const (
	CloseByScan    CloseBy = "scan"    // a periodic scan of the database
	CloseByMessage CloseBy = "message" // a delayed message of the Broker
	CloseByExpiry  CloseBy = "expiry"  // the notified end of a key of the Leases
)

// Consistency is one way to keep other services in step with a committed fact.
type Consistency string

// The ways to stay consistent. The local transaction always stands; without the outbox, what follows from a fact is
// called once after the commit, and a crash or a failure loses it.
const (
	ByLocalTransaction Consistency = "local-transaction"
	ByOutbox           Consistency = "outbox"
	ByReconciliation   Consistency = "reconciliation"
)

// maxBatch bounds ScanBatch and every other batch of a job, so that none holds a long read.
const maxBatch = 100

// MinSigningKey is how many bytes a SigningKey has at least.
const MinSigningKey = 16

// ChannelConfig is one payment channel that orders can be paid on.
type ChannelConfig struct {
	Name    string         // as its callbacks spell it
	URL     string         // where it is called, for example http://channel
	Zone    *time.Location // whose days its bills are [UTC]
	AckBody string         // what acknowledges a callback, exactly; empty: a JSON answer does
}

// Config is what an operator decides about a shop. A zero value means the default in brackets.
type Config struct {
	Instance         string          // this instance's name in logs, health answers and leases [shop]
	Channels         []ChannelConfig // at least one; the first serves orders that name none
	StockURL         string          // where the stock service is called; empty: orders can't name a SKU
	NotifyURL        string          // where channels post their callbacks: this service's /callback/pay
	RefundNotifyURL  string          // and where refund notifications go [NotifyURL with refund for pay at its end]
	MerchantID       string          // who we are to the channels
	SigningKey       []byte          // shared with the channels, at least 16 bytes
	PayWindow        time.Duration   // from an order's creation to its deadline [15m]
	ScanEvery        time.Duration   // between two closing scans; how late closing may be [10s]
	ScanBatch        int             // rows read at once by a job, at most 100 [100]
	QueryEvery       time.Duration   // between two runs of the pending query [15s]
	FirstQuery       time.Duration   // from an attempt's start to its first query; doubled each time, up to 10m [15s]
	WatchFor         time.Duration   // how long after its deadline an attempt that no channel has closed is asked for [3h]
	RefundQueryEvery time.Duration   // between two runs of the refund query [30s]
	RelayEvery       time.Duration   // between two runs of the outbox relay [5s]
	OutboxTries      int             // after which a message is parked [60]
	CallTimeout      time.Duration   // for one call of another service; must leave the caller its patience [3s]
	LeaseTTL         time.Duration   // of the closing scan's lease and of an order's lock [15s]
	SignatureMaxAge  time.Duration   // by this node's clock, in both directions [5m]
	ClosePolicy      ClosePolicy     // [ask-first]
	LateSuccess      LateSuccess     // [refund]
	CloseBy          []CloseBy       // [scan, message, expiry]
	Consistency      []Consistency   // [local-transaction, outbox, reconciliation]
}

func (c Config) withDefaults() Config {
	setDefault(&c.Instance, "shop")
	if base, ok := strings.CutSuffix(c.NotifyURL, "/pay"); ok {
		setDefault(&c.RefundNotifyURL, base+"/refund")
	}
	c.Channels = slices.Clone(c.Channels)
	for i := range c.Channels {
		setDefault(&c.Channels[i].Zone, time.UTC)
	}
	setDefault(&c.PayWindow, 15*time.Minute)
	setDefault(&c.ScanEvery, 10*time.Second)
	setDefault(&c.ScanBatch, maxBatch)
	setDefault(&c.QueryEvery, 15*time.Second)
	setDefault(&c.FirstQuery, 15*time.Second)
	setDefault(&c.WatchFor, 3*time.Hour)
	setDefault(&c.RefundQueryEvery, 30*time.Second)
	setDefault(&c.RelayEvery, 5*time.Second)
	setDefault(&c.OutboxTries, 60)
	setDefault(&c.CallTimeout, 3*time.Second)
	setDefault(&c.LeaseTTL, 15*time.Second)
	setDefault(&c.SignatureMaxAge, 5*time.Minute)
	setDefault(&c.ClosePolicy, CloseAskFirst)
	setDefault(&c.LateSuccess, LateRefund)
	if c.CloseBy == nil {
		c.CloseBy = []CloseBy{CloseByScan, CloseByMessage, CloseByExpiry}
	}
	if c.Consistency == nil {
		c.Consistency = []Consistency{ByLocalTransaction, ByOutbox, ByReconciliation}
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// closesBy reports whether orders are closed in this way.
func (c Config) closesBy(way CloseBy) bool { return slices.Contains(c.CloseBy, way) }

// keptBy reports whether services are kept in step in this way.
func (c Config) keptBy(way Consistency) bool { return slices.Contains(c.Consistency, way) }

func (c Config) channelNames() []string {
	var names []string
	for _, channel := range c.Channels {
		names = append(names, channel.Name)
	}
	return names
}

// channel returns the channel of that name.
func (c Config) channel(name string) (ChannelConfig, bool) {
	for _, channel := range c.Channels {
		if channel.Name == name {
			return channel, true
		}
	}
	return ChannelConfig{}, false
}

// Problem is one thing that is wrong with a Config.
type Problem struct {
	Field string // of Config
	What  string // it must be
}

// problems collects what is wrong.
type problems []Problem

func (p *problems) require(ok bool, field, format string, args ...any) {
	if !ok {
		*p = append(*p, Problem{Field: field, What: fmt.Sprintf(format, args...)})
	}
}

// Validate reports everything that is wrong with the configuration at once. Fields left zero are fine where they have a
// default.
func (c Config) Validate() error {
	var all []error
	for _, p := range c.Problems() {
		all = append(all, fmt.Errorf("config: %s %s", p.Field, p.What))
	}
	return errors.Join(all...)
}

// Problems is Validate for who knows the fields by other names.
func (c Config) Problems() []Problem {
	c = c.withDefaults()
	var p problems
	c.requireChannels(&p)
	p.require(c.StockURL == "" || isURL(c.StockURL), "StockURL", "must be an absolute http(s) URL or empty, not %q", c.StockURL)
	p.require(isURL(c.NotifyURL), "NotifyURL", "must be an absolute http(s) URL, not %q", c.NotifyURL)
	p.require(isURL(c.RefundNotifyURL), "RefundNotifyURL", "must be an absolute http(s) URL, not %q", c.RefundNotifyURL)
	p.require(c.MerchantID != "", "MerchantID", "must be set")
	p.require(len(c.SigningKey) >= MinSigningKey, "SigningKey", "must have at least %d bytes, it has %d", MinSigningKey, len(c.SigningKey))
	c.requireTimes(&p)
	p.require(c.ScanBatch > 0 && c.ScanBatch <= maxBatch, "ScanBatch", "must be 1 to %d, not %d", maxBatch, c.ScanBatch)
	p.require(c.OutboxTries > 0, "OutboxTries", "must be positive, not %d", c.OutboxTries)
	c.requirePolicies(&p)
	return p
}

func (c Config) requireChannels(p *problems) {
	p.require(len(c.Channels) > 0, "Channels", "must name at least one")
	for i, channel := range c.Channels {
		p.require(isName(channel.Name, maxChannelName),
			"Channels", "must have names of 1 to %d of [A-Za-z0-9_-], not %q", maxChannelName, channel.Name)
		p.require(isURL(channel.URL), "Channels", "must have an absolute http(s) URL for %q, not %q", channel.Name, channel.URL)
		for j, other := range c.Channels {
			// The number of a charge's refund is made of channel and transaction; it must not fit two channels.
			clash := i != j && (channel.Name == other.Name || strings.HasPrefix(channel.Name, other.Name+"-"))
			p.require(!clash, "Channels", "must not have the name %q, which begins with the name %q", channel.Name, other.Name)
		}
	}
}

func (c Config) requireTimes(p *problems) {
	for _, field := range []struct {
		name  string
		value time.Duration
	}{
		// The database counts in milliseconds; a window that rounds to none would close orders at their creation.
		{"PayWindow", c.PayWindow}, {"ScanEvery", c.ScanEvery}, {"QueryEvery", c.QueryEvery},
		{"FirstQuery", c.FirstQuery}, {"WatchFor", c.WatchFor}, {"RelayEvery", c.RelayEvery},
		{"RefundQueryEvery", c.RefundQueryEvery},
		{"CallTimeout", c.CallTimeout}, {"LeaseTTL", c.LeaseTTL}, {"SignatureMaxAge", c.SignatureMaxAge},
	} {
		p.require(field.value >= time.Millisecond, field.name, "must be at least 1ms, not %v", field.value)
	}
}

func (c Config) requirePolicies(p *problems) {
	p.require(c.ClosePolicy == CloseAskFirst || c.ClosePolicy == CloseLocalOnly,
		"ClosePolicy", "must be %q or %q, not %q", CloseAskFirst, CloseLocalOnly, c.ClosePolicy)
	p.require(c.LateSuccess == LateRefund || c.LateSuccess == LateReinstate,
		"LateSuccess", "must be %q or %q, not %q", LateRefund, LateReinstate, c.LateSuccess)
	for _, way := range c.CloseBy {
		known := way == CloseByScan || way == CloseByMessage || way == CloseByExpiry
		p.require(known, "CloseBy", "may have %q, %q, %q, not %q", CloseByScan, CloseByMessage, CloseByExpiry, way)
	}
	for _, way := range c.Consistency {
		known := way == ByLocalTransaction || way == ByOutbox || way == ByReconciliation
		p.require(known, "Consistency", "may have %q, %q, %q, not %q", ByLocalTransaction, ByOutbox, ByReconciliation, way)
	}
	p.require(c.keptBy(ByLocalTransaction), "Consistency", "needs %q: without it there are no facts", ByLocalTransaction)
}

func isURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != ""
}
