package system

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// paymentRecord is what a stored charge says about itself: which order it is for, what it met there (applied, late or
// surplus), and the order's status right after it.
type paymentRecord struct {
	orderNo     string
	disposition string
	orderStatus Status
}

// What a charge may meet.
const (
	applied = "applied" // the order waits for it, and is paid by it
	late    = "late"    // the order is closed
	surplus = "surplus" // the order is paid already
)

// The record's disposition is decided inside the statement that makes it, by the status which the order has at that
// moment, so that a record never has to be touched again.
const insertPaymentRecord = `-- name: InsertPaymentRecord
INSERT INTO payment_records (channel, channel_txn, order_no, out_trade_no, amount_cents, currency,
                             disposition, order_status, recorded_ms)
SELECT ?2, ?3, order_no, ?4, ?5, ?6,
       CASE status WHEN 'CREATED' THEN 'applied' WHEN 'CLOSED' THEN 'late' ELSE 'surplus' END,
       CASE status WHEN 'CREATED' THEN 'PAID' ELSE status END,
       db_now_ms()
FROM orders WHERE order_no = ?1
ON CONFLICT (channel, channel_txn) DO NOTHING`

// insertRecord reports whether the charge is new; a known channel transaction changes nothing.
func insertRecord(ctx context.Context, tx *sql.Tx, c charge) (bool, error) {
	isNew, err := sqldb.Changed(ctx, tx, insertPaymentRecord,
		c.OrderNo, c.Channel, c.ChannelTxn, c.OutTradeNo, c.AmountCents, c.Currency)
	if err != nil {
		return false, fmt.Errorf("insert record of charge %s: %w", c.ChannelTxn, err)
	}
	return isNew, nil
}

const readPaymentRecord = `-- name: ReadPaymentRecord
SELECT order_no, out_trade_no, amount_cents, currency, disposition, order_status
FROM payment_records WHERE channel = ?1 AND channel_txn = ?2`

// readRecord reads the charge's record, and refuses a charge that contradicts it.
func readRecord(ctx context.Context, tx *sql.Tx, c charge) (paymentRecord, error) {
	var record paymentRecord
	var outTradeNo string
	var money Money
	err := tx.QueryRowContext(ctx, readPaymentRecord, c.Channel, c.ChannelTxn).Scan(&record.orderNo, &outTradeNo,
		&money.AmountCents, &money.Currency, &record.disposition, &record.orderStatus)
	if err != nil {
		return record, fmt.Errorf("read record of charge %s: %w", c.ChannelTxn, err)
	}
	if record.orderNo != c.OrderNo || outTradeNo != c.OutTradeNo || money != c.Money {
		return record, httpjson.Errorf(http.StatusConflict, "transaction_conflict",
			"transaction %s of %s is known with other content", c.ChannelTxn, c.Channel)
	}
	return record, nil
}
