package sim_test

import (
	"context"
	"database/sql/driver"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 20: a statement is named by its comment, or by its verb and table.
func TestStatementNames(t *testing.T) {
	f := &faults{}
	w := newWorld(t, with(f))
	d := w.bank("bank")
	var queries []string
	for query, want := range map[string]string{
		"-- name: Pay\nUPDATE t SET x = 1":                    "Pay",
		"-- name: Pay :one\nSELECT 1":                         "Pay",
		"  --name:Pay :exec\n SELECT 1":                       "Pay",
		"-- why\n-- name: Pay\nSELECT 1":                      "Pay",
		"SELECT * FROM orders WHERE x":                        "SELECT orders",
		"select\n\t*\nfrom\n\torders":                         "SELECT orders",
		"SELECT 1":                                            "SELECT",
		"SELECT 'a -- b' FROM orders":                         "SELECT orders",
		"SELECT 'x from y', 'it''s' FROM orders":              "SELECT orders",
		"/* from a */ SELECT * -- from b\nFROM orders":        "SELECT orders",
		"INSERT INTO orders VALUES (1)":                       "INSERT orders",
		"INSERT OR REPLACE INTO orders VALUES (1)":            "INSERT orders",
		"REPLACE INTO orders VALUES (1)":                      "REPLACE orders",
		"INSERT INTO orders SELECT * FROM other":              "INSERT orders",
		"UPDATE orders SET x = (SELECT 1 FROM other)":         "UPDATE orders",
		"UPDATE OR IGNORE orders SET x = 1":                   "UPDATE orders",
		"DELETE FROM orders":                                  "DELETE orders",
		"DELETE FROM main.orders WHERE x":                     "DELETE orders",
		"CREATE TABLE orders (x)":                             "CREATE orders",
		"CREATE TABLE IF NOT EXISTS orders (x)":               "CREATE orders",
		"DROP TABLE IF EXISTS orders":                         "DROP orders",
		"PRAGMA user_version = 3":                             "PRAGMA user_version",
		"PRAGMA table_info(orders)":                           "PRAGMA table_info",
		"WITH x AS (SELECT * FROM orders) SELECT * FROM x":    "WITH orders",
		`UPDATE "my orders" SET x = 1`:                        "UPDATE my orders",
		"UPDATE `orders` SET x = 1":                           "UPDATE orders",
		"UPDATE [my orders] SET x = 1":                        "UPDATE my orders",
		"BEGIN\nIMMEDIATE":                                    "BEGIN",
		"COMMIT;":                                             "COMMIT",
		"":                                                    "",
		"VACUUM":                                              "VACUUM",
		"INSERT INTO orders VALUES ('-- name: No\n'); COMMIT": "INSERT orders",
	} {
		queries = append(queries, query, want)
	}
	got := map[string]string{}
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		for query := range slices.Chunk(queries, 2) {
			p.Go("run", func(ctx context.Context) {
				conn := must(db.Conn(ctx))
				defer conn.Close()
				before := len(f.seen)
				conn.ExecContext(ctx, query[0])
				_, name, _ := strings.Cut(f.seen[before][len("n/"):], "/")
				got[query[0]] = strings.TrimSuffix(name, ":before")
			})
		}
	})
	w.Run(time.Minute)
	for query := range slices.Chunk(queries, 2) {
		require.Equal(t, query[1], got[query[0]], query[0])
	}
}

