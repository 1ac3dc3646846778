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
// An incident is a txtar file with up to four sections below its comment:
//
//	# Late callback after close
//	-- setup --
//	policy  close local-only
//	order   A 198.00 CNY sku S1 expires 14:15:00.000
//	-- timeline --
//	14:00:00.021  buyer    creates   A
//	14:14:58.660  buyer    pays      A
//	14:15:00.315  closer   commits   A CLOSED
//	14:15:03.871  channel  callback  A paid
//	-- faults --
//	shop-1  crashes  callback(A)#1/InsertPaymentRecord:after  restarts 2s
//	-- expect --
//	order  A  stays CLOSED
//
// The setup says how the world differs from the usual one. The shops have one pay window
// for all orders, so that the deadlines of a file must be equally far from when their
// orders are created.
//
// Lines of the timeline, in the order of time, are stimuli, which the harness does, and
// pins, which hold the system's own steps until then; a time on another day than the
// first is written 2026-03-03T00:10:00.000. What a buyer sends arrives at the line's time.
// The faults are a [faults.Plan]. What the file expects is judged by the checker, besides
// the properties. 'tillstorm verbs' lists what each section may say, and
// docs/writing-incidents.md tells how to write a file.
package scenarios
