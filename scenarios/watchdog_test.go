package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

// A task that waits for another on a Go channel stops its world: the watchdog names
// the task and shows where it stands.
func TestWatchdogNamesTheTaskThatNeverCameBack(t *testing.T) {
	reported := make(chan string)
	w := &watchdog{done: make(chan struct{}), patience: 50 * time.Millisecond, report: func(text string) { reported <- text }}
	go w.run()
	defer w.stop()
	never := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		world := sim.New(sim.Config{Start: usualStart})
		defer world.Close()
		world.Node("shop-1", func(*sim.Process) { waitForAnotherTask(never) })
		w.observe(world)
		world.Run(time.Second)
	}()
	text := <-reported
	assert.Contains(t, text, "boot#1 has not given way")
	assert.Contains(t, text, "scenarios.waitForAnotherTask")
	close(never)
	<-ended
}

func waitForAnotherTask(never chan struct{}) { <-never }
