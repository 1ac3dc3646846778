package sim_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/http"
	"testing"
	"time"

	sqlite3 "github.com/mattn/go-sqlite3"

	"github.com/tillstorm/tillstorm/sim"
)

// BenchmarkSwitch is one switch between two tasks.
func BenchmarkSwitch(b *testing.B) {
	b.ReportAllocs()
	w := sim.New(sim.Config{Start: start})
	defer w.Close()
	for _, name := range []string{"a", "b"} {
		w.Node(name, func(p *sim.Process) {
			for range b.N / 2 {
				p.Clock().Sleep(background, ms)
			}
		})
	}
	b.ResetTimer()
	w.Run(1 << 62)
}

const insertOne = "-- name: InsertTransfer\nINSERT INTO transfers(key, cents) VALUES (?, 1)"

// perWorld is how many inserts a world makes before the next begins.
const perWorld = 5000

func insert(db *sql.DB, n int) {
	for i := range n {
		exec(background, db, insertOne, i)
	}
}

// BenchmarkInsert/kernel to BenchmarkInsert/bare is what the kernel costs for a statement.
func BenchmarkInsert(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		db := sql.OpenDB(bare{})
		defer db.Close()
		keep := must(db.Conn(background))
		defer keep.Close()
		must(0, bankSchema.Build(background, db))
		b.ResetTimer()
		for left := b.N; left > 0; left -= perWorld {
			insert(db, min(left, perWorld))
			exec(background, db, "DELETE FROM transfers")
		}
	})
	b.Run("kernel", func(b *testing.B) {
		arena := sim.NewArena()
		defer arena.Close()
		for left := b.N; left > 0; left -= perWorld {
			w := sim.New(sim.Config{Start: start, Arena: arena})
			d := must(w.Database("bank", bankSchema))
			w.Node("n", func(p *sim.Process) { insert(p.OpenDB(d, sim.DBOptions{}), min(left, perWorld)) })
			w.Run(1 << 62)
			w.Close()
		}
	})
}

// bare opens connections as the kernel's arena does, with nothing in between.
type bare struct{}

func (bare) Connect(context.Context) (driver.Conn, error) {
	return (&sqlite3.SQLiteDriver{}).Open("file:/bare?vfs=memdb&_busy_timeout=0&_stmt_cache_size=128")
}

func (bare) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

// BenchmarkExchange is one HTTP request and its answer.
func BenchmarkExchange(b *testing.B) {
	b.ReportAllocs()
	w := sim.New(sim.Config{Start: start})
	defer w.Close()
	w.Node("server", func(p *sim.Process) { p.Serve(http.HandlerFunc(hello)) })
	w.Node("client", func(p *sim.Process) {
		for range b.N {
			must(post(background, p, "http://server/work", "hello"))
		}
	})
	b.ResetTimer()
	w.Run(1 << 62)
}

// BenchmarkWorld is a whole small world in a used arena: four transfers among faults.
func BenchmarkWorld(b *testing.B) {
	arena := sim.NewArena()
	defer arena.Close()
	steps := 0
	for i := range b.N {
		w, _ := transferWorld(b, chance(i), arena, "A", "B", "C", "D")
		steps += w.Steps()
		w.Close()
	}
	b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
	b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/float64(steps), "us/step")
}
