package scenarios

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
	"github.com/tillstorm/tillstorm/system/inventory"
)

// The zone of every clock on the wall. It is fixed, so that no zone database is read.
var zone = time.FixedZone("UTC+8", 8*60*60)

// usualStart is when a world begins, if its case says nothing else.
var usualStart = time.Date(2026, 3, 2, 14, 0, 0, 0, zone)

const (
	merchant   = "M1"
	signingKey = "a shared key of the simulated world"
)

// channelNames are the channels that a world may have, each of a personality of its
// own. They are also the names of their nodes and of their ledgers.
var (
	channelNames  = []string{"wechat", "alipay", "stripe"}
	usualChannels = channelNames[:2]
)

// personality returns how a channel behaves.
func personality(name string) channel.Personality {
	switch name {
	case "alipay":
		return channel.AlipayLike()
	case "stripe":
		return channel.StripeLike()
	}
	return channel.WechatLike()
}

// world is the system under test, in a simulated world.
type world struct {
	*sim.World
	evidence *checker.Evidence
	c        *Case
	policy   Policy
	window   time.Duration
	channels []string
	orders   *sim.Database
	stock    *sim.Database
	ledgers  map[string]*sim.Database
	broker   *sim.Broker
	leases   *sim.Leases
	maxSteps int
	failed   error // the system could not be built: a mistake in the wiring
}

// build wires the shops over one database, a stock service, two channels, a broker,
// a lease service, and buyers.
func build(c *Case, arena *sim.Arena, f sim.Faults) (*world, error) {
	start := cmp.Or(c.Start, usualStart)
	w := &world{World: sim.New(sim.Config{Start: start, Arena: arena, Faults: f, Tape: c.tape, Naming: naming(c.Workload)})}
	w.c, w.channels = c, c.channels()
	w.maxSteps = cmp.Or(c.maxSteps, stepsFor(len(c.Workload.Orders)))
	w.policy, w.window = c.Policy, cmp.Or(c.PayWindow, payWindow)
	stock := c.firstStock()
	w.evidence = c.judgeOf(w.Trace())
	w.evidence.Expect(c.Expect)
	if err := w.openDatabases(stock); err != nil {
		w.Close()
		return nil, err
	}
	w.broker, w.leases = w.Broker("broker"), w.Leases("leases")
	w.broker.LoseAll, w.leases.GrantAll, w.leases.Away = c.Policy.MessagesLost, c.Policy.LeasesGrantAll, c.Policy.LeasesAway
	for _, name := range w.channels {
		w.Node(name, w.bootChannel)
	}
	w.Node("stock", w.bootStock)
	var instances []*sim.Node
	for _, name := range shopNames(c.Shop) {
		instances = append(instances, w.Node(name, w.bootShop))
	}
	w.Host("shop", instances...)
	w.Node("staff", w.bootStaff)
	w.Node("buyer", func(p *sim.Process) { startBuyers(p, c.Workload, start) })
	w.Node("stranger", func(p *sim.Process) { w.startStranger(p, c.Workload, start) })
	return w, nil
}

// firstStock is what the stock service begins with, by SKU.
func (c *Case) firstStock() map[string]int64 {
	first := maps.Clone(usualStock) // except where the case has its own
	maps.Copy(first, c.Stock)
	return first
}

// judgeOf returns a checker of the trace of a run of the case.
func (c *Case) judgeOf(trace *sim.Trace) *checker.Evidence {
	e := checker.New(trace)
	e.OrdersWait(cmp.Or(c.PayWindow, payWindow))
	if c.Policy.Close != system.CloseLocalOnly {
		e.AsksFirst()
	}
	if c.Policy.LateSuccess == system.LateReinstate {
		e.AllowReinstatement()
	}
	for sku, quantity := range c.firstStock() { // order-free: each by itself
		e.PutIn(sku, quantity)
	}
	e.SealedFor(merchant, []byte(signingKey))
	for _, name := range channelNames {
		e.BillsIn(name, personality(name).Zone)
	}
	return e
}

