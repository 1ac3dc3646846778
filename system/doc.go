// Package system is an order and payment service: it takes orders, asks a payment channel to collect the money, believes
// the channel's signed callbacks, and closes what nobody paid in time.
//
// What it promises: money is never wrong, whatever is repeated, delayed, lost, reordered, or killed half-way. That rests
// on three habits, not on code order:
//
//   - A fact is one row under a unique key; an INSERT that meets the key again changes nothing, and its affected-row
//     count says so.
//   - A change of status is one conditional UPDATE, allowed by the table in order.go and logged in the same transaction.
//     When it affects no row, somebody else was first: the real status is read, and is the answer.
//   - Transactions are short and local. Nothing is sent to anybody while one is open, and nothing is acknowledged before
//     its commit.
//
// The database's own clock, the SQL function db_now_ms(), alone decides what is due and when things happened; a node's
// clock only measures timeouts and the freshness of signatures.
package system
