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
const watchPatience = 30 * time.Second

// watchdog watches one world after the other and reports one that stands still.
type watchdog struct {
	world    atomic.Pointer[sim.World]
	command  atomic.Pointer[string] // that runs it again
	done     chan struct{}
	patience time.Duration
	report   func(text string)
}

// startWatchdog starts a watchdog that ends the program.
func startWatchdog() *watchdog {
	w := &watchdog{done: make(chan struct{}), patience: watchPatience, report: func(text string) {
		fmt.Fprintln(os.Stderr, text)
		os.Exit(Broken.ExitCode())
	}}
	go w.run()
	return w
}

// observe makes the watchdog watch a world from now on.
func (w *watchdog) observe(world *sim.World) { w.world.Store(world) }

// name says how what is watched from now on can be run again.
func (w *watchdog) name(command string) { w.command.Store(&command) }

func (w *watchdog) stop() { close(w.done) }

func (w *watchdog) run() {
	ticker := time.NewTicker(w.patience / 10)
	defer ticker.Stop()
	var world *sim.World
	var last uint64
	since := time.Now()
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
			world, last, since = now, resumes, time.Now()
			continue
		}
		if still := time.Since(since); still > w.patience {
			text := standstill(running, still)
			if command := w.command.Load(); command != nil {
				text += "\n\nreproduce with: " + *command
			}
			w.report(text)
			return
		}
	}
}

// standstill tells which task stopped its world and where it stands.
func standstill(task string, still time.Duration) string {
	buffer := make([]byte, 1<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	var stacks []string
	for _, stack := range strings.Split(string(buffer), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(stack, "sim.(*task).main") && !strings.Contains(head, "[coroutine") {
			stacks = append(stacks, stack)
		}
	}
	return fmt.Sprintf("tillstorm: the task %s has not given way for %v: it waits for a Go lock or channel, or loops without end.\n"+
		"Pool limits belong in sim.DBOptions.MaxConns; no lock may be held over a call of the database or the network.\n\n%s",
		task, still.Round(time.Millisecond), strings.Join(stacks, "\n\n"))
}