func (w *world) openDatabases(stock map[string]int64) error {
	var errs []error
	open := func(name string, schema sim.Schema) *sim.Database {
		d, err := w.Database(name, schema)
		errs = append(errs, err)
		return d
	}
	w.orders = open("shop", sim.Schema{Name: "shop", Build: system.Migrate})
	w.stock = open("stock", stockSchema(stock))
	w.ledgers = map[string]*sim.Database{}
	for _, name := range w.channels {
		w.ledgers[name] = open(name, sim.Schema{Name: "ledger", Build: channel.Migrate})
	}
	return errors.Join(errs...)
}

// stockSchema is the stock service's database with its first stock. An arena keeps a
// database for each that it has seen.
func stockSchema(first map[string]int64) sim.Schema {
	return sim.Schema{Name: fmt.Sprint("stock ", first), Build: func(ctx context.Context, db *sql.DB) error {
		return buildStock(ctx, db, first)
	}}
}

// buildStock puts the first stock in through the stock service itself.
func buildStock(ctx context.Context, db *sql.DB, stock map[string]int64) error {
	if err := inventory.Migrate(ctx, db); err != nil {
		return err
	}
	service, err := inventory.New(inventory.Env{DB: db, NewID: func() string { return "set-up" }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	for _, sku := range slices.Sorted(maps.Keys(stock)) {
		body := fmt.Sprintf(`{"sku":%q,"quantity":%d,"putNo":"first-%s"}`, sku, stock[sku], sku)
		answer := httptest.NewRecorder()
		service.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/stock", strings.NewReader(body)))
		if answer.Code != http.StatusOK {
			return fmt.Errorf("putting in stock of %s: %d %s", sku, answer.Code, answer.Body)
		}
	}
	return nil
}

func (w *world) bootShop(p *sim.Process) {
	db := p.OpenDB(w.orders, sim.DBOptions{Immediate: true})
	config := shops{Config: system.Config{
		Instance: p.Name(), StockURL: "http://stock", NotifyURL: "http://shop/callback/pay",
		MerchantID: merchant, SigningKey: []byte(signingKey), PayWindow: w.window,
		ClosePolicy: w.policy.Close, LateSuccess: w.policy.LateSuccess, CloseBy: w.policy.CloseBy,
	}}
	apply(shopSettings, w.c.Shop, &config)
	for _, name := range w.channels {
		how := w.c.personality(name)
		config.Channels = append(config.Channels, system.ChannelConfig{Name: name, URL: "http://" + name, Zone: how.Zone, AckBody: how.AckBody})
	}
	shop, err := system.New(config.Config, system.Env{
		Clock: p.Clock(), Loops: p, DB: db, HTTP: p.HTTPClient(), NewID: p.NewID, Log: p.Logger(),
		Broker: broker{p.Broker(w.broker)}, Leases: leases{p.Leases(w.leases)},
	})
	w.serve(p, err, func() error { return system.Migrate(context.Background(), db) }, func() {
		p.Serve(shop.Handler())
		shop.Start()
	})
}

func (w *world) bootChannel(p *sim.Process) {
	db := p.OpenDB(w.ledgers[p.Name()], sim.DBOptions{Immediate: true})
	bank, err := channel.New(
		channel.Config{Name: p.Name(), Personality: w.c.personality(p.Name()), SigningKey: []byte(signingKey)},
		channel.Env{Clock: p.Clock(), Loops: p, DB: db, HTTP: p.HTTPClient(), NewID: p.NewID, Log: p.Logger()})
	w.serve(p, err, func() error { return channel.Migrate(context.Background(), db) }, func() {
		p.Serve(bank.Handler())
		bank.Start()
	})
}

func (w *world) bootStock(p *sim.Process) {
	db := p.OpenDB(w.stock, sim.DBOptions{Immediate: true})
	service, err := inventory.New(inventory.Env{DB: db, NewID: p.NewID, Log: p.Logger()})
	w.serve(p, err, func() error { return inventory.Migrate(context.Background(), db) }, func() { p.Serve(service.Handler()) })
}

// serve migrates and serves, as a main function would. One that can't migrate ends,
// and is started again.
func (w *world) serve(p *sim.Process, made error, migrate func() error, serve func()) {
	if made != nil {
		w.failed = errors.Join(w.failed, made)
		return
	}
	if err := migrate(); err != nil {
		panic(fmt.Sprintf("migration failed: %v", err))
	}
	serve()
}

// Policy is how the shops are configured, as far as cases differ.
type Policy struct {
	Close       system.ClosePolicy
	LateSuccess system.LateSuccess
	CloseBy     []system.CloseBy // nil: all ways
	// MessagesLost makes the broker lose every message.
	MessagesLost bool
	// LeasesGrantAll makes the lease service grant everything to everyone.
	LeasesGrantAll bool
	// LeasesAway makes the lease service answer nobody.
	LeasesAway bool
}

// drawStart draws when a run begins: mostly in the afternoon, else so that a day of
// some channel, a month or a year ends meanwhile, or winter time in New York.
func drawStart(seed uint64) time.Time {
	starts := []time.Time{
		usualStart, usualStart, usualStart,
		time.Date(2026, 3, 2, 23, 52, 0, 0, zone),   // Shanghai's midnight
		time.Date(2026, 3, 3, 7, 50, 0, 0, zone),    // UTC's
		time.Date(2026, 3, 8, 14, 50, 0, 0, zone),   // 02:00 in New York, where summer time begins
		time.Date(2026, 12, 31, 23, 45, 0, 0, zone), // the year's
		time.Date(2027, 2, 28, 23, 55, 0, 0, zone),  // a short month's
	}
	return starts[sim.Draw(seed, "start", 0)%uint64(len(starts))]
}

// drawTimings draws how soon the channels of a run tell of a charge and pay a refund: one
// that is always as quick keeps what it tells and what it answers in one order.
func drawTimings(seed uint64, names []string) (setups []ChannelSetup) {
	for _, name := range names {
		r := sim.Rand(seed, "timings", name)
		settings := []Setting{{"notifies-after", drawMillis(r, 5*time.Second)}}
		if personality(name).RefundTakes > 0 {
			settings = append(settings, Setting{"refunds-after", drawMillis(r, 10*time.Second)})
		}
		setups = append(setups, ChannelSetup{Name: name, Settings: settings})
	}
	return setups
}

// drawShop draws how much a job of the shops reads at once: what is in a run would never
// fill a page of the usual size.
func drawShop(seed uint64) []Setting {
	if batch := sim.Draw(seed, "batch", 0) % 8; batch > 0 && batch < 6 {
		return []Setting{{"scan-batch", strconv.FormatUint(batch, 10)}}
	}
	return nil
}

func drawMillis(r *rand.Rand, longest time.Duration) string {
	return faults.Range{Min: time.Millisecond, Max: longest}.Draw(r.Uint64()).Round(time.Millisecond).String()
}

// drawPolicy draws a policy: mostly the default, sometimes each way to close alone
// with the scan, and a lease service that cannot be relied on.
func drawPolicy(seed uint64) Policy {
	r := sim.Rand(seed, "policy", "")
	p := Policy{Close: system.CloseAskFirst, LateSuccess: system.LateRefund}
	if r.IntN(2) == 0 {
		p.Close = system.CloseLocalOnly
	}
	if r.IntN(8) == 0 || p.Close == system.CloseLocalOnly && r.IntN(2) == 0 { // hardly a charge is late for who asks first
		p.LateSuccess = system.LateReinstate
	}
	ways := [][]system.CloseBy{nil, {system.CloseByScan}, {system.CloseByScan}, {system.CloseByScan, system.CloseByMessage}, {system.CloseByScan, system.CloseByExpiry}}
	p.CloseBy = slices.Clone(ways[r.IntN(len(ways))])
	p.MessagesLost = r.IntN(8) == 0
	p.LeasesGrantAll = r.IntN(4) == 0
	p.LeasesAway = !p.LeasesGrantAll && r.IntN(6) == 0
	return p
}
