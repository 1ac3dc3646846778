package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
)

// The zone of every clock on the wall. It is fixed, so that no zone database is read.
var zone = time.FixedZone("UTC+8", 8*60*60)

// start is when every world begins.
var start = time.Date(2026, 3, 2, 14, 0, 0, 0, zone)

const (
	merchant   = "M1"
	signingKey = "a shared key of the simulated world"
)

// world is the system under test, in a simulated world.
type world struct {
	*sim.World
	evidence *checker.Evidence
	window   time.Duration
	orders   *sim.Database
	ledger   *sim.Database
	failed   error // the system could not be built: a mistake in the wiring
}

// build wires two shops over one database, a channel, and buyers.
func build(c *Case, arena *sim.Arena, f sim.Faults) (*world, error) {
	w := &world{World: sim.New(sim.Config{
		Start: start, Arena: arena, Faults: f, Tape: c.tape,
		Naming: sim.Naming{Request: nameRequest, Statement: statementKey(c.Workload)},
	})}
	w.window = cmp.Or(c.PayWindow, payWindow)
	w.evidence = checker.New(w.Trace())
	var errOrders, errLedger error
	w.orders, errOrders = w.Database("shop", sim.Schema{Name: "shop", Build: system.Migrate})
	w.ledger, errLedger = w.Database("channel", sim.Schema{Name: "channel", Build: channel.Migrate})
	if err := errors.Join(errOrders, errLedger); err != nil {
		w.Close()
		return nil, err
	}
	w.Node("channel", w.bootChannel)
	w.Host("shop", w.Node("shop-1", w.bootShop), w.Node("shop-2", w.bootShop))
	w.Node("buyer", func(p *sim.Process) { startBuyers(p, c.Workload) })
	return w, nil
}

func (w *world) bootShop(p *sim.Process) {
	db := p.OpenDB(w.orders, sim.DBOptions{Immediate: true})
	shop, err := system.New(system.Config{
		Instance: p.Name(), ChannelURL: "http://channel", NotifyURL: "http://shop/callback/pay",
		MerchantID: merchant, SigningKey: []byte(signingKey), PayWindow: w.window,
	}, system.Env{Clock: p.Clock(), Loops: p, DB: db, HTTP: p.HTTPClient(), NewID: p.NewID, Log: p.Logger()})
	if err != nil {
		w.failed = err
		return
	}
	if err := system.Migrate(context.Background(), db); err != nil {
		p.Logger().Error("migration failed", "error", err)
		return
	}
	p.Serve(shop.Handler())
	shop.Start()
}

func (w *world) bootChannel(p *sim.Process) {
	db := p.OpenDB(w.ledger, sim.DBOptions{Immediate: true})
	bank, err := channel.New(channel.Config{SigningKey: []byte(signingKey)},
		channel.Env{Clock: p.Clock(), Loops: p, DB: db, HTTP: p.HTTPClient(), NewID: p.NewID, Log: p.Logger()})
	if err != nil {
		w.failed = err
		return
	}
	p.Serve(bank.Handler())
	bank.Start()
}

// nameRequest names a request after what it is for, and keys it by the order.
func nameRequest(r *http.Request, body []byte) (kind, key string) {
	var about struct{ OrderNo, OutTradeNo string }
	_ = json.Unmarshal(body, &about)
	if key = about.OrderNo; key == "" {
		key = orderOf(about.OutTradeNo)
	}
	switch path := r.URL.Path; {
	case path == "/orders":
		return "create", key
	case path == "/callback/pay":
		return "callback", key
	case strings.HasPrefix(path, "/orders/"):
		return "read", strings.TrimPrefix(path, "/orders/")
	default:
		return strings.TrimPrefix(path, "/"), key
	}
}

// orderOf returns the order that an out-trade number belongs to.
func orderOf(outTradeNo string) string {
	order, _, _ := strings.Cut(outTradeNo, "-")
	return order
}

// statementKey finds the order among a statement's arguments, as such or within an
// out-trade number or a transaction number (T-A-1-1).
func statementKey(w Workload) func(string, []driver.NamedValue) string {
	return func(_ string, args []driver.NamedValue) string {
		for _, a := range args {
			text, ok := a.Value.(string)
			if !ok {
				continue
			}
			if order := orderOf(strings.TrimPrefix(text, "T-")); w.Amounts[order] > 0 {
				return order
			}
		}
		return ""
	}
}

// startBuyers starts one task for each operation.
func startBuyers(p *sim.Process, w Workload) {
	for _, op := range w.Operations {
		p.Go(string(op.Verb)+"("+op.Order+")", func(ctx context.Context) {
			if p.Clock().Sleep(ctx, op.At-p.Clock().Now().Sub(start)) != nil {
				return
			}
			perform(ctx, p, w, op)
		})
	}
}

const (
	patience = 5 * time.Second // of a buyer with one request
	tries    = 4
)

func perform(ctx context.Context, p *sim.Process, w Workload, op Operation) {
	switch op.Verb {
	case Reads:
		request(ctx, p, http.MethodGet, "http://shop/orders/"+op.Order, nil)
	case Creates:
		insist(ctx, p, "http://shop/orders", map[string]any{"orderNo": op.Order, "amountCents": w.Amounts[op.Order]})
	case Pays:
		insist(ctx, p, "http://channel/pay", map[string]any{"outTradeNo": op.Order + "-1"})
	}
}

// insist repeats a request, unchanged, until it gets a definite answer.
func insist(ctx context.Context, p *sim.Process, url string, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // a body of the harness's own
	}
	for try := range tries {
		status := request(ctx, p, http.MethodPost, url, text)
		if status != 0 && status < 500 && status != http.StatusAccepted {
			return
		}
		if p.Clock().Sleep(ctx, time.Second<<try) != nil {
			return
		}
	}
}

// request returns the answer's status, 0 if there is none.
func request(ctx context.Context, p *sim.Process, method, url string, body []byte) int {
	ctx, cancel := p.Clock().WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		panic(fmt.Sprintf("scenarios: %v", err)) // a URL of the harness's own
	}
	resp, err := p.HTTPClient().Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}
