package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

func TestCrash(t *testing.T) {
	for plan, c := range map[string]struct{ noted, payments string }{
		"shop-1 crashes pay(A)#1/COMMIT:before restarts 2s":  {"10.4ms buyer A: connection reset by peer", ""},
		"shop-1 crashes pay(A)#1/COMMIT:after restarts 2s":   {"11.4ms buyer A: connection reset by peer", "A"},
		"shop-1 crashes pay(A)#1/receive:before restarts 2s": {"10ms buyer A: connection reset by peer", ""},
	} {
		w := pay(t, plan, "A")
		assert.Equal(t, []string{c.noted}, w.notes(), plan)
		assert.Equal(t, c.payments, w.payments(), plan)
		crash := w.script.Fired()[0].When
		assert.Contains(t, w.story(sim.EventBoot), (crash+2*second).String()+" shop-1 : life 2", plan)
		assert.Len(t, w.story(sim.EventCrash), 1, plan)
	}
}

// napping has two nodes that sleep again and again, for a second, and note it.
func napping(w *world) {
	for _, name := range []string{"shop-1", "shop-2"} {
		w.Node(name, func(p *sim.Process) {
			p.Go("nap", func(ctx context.Context) {
				for p.Clock().Sleep(ctx, second) == nil {
					p.Note("awake", "")
				}
			})
		})
	}
}

func TestCrashLoop(t *testing.T) {
	for times, deaths := range map[string]int{"1": 2, "3": 4} {
		w := play(t, "shop-1 crash-loops nap#1/sleep#5:after restarts 2s times "+times, napping)
		var died []time.Duration
		for _, r := range w.Trace().Records {
			if r.Event == sim.EventCrash {
				died = append(died, r.At)
				assert.Equal(t, "shop-1", r.Node, "the other lives on")
			}
		}
		assert.Len(t, died, deaths)
		assert.Equal(t, 5*second, died[0])
		for i, at := range died[1:] {
			assert.Greater(t, at-died[i], 2*second, "it has booted")
			assert.LessOrEqual(t, at-died[i], (2+recoverySteps/2)*second, "and not got further than that")
		}
		assert.Len(t, w.story(sim.EventBoot), 2+deaths)
	}
}

func TestSlowRestart(t *testing.T) {
	w := pay(t, "shop-1 stays-down pay(A)#1/COMMIT:before for 1500ms", "A", "B", "C")
	assert.Equal(t, []string{
		"10.4ms buyer A: connection reset by peer", "1.01s buyer B: connection refused", "2.0114s buyer C: 200",
	}, w.notes())
	assert.Equal(t, "C", w.payments())
}

func TestPause(t *testing.T) {
	w := pay(t, "shop-1 pauses pay(A)#1/COMMIT:before for 1500ms", "A", "B")
	assert.Equal(t, []string{"1.5064s shop-1 COMMIT"}, w.story(sim.EventSQL)[2:3])
	assert.Equal(t, []string{"1.5114s buyer A: 200", "1.5128s buyer B: 200"}, w.notes(), "the whole shop stands still, B's request too")
}

func TestStall(t *testing.T) {
	w := pay(t, "shop-1 stalls pay(A)#1/receive:after for 1500ms", "A", "B")
	assert.Equal(t, []string{"1.0114s buyer B: 200", "1.5114s buyer A: 200"}, w.notes(), "B's request is not held up")
}
