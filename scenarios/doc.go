// Package scenarios puts the whole order and payment system into a world, storms
// it, and judges what became of the money.
//
// [Run] is the procedure: set-up, storm, heal, settle, check. A [Case] is what a
// run is made of; a seed draws one, or an [Incident] is one. [Sweep] runs many seeds
// side by side, [Batch] many incidents; [CrashEnumeration] runs one incident with a
// crash at each of its steps.
//
// # Incident files
//
// An incident is a txtar file with up to three sections below its comment:
//
//	# Late callback after close
//	-- setup --
//	policy  close local-only
//	order   A 198.00 CNY sku S1 expires 14:15:00.000
//	-- timeline --
//	14:00:00.021  buyer  creates  A
//	14:14:58.650  buyer  pays     A
//	-- faults --
//	wechat  stalls  notify(T-A-1-1)#1/sleep:after  for 9.3s
//
// The setup says how the world differs from the usual one:
//
//	start 2026-03-02 14:00:00.000           when it begins; all clocks are UTC+8
//	policy close ask-first|local-only       and late-success refund|reinstate,
//	                                        close-by scan,message,expiry (a choice),
//	                                        messages lost, leases granted-to-all
//	stock S1 10                             what the stock service begins with
//	order A 198.00 CNY [sku S1] [quantity 2] [channel alipay] [expires 14:15:00.000]
//	must-fail DEFECT PROPERTY               what must break when the defect is planted
//
// The shops have one pay window for all orders, so that the deadlines of a file must
// be equally far from when their orders are created. The request is on its way by
// then: the database, which decides, sees the order some milliseconds later.
//
// Lines of the timeline are stimuli, in the order of time; a time on another day than
// the first is written 2026-03-03T00:10:00.000. 'tillstorm verbs' lists what they
// may say. The faults are a [faults.Plan].
package scenarios