// The kernel counts occurrences by operation and key, within the task.
func TestOperationsAreCountedByKey(t *testing.T) {
	f := &faults{}
	w := newWorld(t, sim.Config{Faults: f, Naming: sim.Naming{
		Request: func(r *http.Request, _ []byte) (kind, key string) { return "ask", r.URL.Query().Get("key") },
		Statement: func(_ string, args []driver.NamedValue) string {
			if len(args) == 0 {
				return ""
			}
			return args[0].Value.(string)
		},
	}})
	d := w.bank("bank")
	w.Node("server", func(p *sim.Process) { p.Serve(http.NotFoundHandler()) })
	w.task("n", func(p *sim.Process) {
		db := p.OpenDB(d, sim.DBOptions{})
		p.Go("job(A)", func(ctx context.Context) {
			tx := begin(ctx, db)
			defer tx.Rollback()
			for _, key := range []string{"A", "B", "A", "B", "C"} {
				exec(ctx, tx, "-- name: Touch\nUPDATE accounts SET cents = 1 WHERE name = ?", key)
			}
			must(0, tx.Commit())
			for _, key := range []string{"A", "B", "B"} {
				must(post(ctx, p, "http://server/?key="+key, ""))
			}
			p.Go("job(A)", func(context.Context) {})
			p.Go("job(B)", func(context.Context) {})
		})
	})
	w.Run(time.Minute)
	var ops []string
	for _, step := range f.seen {
		if name, ok := strings.CutPrefix(step, "n/job(A)#1/"); ok && strings.HasSuffix(step, ":before") {
			ops = append(ops, strings.TrimSuffix(name, ":before"))
		}
	}
	require.Equal(t, []string{
		"BEGIN", "Touch", "Touch(B)", "Touch#2", "Touch(B)#2", "Touch(C)", "COMMIT(C)", "ask", "ask(B)", "ask(B)#2",
	}, ops)
	var sent []string
	for _, r := range w.Trace().Records {
		if r.Event == sim.EventSend {
			sent = append(sent, r.Op)
		}
	}
	require.Equal(t, []string{"ask(A)#1", "ask(B)#1", "ask(B)#2"}, sent)
	require.Contains(t, f.seen, "server/ask(B)#2/answer:after")
}

func TestDefaultRequestNames(t *testing.T) {
	w := newWorld(t, sim.Config{})
	w.Node("server", func(p *sim.Process) { p.Serve(http.NotFoundHandler()) })
	w.task("n", func(p *sim.Process) {
		must(post(background, p, "http://server/a?b=c", ""))
		must(post(background, p, "http://server/a", ""))
	})
	w.Run(time.Minute)
	require.Equal(t, "POST /a#1", w.Trace().Records[2].Op)
	require.Contains(t, w.story(sim.EventSend), "10ms n/boot#1 POST /a#2")
}

// hashes checks each name it sees against its hash.
type hashes struct {
	t     require.TestingT
	seen  int
	chaos chance
}

func (h *hashes) Step(s sim.Step) sim.Strike {
	h.seen++
	require.Equal(h.t, sim.HashName(s.Name()), s.Hash(), s.Name())
	return h.chaos.Step(s)
}

func (h *hashes) Message(m *sim.Message) sim.Passage {
	h.seen++
	require.Equal(h.t, sim.HashName(m.Name()), m.Hash(), m.Name())
	return h.chaos.Message(m)
}

func TestHashesAreOfTheNames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z]{1,3}`), 1, 3, rapid.ID).Draw(rt, "keys")
		h := &hashes{t: rt, chaos: chance(rapid.Uint64().Draw(rt, "seed"))}
		w, _ := transferWorld(t, h, nil, keys...)
		w.Close()
		require.Positive(rt, h.seen)
	})
	rapid.Check(t, func(rt *rapid.T) {
		m := &sim.Message{Exchange: rapid.String().Draw(rt, "exchange"), Leg: rapid.SampledFrom([]sim.Leg{sim.Request, sim.Answer}).Draw(rt, "leg")}
		require.Equal(rt, sim.HashName(m.Name()), m.Hash())
	})
}

// A draw is a function of what it is for.
func TestDrawsAreKeyed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed, stream, name := rapid.Uint64().Draw(rt, "seed"), rapid.String().Draw(rt, "stream"), rapid.String().Draw(rt, "name")
		n := sim.Draw(seed, stream, sim.HashName(name))
		require.Equal(rt, n, sim.Draw(seed, stream, sim.HashName(name)))
		require.NotEqual(rt, n, sim.Draw(seed+1, stream, sim.HashName(name)))
		require.NotEqual(rt, n, sim.Draw(seed, stream+"x", sim.HashName(name)))
		require.NotEqual(rt, n, sim.Draw(seed, stream, sim.HashName(name+"x")))
		require.Equal(rt, sim.Rand(seed, stream, name).Uint64(), sim.Rand(seed, stream, name).Uint64())
	})
}
