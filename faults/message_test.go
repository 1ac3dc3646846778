package faults

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

// What the other tests of kinds are compared with.
func TestNothingGoesWrong(t *testing.T) {
	w := pay(t, "", "A", "B")
	assert.Equal(t, []string{"11.4ms buyer A: 200", "1.0114s buyer B: 200"}, w.notes())
	assert.Equal(t, "A B", w.payments())
}

func TestDrop(t *testing.T) {
	for plan, payments := range map[string]string{"network drops pay(A)#1": "", "network drops pay(A)#1:answer": "A"} {
		w := pay(t, plan, "A")
		assert.Equal(t, []string{"3s buyer A: context deadline exceeded"}, w.notes(), plan)
		assert.Equal(t, payments, w.payments(), plan)
	}
}

func TestDuplicate(t *testing.T) {
	w := pay(t, "network duplicates pay(A)#1 after 20s", "A")
	assert.Equal(t, []string{"11.4ms buyer A: 200"}, w.notes())
	assert.Equal(t, "A A", w.payments(), "this shop pays for each request")
	assert.Equal(t, []string{"5ms shop-1 pay(A)#1", "11.4ms buyer pay(A)#1:answer", "20.005s shop-1 pay(A)#1+1"}, w.story(sim.EventDeliver))
}

func TestDelay(t *testing.T) {
	w := pay(t, "network delays pay(A)#1 by 2s", "A")
	assert.Equal(t, []string{"2.005s shop-1 pay(A)#1", "2.0114s buyer pay(A)#1:answer"}, w.story(sim.EventDeliver))
	assert.Equal(t, []string{"2.0114s buyer A: 200"}, w.notes())
}

func TestLateAnswer(t *testing.T) {
	w := pay(t, "network answers-late pay(A)#1:answer by 2s", "A")
	assert.Equal(t, []string{"5ms shop-1 pay(A)#1", "2.0114s buyer pay(A)#1:answer"}, w.story(sim.EventDeliver))

	w = pay(t, "network answers-late pay(A)#1:answer by 1m", "A")
	assert.Equal(t, []string{"3s buyer A: context deadline exceeded"}, w.notes(), "nobody waits so long")
	assert.Equal(t, "A", w.payments())
}

func TestReorder(t *testing.T) {
	w := pay(t, "network reorders pay(A)#1 within 2s", "A", "B", "C")
	assert.Equal(t, "B A C", w.payments())
	w = pay(t, "network reorders pay(A)#1 within 500ms", "A", "B", "C")
	assert.Equal(t, "A B C", w.payments())
	assert.Contains(t, w.story(sim.EventDeliver), "505ms shop-1 pay(A)#1", "it has waited long enough")
}

func TestReset(t *testing.T) {
	for plan, c := range map[string]struct{ noted, payments string }{
		"network resets pay(A)#1":        {"5ms buyer A: connection reset by peer", ""},
		"network resets pay(A)#1:answer": {"11.4ms buyer A: connection reset by peer", "A"},
	} {
		w := pay(t, plan, "A")
		assert.Equal(t, []string{c.noted}, w.notes(), plan)
		assert.Equal(t, c.payments, w.payments(), plan)
	}
}
