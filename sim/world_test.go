package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tillstorm/tillstorm/sim"
)

// Trap 10: a task that waits for what no other can give is named.
func TestProgressNamesATaskThatNeverComesBack(t *testing.T) {
	w := newWorld(t, sim.Config{})
	release := make(chan struct{})
	w.task("n", func(p *sim.Process) {
		p.Go("stuck(A)", func(ctx context.Context) { p.Clock().Sleep(ctx, time.Second); <-release })
	})
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(time.Minute) }()
	require.Eventually(t, func() bool {
		before, _ := w.Progress()
		time.Sleep(10 * ms)
		after, running := w.Progress()
		return before == after && running == "n/stuck(A)#1"
	}, 10*time.Second, ms)
	close(release)
	<-ended
	_, running := w.Progress()
	require.Empty(t, running)
}

// Trap 19: events come in the order of their time, name and time of asking.
func TestEventOrder(t *testing.T) {
	type wish struct {
		at   time.Duration
		name string
		n    int
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := sim.New(sim.Config{Start: start})
		defer w.Close()
		var wishes, got []wish
		n := 0
		add := func(now time.Duration) {
			x := wish{max(now, time.Duration(rapid.IntRange(0, 5).Draw(rt, "at"))), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name"), n}
			n++
			wishes = append(wishes, x)
			w.At(x.at, x.name, func() { got = append(got, x) })
		}
		for range rapid.IntRange(0, 50).Draw(rt, "count") {
			add(0)
		}
		w.Run(2)
		require.Equal(rt, time.Duration(2), w.Now())
		for range rapid.IntRange(0, 20).Draw(rt, "later") {
			add(3)
		}
		w.Run(5)
		slices.SortFunc(wishes, func(a, b wish) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name), cmp.Compare(a.n, b.n))
		})
		require.Equal(rt, wishes, got)
	})
}

// Tasks that are ready at one instant run in the order of their nodes and names,
// whoever started them first.
func TestTiesAreBrokenByName(t *testing.T) {
	w := newWorld(t, sim.Config{})
	for _, node := range []string{"b", "a"} {
		w.task(node, func(p *sim.Process) {
			for _, name := range []string{"y", "x"} {
				p.Go(name, func(ctx context.Context) { p.Clock().Sleep(ctx, time.Second); p.Note("", "") })
			}
		})
	}
	w.Run(time.Minute)
	require.Equal(t, []string{"1s a/x#1", "1s a/y#1", "1s b/x#1", "1s b/y#1"}, w.notes())
}

func TestEveryIsNamedByItsScheduledTime(t *testing.T) {
	run := func(f *faults) []string {
		w := newWorld(t, with(f))
		w.Node("n", func(p *sim.Process) {
			p.Every("job", time.Minute, func(ctx context.Context) { p.Note("", ""); p.Clock().Sleep(ctx, 90*time.Second) })
		})
		w.Run(10 * time.Minute)
		var names []string
		for _, r := range w.Trace().Records {
			if r.Event == sim.EventNote {
				names = append(names, r.Task)
			}
		}
		return names
	}
	plain := run(nil)
	require.Len(t, plain, 5, "a run that outlasts its interval skips the next")
	require.Regexp(t, `^job@14:00:\d\d\.\d{3}$`, plain[0])
	offset := plain[0][len("job@14:00"):]
	require.Equal(t, []string{"job@14:00" + offset, "job@14:02" + offset, "job@14:04" + offset, "job@14:06" + offset, "job@14:08" + offset}, plain)
	crashed := run(crashAt("n/job@14:02" + offset + "/sleep:before"))
	require.Equal(t, []string{"job@14:00" + offset, "job@14:02" + offset, "job@14:03" + offset, "job@14:05" + offset}, crashed[:4])
}

// Identifiers are unique, and depend on the asking task alone.
func TestNewID(t *testing.T) {
	run := func(extra bool) map[string]string {
		w := newWorld(t, sim.Config{Naming: sim.Naming{Request: func(*http.Request, []byte) (string, string) { return "job", "A" }}})
		ids := map[string]string{}
		collect := func(p *sim.Process, who string) {
			for i := range 3 {
				ids[fmt.Sprint(p.Name(), who, i)] = p.NewID()
			}
		}
		for _, name := range []string{"m", "n"} {
			n := w.Node(name, func(p *sim.Process) {
				// A background task and a request of the same name.
				p.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { collect(p, "request") }))
				p.Go("job(A)", func(context.Context) { collect(p, "task") })
				if extra {
					p.Go("extra", func(context.Context) { p.NewID() })
				}
			})
			w.task("client of "+name, func(p *sim.Process) { must(post(background, p, "http://"+name+"/", "")) })
			w.At(time.Second, "crash", func() { n.Crash(time.Second) })
		}
		w.Run(500 * ms)
		first := len(ids)
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = true
		}
		w.Run(time.Minute)
		for _, id := range ids { // of the second life's tasks
			seen[id] = true
		}
		require.Equal(t, 12, first)
		require.Len(t, seen, 18)
		return ids
	}
	require.Equal(t, run(false), run(true))
}

func TestLoggerWritesWarningsToTheTrace(t *testing.T) {
	w := newWorld(t, sim.Config{})
	w.task("n", func(p *sim.Process) {
		log := p.Logger().With("order", "A").WithGroup("g").With("x", 1)
		log.Info("quiet")
		log.Warn("careful", "y", 2)
		log.Error("wrong", "err", io.EOF)
	})
	w.Run(time.Second)
	require.Equal(t, []string{
		"0s n/boot#1 WARN: careful order=A g.x=1 g.y=2", "0s n/boot#1 ERROR: wrong order=A g.x=1 g.err=EOF",
	}, w.story(sim.EventLog))
}

// What a task of a process may use, nobody else may.
func TestUseOutsideItsTasksPanics(t *testing.T) {
	w := newWorld(t, sim.Config{})
	var alien *sim.Process
	w.task("a", func(p *sim.Process) { alien = p })
	w.task("b", func(p *sim.Process) { alien.NewID() })
	w.Run(time.Second)
	require.Contains(t, strings.Join(w.story(sim.EventPanic), ""), "NewID of a used outside its tasks")
	require.Panics(t, func() { alien.NewID() })
	require.Panics(t, func() { w.Node("a", nil) })
	require.Panics(t, func() { w.Host("a") })
}

func TestCloseTwice(t *testing.T) {
	arena := sim.NewArena()
	defer arena.Close()
	first := newWorld(t, sim.Config{Arena: arena})
	first.bank("bank")
	first.Close()
	second := newWorld(t, sim.Config{Arena: arena})
	d := second.bank("bank")
	first.Close()
	require.NoError(t, d.Exec(takeA))
	second.bank("other") // must not be the same database
	require.Equal(t, "A90,B100", second.balances(d))
}
