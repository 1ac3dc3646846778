// Package channel emulates a payment channel: it opens trades for a merchant, lets the payer pay them, and tells the
// merchant's notify URL until somebody acknowledges.
//
// It is kept as unkind as the real ones. The ledger in its own database is the truth about money: whatever the merchant
// believes, a charge is a row in charges. A trade is charged at most once, whoever asks how often; a notification is
// committed together with its charge, is resent on the schedule of the channel's Personality, and may arrive twice,
// late, or after the merchant gave up on the order.
//
// The ledger's clock, the SQL function db_now_ms(), says when things happen and when a resend is due.
package channel
