// Package channel emulates a payment channel: it opens trades for a merchant, lets the payer pay them, tells the
// merchant's notify URL until somebody acknowledges, gives refunds, and writes daily bills.
//
// It is kept as unkind as the real ones, whose habits are data: a Personality says when a trade exists, what closing one
// answers, what an ack is, how long a refund takes. The ledger in its own database is the truth about money: whatever the
// merchant believes, a charge is a row in charges, and money went back where a row of refunds says SUCCESS. A trade is
// charged at most once, whoever asks how often, and a refund number is executed once; a notification is committed
// together with what it tells, is resent on the personality's schedule, and may arrive twice, late, or after the merchant
// gave up on the order.
//
// Nothing is drawn at random. By default a channel is punctual and reliable; what varies from trade to trade is an
// Oddity, and what is wrong with a bill an edit, which whoever plays the operator sets under /operator.
//
// The ledger's clock, the SQL function db_now_ms(), says when things happen and when something is due.
package channel
