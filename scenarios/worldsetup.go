package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
)

// Setting is one thing that the setup says of a shop or a channel.
type Setting struct{ Name, Value string }

// ChannelSetup is how a channel differs from its kind.
type ChannelSetup struct {
	Name     string
	Settings []Setting
}

// ClockSetup is how a node's clock differs from the true one, all the time.
type ClockSetup struct {
	Node  string
	Ahead time.Duration // negative: behind
	Zone  string        // "" for the world's
}

// setting is what there is to set: a duration, or a number or word.
type setting[T any] struct {
	name, example string
	set           func(target *T, value string) error
}

// shops is how many there are in a world, and how each is configured.
type shops struct {
	instances int
	system.Config
}

// shopSettings are all that a line 'shop NAME VALUE' may set.
var shopSettings = []setting[shops]{
	{"instances", "3", func(s *shops, v string) (err error) { s.instances, err = between(v, 1, 9); return err }},
	{"scan-every", "10s", func(s *shops, v string) error { return durationTo(&s.ScanEvery, v) }},
	{"scan-batch", "100", func(s *shops, v string) (err error) { s.ScanBatch, err = between(v, 1, 100); return err }},
	{"query-every", "15s", func(s *shops, v string) error { return durationTo(&s.QueryEvery, v) }},
	{"first-query", "15s", func(s *shops, v string) error { return durationTo(&s.FirstQuery, v) }},
	{"watch-for", "3h", func(s *shops, v string) error { return durationTo(&s.WatchFor, v) }},
	{"relay-every", "5s", func(s *shops, v string) error { return durationTo(&s.RelayEvery, v) }},
	{"refund-query-every", "30s", func(s *shops, v string) error { return durationTo(&s.RefundQueryEvery, v) }},
	{"call-timeout", "3s", func(s *shops, v string) error { return durationTo(&s.CallTimeout, v) }},
	{"lease-ttl", "15s", func(s *shops, v string) error { return durationTo(&s.LeaseTTL, v) }},
	{"signature-max-age", "5m", func(s *shops, v string) error { return durationTo(&s.SignatureMaxAge, v) }},
	{"outbox-tries", "60", func(s *shops, v string) (err error) { s.OutboxTries, err = between(v, 1, 1000); return err }},
}

// channelSettings are all that may follow 'channel NAME'.
var channelSettings = []setting[channel.Personality]{
	{"notifies-after", "200ms", func(p *channel.Personality, v string) error { return durationTo(&p.FirstNotify, v) }},
	{"copies", "none", func(p *channel.Personality, v string) error { p.Copies = nil; return none(v) }},
	{"resends", "none", func(p *channel.Personality, v string) error { p.Resend = nil; return none(v) }},
	{"resends-after", "2s", func(p *channel.Personality, v string) error { return resendAfter(p, v) }},
	{"acks-within", "5s", func(p *channel.Personality, v string) error { return durationTo(&p.AckTimeout, v) }},
	{"refunds-after", "3s", func(p *channel.Personality, v string) error { return durationTo(&p.RefundTakes, v) }},
}

func resendAfter(p *channel.Personality, value string) error {
	var first time.Duration
	err := durationTo(&first, value)
	p.Resend = append([]time.Duration{first}, p.Resend[min(1, len(p.Resend)):]...)
	return err
}

func durationTo(target *time.Duration, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Millisecond || d > latest {
		return fmt.Errorf("is a duration from 1ms to 168h, not %q", value)
	}
	*target = d
	return nil
}

func between(value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most || strconv.Itoa(n) != value {
		return 0, fmt.Errorf("is a number from %d to %d, not %q", least, most, value)
	}
	return n, nil
}

// none refuses any other value.
func none(value string) error {
	if value != "none" {
		return fmt.Errorf("is none, not %q", value)
	}
	return nil
}

// settingOf returns the setting of a name.
func settingOf[T any](all []setting[T], name string) *setting[T] {
	i := slices.IndexFunc(all, func(s setting[T]) bool { return s.name == name })
	return &all[i]
}

// apply sets what the settings say. They have been read before.
func apply[T any](all []setting[T], settings []Setting, target *T) {
	for _, s := range settings {
		_ = settingOf(all, s.Name).set(target, s.Value)
	}
}

// shopNames are the nodes of shops with these settings.
func shopNames(settings []Setting) (names []string) {
	s := shops{instances: 2}
	apply(shopSettings, settings, &s)
	for i := range s.instances {
		names = append(names, "shop-"+strconv.Itoa(i+1))
	}
	return names
}

// channels returns the channels that there are in the case's world: those that its
// workload or its setup names, and at least two.
func (c *Case) channels() []string {
	var named []string
	for _, one := range c.Channels {
		named = append(named, one.Name)
	}
	return c.Workload.channels(named...)
}

// personality returns how a channel of the case behaves.
func (c *Case) personality(name string) channel.Personality {
	p := personality(name)
	for _, one := range c.Channels {
		if one.Name == name {
			apply(channelSettings, one.Settings, &p)
		}
	}
	return p
}

// clockFor is how long a clock that the setup sets stays wrong: as long as a fault may last.
const clockFor = 24 * time.Hour

// setupPlan is what the setup and the timeline say that is a fault of its kind.
func (x *Incident) setupPlan() (plan faults.Plan) {
	for _, c := range x.Clocks {
		if c.Ahead != 0 {
			plan = append(plan, faults.Perturbation{Kind: faults.Skew, At: c.Node, By: c.Ahead, For: clockFor})
		}
		if c.Zone != "" {
			plan = append(plan, faults.Perturbation{Kind: faults.Zone, At: c.Node, Text: c.Zone})
		}
	}
	for _, h := range x.Hands {
		plan = append(plan, h.perturbation())
	}
	return plan
}
