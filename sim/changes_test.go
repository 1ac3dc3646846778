package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 17: each row that a commit changed stands in the trace once, as it then is.
func TestRowChanges(t *testing.T) { eachJournal(t, rowChanges) }

func rowChanges(t *testing.T, j sim.Journal) {
	const insert = "INSERT INTO transfers(key, cents) VALUES "
	for _, tt := range []struct {
		name       string
		statements string
		want       []string
	}{
		{"insert", insert + "('k', 1)", []string{"transfers#1 id=1 key=k cents=1"}},
		{"update", "UPDATE accounts SET cents = 5 WHERE id = 1; UPDATE accounts SET cents = 6 WHERE id = 1", []string{"accounts#1 id=1 name=A cents=5", "accounts#1 id=1 name=A cents=6"}},
		{"once in a transaction", "BEGIN; UPDATE accounts SET cents = 5; UPDATE accounts SET cents = 6 WHERE id = 1; COMMIT", []string{"accounts#2 id=2 name=B cents=5", "accounts#1 id=1 name=A cents=6"}},
		{"delete", "DELETE FROM accounts WHERE id = 2", []string{"accounts#2 deleted"}},
		{"delete all", "DELETE FROM accounts;", []string{"accounts#1 deleted", "accounts#2 deleted"}},
		{"come and gone", "BEGIN; " + insert + "('k', 1); DELETE FROM transfers; COMMIT", []string{"transfers#1 deleted"}},
		{"upsert", "INSERT INTO accounts VALUES (1, 'A', 3) ON CONFLICT (name) DO UPDATE SET cents = excluded.cents", []string{"accounts#1 id=1 name=A cents=3"}},
		{"replace", "REPLACE INTO accounts VALUES (1, 'A', 3)", []string{"accounts#1 id=1 name=A cents=3"}},
		{"rollback", "BEGIN; UPDATE accounts SET cents = 5; ROLLBACK; " + insert + "('k', 1)", []string{"transfers#1 id=1 key=k cents=1"}},
		{"failed", insert + "('k', 1), ('k', 2)", nil},
		{"failed in a transaction", "BEGIN; " + insert + "('j', 1); " + insert + "('k', 1), ('k', 2); COMMIT", []string{"transfers#1 id=1 key=j cents=1"}},
		{"failed half-way", "BEGIN; INSERT OR FAIL INTO transfers(key, cents) VALUES ('k', 1), ('k', 2); COMMIT", []string{"transfers#1 id=1 key=k cents=1"}},
		{"failed and rolled back", "BEGIN; " + insert + "('j', 1); INSERT OR ROLLBACK INTO transfers(key, cents) VALUES ('k', 1), ('k', 2)", nil},
		{"savepoint", "BEGIN; " + insert + "('j', 1); SAVEPOINT s; " + insert + "('k', 2); ROLLBACK TO s; " + insert + "('l', 3); RELEASE s; COMMIT", []string{"transfers#1 id=1 key=j cents=1", "transfers#2 id=2 key=l cents=3"}},
		{"nested savepoints", "SAVEPOINT a; " + insert + "('j', 1); SAVEPOINT b; " + insert + "('k', 2); RELEASE b; ROLLBACK TO a; " + insert + "('l', 3); RELEASE a", []string{"transfers#1 id=1 key=l cents=3"}},
		{"temporary", "CREATE TEMP TABLE accounts (id INTEGER PRIMARY KEY); INSERT INTO accounts VALUES (1); UPDATE main.accounts SET cents = 7 WHERE id = 1", []string{"accounts#1 id=1 name=A cents=7"}},
		{"dropped", "BEGIN; UPDATE accounts SET cents = 5; DROP TABLE accounts; COMMIT", nil},
		{"left open", "BEGIN; UPDATE accounts SET cents = 5", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, over(j, nil))
			d := w.bank("bank")
			w.task("n", func(p *sim.Process) {
				conn := must(p.OpenDB(d, sim.DBOptions{}).Conn(background))
				defer conn.Close()
				for _, s := range strings.Split(tt.statements, "; ") {
					conn.ExecContext(background, s)
				}
				p.Clock().Sleep(background, time.Second)
			})
			w.Run(time.Minute)
			for i := range tt.want {
				tt.want[i] = "bank." + tt.want[i]
			}
			require.Equal(t, tt.want, w.changes())
			require.Empty(t, w.story(sim.EventPanic))
		})
	}
}

func TestScriptChanges(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.task("n", func(p *sim.Process) {
		exec(background, p.OpenDB(d, sim.DBOptions{}), "UPDATE accounts SET cents = 1 WHERE id = 1; UPDATE accounts SET cents = 2 WHERE id = 2;")
	})
	w.Run(time.Minute)
	require.Equal(t, []string{"bank.accounts#1 id=1 name=A cents=1", "bank.accounts#2 id=2 name=B cents=2"}, w.changes())
}

func TestOperatorsHandIsTraced(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	w.At(time.Second, "operator", func() { require.NoError(t, d.Exec("UPDATE accounts SET cents = ? WHERE name = ?", 5, "A")) })
	w.At(time.Second, "operator", func() { require.Error(t, d.Exec("UPDATE accounts SET cents = -1")) })
	w.At(time.Second, "operator", func() { require.NoError(t, d.Exec("BEGIN IMMEDIATE")) }) // and walks away
	w.At(time.Second, "operator", func() { require.NoError(t, d.Exec(giveB)) })
	w.Run(time.Minute)
	require.Equal(t, []string{"1s operator/operator", "1s operator/operator"}, w.story(sim.EventRow))
	require.Equal(t, []string{"bank.accounts#1 id=1 name=A cents=5", "bank.accounts#2 id=2 name=B cents=110"}, w.changes())
}

// The reader of a record at its commit sees what was committed.
func TestWatcherSeesTheCommit(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	var seen []any
	w.Trace().Watch(func(r *sim.Record) {
		if r.Event == sim.EventRow {
			seen = append(seen, w.balances(d), r.Change.Int("cents"), r.Change.Text("name"))
		}
	})
	w.task("n", func(p *sim.Process) {
		p.Go("x", func(ctx context.Context) { must(0, tryTx(ctx, p.OpenDB(d, sim.DBOptions{}), takeA, giveB)) })
	})
	w.Run(time.Minute)
	require.Equal(t, []any{"A90,B110", int64(90), "A", "A90,B110", int64(110), "B"}, seen)
}
