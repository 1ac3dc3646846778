// Package checker says whether money went wrong in a run, and how much.
//
// It judges by evidence alone: the trace, the rows of the order database, of the stock
// and of the channel's ledger as they change, and the answers that left and arrived. It
// never asks the system what it thinks of itself, and it cannot know which faults
// were injected.
//
// A property is a sentence; the sentence is the error's text (see [Properties]).
// What must hold always is checked at each commit and each answer; what must hold
// in the end is checked when the run has settled. The answers about an order and about
// stock are also checked for linearizability, with faults on: an operation whose outcome
// nobody knows may have happened or not.
package checker
