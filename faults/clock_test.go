package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

// readings plays two nodes under a plan and returns what the clock of "shop-1" shows at
// each of the times. That of "shop-2" must be right.
func readings(t *testing.T, plan string, at ...time.Duration) (shown []string) {
	play(t, plan, func(w *world) {
		n, other := w.Node("shop-1", func(p *sim.Process) {}), w.Node("shop-2", func(p *sim.Process) {})
		for _, when := range at {
			w.At(when, "reading", func() {
				shown = append(shown, n.Clock.Now().Format("15:04:05.000"))
				assert.Equal(t, start.Add(when), other.Clock.Now())
			})
		}
	})
	return shown
}

func TestSkew(t *testing.T) {
	assert.Equal(t, []string{"14:02:00.001", "14:11:59.000", "14:10:01.000"},
		readings(t, "clock skews shop-1 by 2m for 10m", time.Millisecond, 599*second, 601*second))
	assert.Equal(t, []string{"13:58:00.001", "14:10:01.000"},
		readings(t, "clock skews shop-1 by -2m for 10m", time.Millisecond, 601*second))
}

// The clock is wrong before the node's first task looks at it, whatever the node is called.
func TestSkewIsThereFromTheStart(t *testing.T) {
	for _, node := range []string{"alpha", "shop-1"} {
		w := play(t, "clock skews "+node+" by 2m for 10m", func(w *world) {
			w.Node(node, func(p *sim.Process) { p.Note("boots", p.Clock().Now().Format("15:04:05")) })
		})
		assert.Equal(t, []string{"0s " + node + " boots: 14:02:00"}, w.notes())
	}
}

func TestDrift(t *testing.T) {
	assert.Equal(t, []string{"14:01:40.100", "14:10:01.000"},
		readings(t, "clock drifts shop-1 ppm 1000 for 10m", 100*second, 601*second))
	assert.Equal(t, []string{"14:01:39.900", "14:10:01.000"},
		readings(t, "clock drifts shop-1 ppm -1000 for 10m", 100*second, 601*second))
}

func TestJump(t *testing.T) {
	assert.Equal(t, []string{"14:00:59.000", "13:56:02.000", "14:01:59.000", "14:06:01.000"},
		append(readings(t, "clock jumps shop-1 by -5m from 1m for 5m", 59*second, 62*second),
			readings(t, "clock jumps shop-1 by 1m from 59s for 5m", 59*second, 361*second)...))
}

func TestZone(t *testing.T) {
	assert.Equal(t, []string{"09:30:00.000"}, readings(t, "clock moves shop-1 to America/New_York", 30*minute))

	w := play(t, "clock moves shop-1 to Asia/Tokyo", func(w *world) {
		w.Node("shop-1", func(p *sim.Process) {
			now := p.Clock().Now()
			p.Note("shows", now.Format(time.RFC3339))
			assert.Equal(t, start.UnixMilli(), now.UnixMilli(), "it is the same instant")
		})
	})
	assert.Equal(t, []string{"0s shop-1 shows: 2026-03-01T23:00:00+09:00"}, w.notes())
}

// A clock of a node that is not there is never reached.
func TestUnreachedClock(t *testing.T) {
	assert.Equal(t, []string{paidA}, unreached(t, "clock skews shop-7 by 2m for 10m", "A"))
	assert.Equal(t, []string{paidA}, unreached(t, "clock jumps shop-1 by 2m from 2h for 10m", "A"), "the world ends before")
}
