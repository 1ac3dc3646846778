package faults

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// What concerns trades, bills and rows is done by the hands of the world: they get each
// perturbation before the world begins, and say when it has come to pass.
func TestHands(t *testing.T) {
	var text string
	for _, line := range []string{
		"wechat loses-reply A at /prepay times 2",
		"wechat errs A at /query times 1",
		"wechat limits A at /close times 3",
		"wechat settles-late A by 2m",
		"wechat lags A for 2s",
		"wechat hides A for 3s",
		"wechat tells-at-close A",
		"wechat repeats A times 2",
		"wechat disorders A by 1m",
		"wechat keeps-silent A",
		"wechat conceals-charge A",
		"wechat sends-at-most A times 1",
		"wechat names-no-trade A",
		"wechat declines-first A",
		"wechat upsets-refund A after 1m",
		"wechat closes-refund A after 1m",
		"wechat delays-bill 2026-03-01 by 3h",
		"wechat omits-row A",
		"wechat invents-row A cents 19800",
		"wechat misstates-row A cents 200",
		"wechat misfiles-row A in order",
		"wechat omits-refund A",
		"wechat invents-refund A cents 19800",
		"wechat misstates-refund A cents 200",
		"wechat misfiles-refund A in currency",
		"alipay numbers B as A",
		"operator deletes shop/payments/A from 30m",
		"operator edits shop/payments/A cents 100 from 31m",
	} {
		text += line + "\n"
	}
	plan, err := ParsePlan(text)
	require.NoError(t, err)
	for _, k := range kinds {
		if k.anchor == atTrade || k.anchor == atDay || k.anchor == atRow {
			require.Contains(t, plan, planned(plan, k.name), "the list has every kind")
		}
	}

	script := NewScript(plan)
	w := newWorld(t, script)
	w.Node("shop-1", func(*sim.Process) {})
	var handed Plan
	says := map[Kind]func(){}
	script.Arm(w.World, func(p Perturbation, fired func()) {
		handed = append(handed, p)
		says[p.Kind] = fired
	})
	assert.Equal(t, plan, handed)
	w.Run(minute)
	assert.Empty(t, script.Fired(), "the script does nothing of this by itself")
	assert.Equal(t, plan, script.Unreached())

	says[QueryLag]()
	says[RowDeleted]()
	w.Run(2 * minute)
	says[QueryLag]() // it lasts, and is counted once
	assert.Equal(t, []Firing{{planned(plan, QueryLag), minute}, {planned(plan, RowDeleted), minute}}, script.Fired())
	assert.Len(t, script.Unreached(), len(plan)-2)
	assert.NotContains(t, script.Unreached(), planned(plan, QueryLag))
}

func planned(plan Plan, kind Kind) Perturbation {
	for _, p := range plan {
		if p.Kind == kind {
			return p
		}
	}
	return Perturbation{Kind: kind}
}

// The hands get nothing of what the script does itself.
func TestHandsGetNothingElse(t *testing.T) {
	var plan Plan
	for _, k := range kinds {
		if k.anchor == atStep || k.anchor == atMessage || k.anchor == atWay || k.anchor == atDatabase || k.anchor == atNode {
			plan = append(plan, Perturbation{Kind: k.name, At: "a>b/c"})
		}
	}
	require.Len(t, plan, len(kinds)-28)
	script := NewScript(append(plan, Perturbation{Kind: "flood", At: "x"}))
	w := newWorld(t, script)
	script.Arm(w.World, func(p Perturbation, _ func()) { assert.Fail(t, "handed over", p) })
}
