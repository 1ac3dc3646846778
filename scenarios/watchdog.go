package scenarios

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// A task that waits for something no other task can give it stops its world for
// ever. Nothing can be done about it from outside, but it can be named.
const (
	watchInterval = time.Second
	watchPatience = 30 // intervals
)

// watchdog ends the program, with the stack of the task, when a world stands still.
type watchdog struct {
	world atomic.Pointer[sim.World]
	done  chan struct{}
}

func startWatchdog() *watchdog {
	w := &watchdog{done: make(chan struct{})}
	go w.run()
	return w
}

// observe makes the watchdog watch a world from now on.
func (w *watchdog) observe(world *sim.World) { w.world.Store(world) }

func (w *watchdog) stop() { close(w.done) }

func (w *watchdog) run() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var world *sim.World
	var last uint64
	still := 0
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		now := w.world.Load()
		if now == nil {
			continue
		}
		resumes, running := now.Progress()
		if now != world || resumes != last || running == "" {
			world, last, still = now, resumes, 0
			continue
		}
		if still++; still == watchPatience {
			fmt.Fprintln(os.Stderr, standstill(running))
			os.Exit(Broken.ExitCode())
		}
	}
}

// standstill tells which task stopped its world and where it stands.
func standstill(task string) string {
	buffer := make([]byte, 1<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	var stacks []string
	for _, stack := range strings.Split(string(buffer), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(stack, "sim.(*task).main") && !strings.Contains(head, "[coroutine") {
			stacks = append(stacks, stack)
		}
	}
	return fmt.Sprintf("tillstorm: the task %s has not given way for %d s: it waits for a Go lock or channel, or loops without end.\n"+
		"Pool limits belong in sim.DBOptions.MaxConns; no lock may be held over a call of the database or the network.\n\n%s",
		task, watchPatience, strings.Join(stacks, "\n\n"))
}
