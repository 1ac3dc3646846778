package sim_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// transfers names requests and statements by the transfer's key.
var transfers = sim.Naming{
	Request: func(_ *http.Request, body []byte) (kind, key string) { return "transfer", string(body) },
	Statement: func(name string, args []driver.NamedValue) string {
		if len(args) == 1 {
			key, _ := args[0].Value.(string)
			return key
		}
		return ""
	},
}

// transfer moves 10 cents from A to B, once for each key.
func transfer(ctx context.Context, db *sql.DB, key string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRowContext(ctx, "-- name: Seen\nSELECT count(*) FROM transfers WHERE key = ?", key).Scan(&n); err != nil || n > 0 {
		return errors.Join(err, tx.Commit())
	}
	for _, s := range []string{takeA, giveB} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "-- name: Done\nINSERT INTO transfers(key, cents) VALUES (?, 10)", key); err != nil {
		return err
	}
	return tx.Commit()
}

// transferWorld has a bank and a client that repeats each transfer until it is acknowledged.
func transferWorld(t testing.TB, f sim.Faults, arena *sim.Arena, keys ...string) (*world, *sim.Database) {
	w := newWorld(t, sim.Config{Faults: f, Naming: transfers, Arena: arena})
	d := w.bank("bank")
	w.Node("bank", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{Immediate: true, MaxConns: 2})
		p.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := transfer(r.Context(), db, string(must(io.ReadAll(r.Body)))); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		p.Every("audit", time.Second, func(ctx context.Context) { must(0, read(ctx, db)) })
	})
	w.Node("client", func(p *sim.Process) {
		for _, key := range keys {
			p.Go("send("+key+")", func(ctx context.Context) {
				for {
					limited, cancel := p.Clock().WithTimeout(ctx, time.Second)
					got, err := post(limited, p, "http://bank/", key)
					cancel()
					if err == nil && strings.HasPrefix(got, "200") {
						p.Note("acknowledged", key)
						return
					}
					must(0, p.Clock().Sleep(ctx, 300*ms))
				}
			})
		}
	})
	w.Run(10 * time.Second)
	return w, d
}

// Trap 13: with a crash at any step, no money is made or lost and what was
// acknowledged is done, once.
func TestTransferSurvivesACrashAtEachStep(t *testing.T) {
	eachJournal(t, transferSurvivesACrashAtEachStep)
}

func transferSurvivesACrashAtEachStep(t *testing.T, j sim.Journal) {
	arena := j.NewArena()
	defer arena.Close()
	plain := &faults{}
	w, _ := transferWorld(t, plain, arena, "K")
	w.Close()
	steps := plain.seen
	require.Greater(t, len(steps), 30)
	for _, step := range steps {
		w, d := transferWorld(t, crashAt(step), arena, "K")
		require.Len(t, w.story(sim.EventCrash), 1, step)
		require.Equal(t, "A90,B110", w.balances(d), step)
		require.Equal(t, int64(1), w.value(d, "SELECT count(*) FROM transfers"), step)
		require.NotEmpty(t, w.notes(), step)
		w.Close()
	}
}

// Trap 14: faults anchored to names strike at the same steps when one is taken out.
func TestFaultsAreIndependent(t *testing.T) {
	anchors := []string{
		"client/send(A)#1/transfer:before", "bank/transfer(A)#1/Seen:after", "bank/audit@14:00:02.%/ReadA:before",
		"client/send(C)#1/transfer:after", "bank/transfer(B)#1/COMMIT:before",
	}
	run := func(without int) (struck []string) {
		f := &faults{}
		f.step = func(s sim.Step) sim.Strike {
			name := s.Name()
			for i, anchor := range anchors {
				before, after, _ := strings.Cut(anchor, "%")
				if i != without && strings.HasPrefix(name, before) && strings.HasSuffix(name, after) && !slices.Contains(struck, anchor) {
					struck = append(struck, anchor)
					return sim.Strike{Crash: i == 2, Stall: 700 * ms, Restart: 100 * ms}
				}
			}
			return sim.Strike{}
		}
		w, d := transferWorld(t, f, nil, "A", "B", "C")
		require.Equal(t, "A70,B130", w.balances(d))
		slices.Sort(struck)
		return struck
	}
	all := run(-1)
	require.Len(t, all, len(anchors))
	for i, anchor := range anchors {
		rest := slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == anchor })
		require.Equal(t, rest, run(i), "without %s", anchor)
	}
}

// A request that a crash held back is not counted.
func TestExchangesAreNumberedAsTheyAreSent(t *testing.T) {
	w, _ := transferWorld(t, crashAt("client/send(A)#1/transfer:before"), nil, "A", "B")
	var sent []string
	for _, r := range w.Trace().Records {
		if r.Event == sim.EventSend {
			sent = append(sent, r.Message.Exchange)
		}
	}
	require.Equal(t, []string{"transfer(A)#1", "transfer(B)#1"}, sent)
}
