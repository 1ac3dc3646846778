package faults

import "strings"

// Placeholder is a word that stands for something in the form of a line.
type Placeholder struct {
	Word    string
	Means   string
	Example string // a line that has it
}

// Placeholders returns all, in the order in which the forms have them.
func Placeholders() []Placeholder {
	return []Placeholder{
		{"MESSAGE", "KIND(ORDER)#N, the N-th such request, or its :answer; a trace has the names (replay --trace -)",
			"network drops callback(A)#1:answer"},
		{"NODE<>NODE", "the ways between two nodes, both of them", "network parts shop-1<>wechat from 1m for 20s"},
		{"NODE>NODE", "the way from one node to another", "network cuts shop-1>wechat from 1m for 20s"},
		{"NODE", "a process: shop-1, shop-2, stock, or a channel", "clock skews shop-1 by 2m for 15m"},
		{"STEP", "TASK/OPERATION:before, or :after; a task is the MESSAGE that it serves, or JOB@TIME; a trace has the names",
			"shop-1 crashes callback(A)#1/InsertPaymentRecord:after restarts 2s"},
		{"DURATION", "a number with its unit: ms, s, m or h; from is since the start of the run", "database slows shop by 200ms from 10s for 1m30s"},
		{"NUMBER", "a whole number; of cents the amount, of ppm the parts per million", "wechat misstates-row A-1 cents 9900"},
		{"DATABASE", "shop, stock, or a channel", "database fills shop from 10s for 1m"},
		{"ZONE", "a time zone: " + strings.Join(zones, ", ") + " or any other", "clock moves shop-2 to " + zones[0]},
		{"CHANNEL", "a payment channel of the run", "wechat keeps-silent A-1"},
		{"TRADE", "ORDER-N: the order's N-th attempt to be paid", "wechat settles-late A-1 by 2m"},
		{"PATH", "the channel's requests that are concerned: " + strings.Join(paths, ", "), "wechat errs A-1 at " + paths[0] + " times 2"},
		{"DAY", "a day of the channel's bills", "wechat delays-bill 2026-03-02 by 3h"},
		{"PART", "what is wrong in the bill's row: " + strings.Join(parts, ", "), "wechat misfiles-row A-1 in " + parts[0]},
		{"DATABASE/TABLE/ORDER", "the order's row of shop/orders, shop/payment_records or shop/refunds; only to delete it, of stock/stock_journal",
			"operator edits shop/payment_records/A cents 9900 from 1h"},
	}
}
