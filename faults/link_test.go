package faults

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

const (
	lateA = "3s buyer A: context deadline exceeded"
	lateB = "4s buyer B: context deadline exceeded"
	paidA = "11.4ms buyer A: 200"
	paidB = "1.0114s buyer B: 200"
)

func TestPartition(t *testing.T) {
	for plan, c := range map[string]struct {
		notes    []string
		payments string
	}{
		"network parts shop-1<>buyer from 0s for 900ms":  {[]string{paidB, lateA}, "B"},
		"network parts buyer<>shop-1 from 0s for 900ms":  {[]string{paidB, lateA}, "B"},
		"network parts buyer<>shop-1 from 900ms for 1m":  {[]string{paidA, lateB}, "A"},
		"network parts buyer<>shop-1 from 6ms for 500ms": {[]string{paidB, lateA}, "A B"}, // the answer is lost
	} {
		w := pay(t, plan, "A", "B")
		assert.Equal(t, c.notes, w.notes(), plan)
		assert.Equal(t, c.payments, w.payments(), plan)
	}
}

func TestOneWay(t *testing.T) {
	for plan, payments := range map[string]string{
		"network cuts buyer>shop-1 from 0s for 900ms": "B",
		"network cuts shop-1>buyer from 0s for 900ms": "A B",
	} {
		w := pay(t, plan, "A", "B")
		assert.Equal(t, []string{paidB, lateA}, w.notes(), plan)
		assert.Equal(t, payments, w.payments(), plan)
	}
}

func TestClog(t *testing.T) {
	w := pay(t, "network clogs buyer>shop-1 by 2s from 0s for 900ms", "A", "B")
	assert.Equal(t, []string{paidB, "2.0114s buyer A: 200"}, w.notes())
	assert.Contains(t, w.story(sim.EventDeliver), "2.005s shop-1 pay(A)#1")

	w = pay(t, "network clogs buyer>shop-1 by 1500ms from 0s for 900ms\nnetwork clogs shop-1>buyer by 500ms from 0s for 1h", "A", "B")
	assert.Equal(t, []string{"1.5114s buyer B: 200", "2.0114s buyer A: 200"}, w.notes(), "there, and back")
}

// A way that nothing goes over while it is cut is never reached, and a way between
// other nodes is another.
func TestUnreachedWay(t *testing.T) {
	for _, line := range []string{
		"network parts buyer<>shop-1 from 10s for 10s",
		"network parts buyer<>shop-1 from 0s for 5ms",
		"network cuts shop-1>shop-2 from 0s for 1h",
		"network clogs buyer>shop by 1s from 0s for 1h",
	} {
		assert.Equal(t, []string{paidA, paidB}, unreached(t, line, "A", "B"), line)
	}
}
