package faults

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

var (
	start      = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	background = context.Background()
)

// world is a world with short words for what the tests look at.
type world struct {
	*sim.World
	t      testing.TB
	script *Script // nil if a storm rages
	shop   *sim.Database
}

// Requests are named by their path and the order in their body.
var naming = sim.Naming{Request: func(r *http.Request, body []byte) (kind, key string) { return r.URL.Path[1:], string(body) }}

func newWorld(t testing.TB, f sim.Faults) *world {
	w := &world{World: sim.New(sim.Config{Start: start, Faults: f, Naming: naming}), t: t}
	t.Cleanup(w.Close)
	return w
}

// play runs a world under a plan, as it would stand in an incident file, for an hour.
// Each line of the plan must come to pass.
func play(t *testing.T, plan string, build func(w *world)) *world {
	t.Helper()
	parsed, err := ParsePlan(plan)
	require.NoError(t, err)
	script := NewScript(parsed)
	w := newWorld(t, script)
	w.script = script
	build(w)
	script.Arm(w.World, func(p Perturbation, _ func()) { require.Fail(t, "no hands are needed", p) })
	require.Equal(t, parsed, script.Unreached(), "nothing has happened yet")
	w.Run(time.Hour)
	require.Empty(t, script.Unreached())
	require.ElementsMatch(t, parsed, PlanOf(script.Fired()), "each once")
	return w
}

// pay plays a shop at which a buyer pays orders, one each second.
func pay(t *testing.T, plan string, orders ...string) *world {
	t.Helper()
	return play(t, plan, func(w *world) { w.addShop(orders...) })
}

// unreached plays the shop under a line that must never come to pass, and returns the
// notes.
func unreached(t *testing.T, line string, orders ...string) []string {
	t.Helper()
	plan, err := ParsePlan(line)
	require.NoError(t, err)
	script := NewScript(plan)
	w := newWorld(t, script)
	w.addShop(orders...)
	script.Arm(w.World, nil)
	w.Run(time.Hour)
	require.Equal(t, plan, script.Unreached(), line)
	require.Empty(t, script.Fired(), line)
	return w.notes()
}

var shopSchema = sim.Schema{Name: "shop", Build: func(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE payments (id INTEGER PRIMARY KEY, number TEXT NOT NULL)")
	return err
}}

const insert = "-- name: InsertPayment\nINSERT INTO payments(number) VALUES (?)"

func (w *world) database() *sim.Database {
	d, err := w.Database("shop", shopSchema)
	require.NoError(w.t, err)
	return d
}

// addShop adds the nodes "shop-1", which writes a payment for each request, and
// "buyer", which waits three seconds for an answer.
func (w *world) addShop(orders ...string) {
	w.shop = w.database()
	w.Node("shop-1", func(p *sim.Process) {
		db := p.OpenDB(w.shop, sim.DBOptions{Immediate: true, BusyTimeout: second})
		p.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			number, _ := io.ReadAll(r.Body)
			if err := insertPayment(r.Context(), db, string(number)); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
	})
	w.Node("buyer", func(p *sim.Process) {
		for i, order := range orders {
			p.Go("buy("+order+")", func(ctx context.Context) {
				if i > 0 && p.Clock().Sleep(ctx, time.Duration(i)*time.Second) != nil {
					return
				}
				p.Note(order, post(ctx, p, "http://shop-1/pay", order))
			})
		}
	})
}

func insertPayment(ctx context.Context, db *sql.DB, number string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, insert, number); err != nil {
		return err
	}
	return tx.Commit()
}

// post sends a request, waits for three seconds, and tells the answer, or the reason
// why there is none.
func post(ctx context.Context, p *sim.Process, url, body string) string {
	ctx, cancel := p.Clock().WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	resp, err := p.HTTPClient().Do(r)
	if err != nil {
		for errors.Unwrap(err) != nil {
			err = errors.Unwrap(err)
		}
		return err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(nil, err)
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", string(bytes.TrimSpace(answer))))
}

// notes tells what was noted: "AT NODE WHAT: DETAIL".
func (w *world) notes() []string { return w.story(sim.EventNote) }

// story tells the records of a kind: "AT NODE OPERATION: DETAIL".
func (w *world) story(event sim.Event) (lines []string) {
	for _, r := range w.Trace().Records {
		if r.Event == event {
			line := fmt.Sprint(r.At, " ", r.Node, " ", r.Op)
			if r.Detail != "" {
				line += ": " + r.Detail
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// payments tells the orders that are paid, in the order of the payments.
func (w *world) payments() string {
	_, rows, err := w.shop.Query("SELECT coalesce(group_concat(number, ' ' ORDER BY id), '') FROM payments")
	require.NoError(w.t, err)
	return rows[0][0].(string)
}
