// Package system is an order and payment service: it takes orders, freezes their stock, asks payment channels to collect
// the money, believes the channels' signed callbacks, closes what nobody paid in time, and gives back what isn't ours.
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
// # One way for each thing
//
// A charge becomes a fact in settleCharge, whether its callback came, a query found it, or a channel wouldn't close a
// paid trade. An order is closed in closeOrder, whoever wants it: scan, delayed message, expired key, buyer, or a lack of
// stock. A refund moves in writeRefund, by reply, notification or query. So a guard stands once, and for all paths.
//
// What a channel doesn't answer isn't known: not paid, not failed, not closed, but to be asked again. An attempt is asked
// about until its channel can take no money for it any more (next_query_ms is NULL then), whatever becomes of the order.
// Every number that a channel or the stock service sees follows from a row, so that a retry means the same thing.
//
// What follows from a fact, for the stock service or a channel, is a message in the outbox, written by the fact's
// transaction, tried at once, and tried again by the relay until it is done or parked with an alert. Leases, delayed
// messages and expiring keys make things punctual and quiet. Without any of them, and with leases that are granted to
// everybody, everything stays correct.
//
// # Policies
//
// [ClosePolicy], [LateSuccess], [CloseBy] and [Consistency] can be chosen for each run, to show what each way alone can
// and can't carry. By [LateReinstate] a late charge opens its closed order again, unless the buyer has cancelled it: the
// one transition that the table in order.go doesn't have.
//
// Idempotency keys and delivered messages are deleted after a week, when no client and no channel repeats itself any more.
// Everything else is kept.
//
// The database's own clock, the SQL function db_now_ms(), alone decides what is due and when things happened; a node's
// clock only measures timeouts and the freshness of signatures.
package system
