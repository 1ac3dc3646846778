package channel

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// billReady is how long after the end of a day its bill can be had.
const billReady = 10 * time.Hour

// maxBillPage keeps a page within what a client reads of a body.
const maxBillPage = 100

type billRequest struct {
	Date  string `json:"date"`  // 2026-01-31, a day in the channel's zone
	After string `json:"after"` // the key that the page before gave as next
	Limit int    `json:"limit"` // rows, at most and by default maxBillPage
}

// billRow is a charge of the day, or a refund that was accepted on it.
type billRow struct {
	Kind        string `json:"kind"`
	ChannelTxn  string `json:"channelTxn"`
	RefundNo    string `json:"refundNo,omitempty"`
	OutTradeNo  string `json:"outTradeNo"`
	OrderNo     string `json:"orderNo"`
	AmountCents int64  `json:"amountCents"`
	FeeCents    int64  `json:"feeCents"` // of a refund: what of the fee comes back
	Currency    string `json:"currency"`
	AtMs        int64  `json:"atMs"`
}

// billPage is a part of a bill. Next is empty when nothing comes after it.
type billPage struct {
	Rows []billRow `json:"rows"`
	Next string    `json:"next"`
}

// handleBill answers POST /bill with a page of a day's bill. Before the bill is ready that is a 409 BILL_NOT_READY,
// which is not an empty bill. The first demand makes it; what the ledger learns later about the day changes nothing.
func (c *Channel) handleBill(r *http.Request) (any, error) {
	var request billRequest
	if err := httpjson.Read(r, &request); err != nil {
		return nil, err
	}
	day, err := time.ParseInLocation(time.DateOnly, request.Date, c.cfg.Personality.Zone)
	if err != nil {
		return nil, paramError("date must be like 2026-01-31")
	}
	after := 0
	if request.After != "" {
		if after, err = strconv.Atoi(request.After); err != nil {
			return nil, paramError("after must be a key that this channel gave")
		}
	}
	if request.Limit < 1 || request.Limit > maxBillPage {
		request.Limit = maxBillPage
	}
	if err := c.makeBill(r.Context(), request.Date, day); err != nil {
		return nil, err
	}
	return c.readBill(r.Context(), request.Date, after, request.Limit)
}

const selectBillState = `-- name: ReadBillState
SELECT (SELECT count(*) FROM bills WHERE bill_date = ?1), db_now_ms(),
       (SELECT coalesce(max(delay_ms), 0) FROM bill_delays WHERE bill_date = ?1)`

const insertBill = `-- name: InsertBill
INSERT INTO bills (bill_date, made_ms) VALUES (?1, db_now_ms())
ON CONFLICT (bill_date) DO NOTHING`

// The bill's rows are the ledger's, but for what an operator has planted. A closed refund moved no money.
const insertBillRows = `-- name: InsertBillRows
WITH ledger (reference, kind, channel_txn, refund_no, out_trade_no, order_no, amount_cents, fee_cents, currency, at_ms) AS (
    SELECT channel_txn, 'charge', channel_txn, '', out_trade_no, order_no, amount_cents, fee_cents, currency, charged_ms
    FROM charges WHERE charged_ms >= ?2 AND charged_ms < ?3
    UNION ALL
    SELECT refund_no, 'refund', channel_txn, refund_no, out_trade_no, order_no, amount_cents, fee_cents, currency, accepted_ms
    FROM refunds WHERE accepted_ms >= ?2 AND accepted_ms < ?3 AND state <> 'CLOSED'
), edited AS (
    SELECT l.kind, l.channel_txn, l.refund_no, coalesce(nullif(e.out_trade_no, ''), l.out_trade_no) AS out_trade_no,
           coalesce(nullif(e.order_no, ''), l.order_no) AS order_no, coalesce(nullif(e.amount_cents, 0), l.amount_cents) AS amount_cents,
           l.fee_cents, coalesce(nullif(e.currency, ''), l.currency) AS currency, l.at_ms
    FROM ledger l LEFT JOIN bill_edits e ON e.reference = l.reference
    WHERE coalesce(e.action, '') <> 'hide'
    UNION ALL
    SELECT kind, CASE kind WHEN 'charge' THEN reference ELSE '' END, CASE kind WHEN 'refund' THEN reference ELSE '' END,
           out_trade_no, order_no, amount_cents, 0, currency, at_ms
    FROM bill_edits WHERE action = 'add' AND at_ms >= ?2 AND at_ms < ?3
)
INSERT INTO bill_rows (bill_date, position, kind, channel_txn, refund_no, out_trade_no, order_no, amount_cents, fee_cents,
                       currency, at_ms)
SELECT ?1, row_number() OVER (ORDER BY at_ms, kind, channel_txn, refund_no), kind, channel_txn, refund_no, out_trade_no,
       order_no, amount_cents, fee_cents, currency, at_ms
FROM edited`

// makeBill makes a day's bill unless there is one.
func (c *Channel) makeBill(ctx context.Context, date string, day time.Time) error {
	var made int
	var nowMs, delayMs int64
	if err := c.env.DB.QueryRowContext(ctx, selectBillState, date).Scan(&made, &nowMs, &delayMs); err != nil {
		return fmt.Errorf("read state of bill %s: %w", date, err)
	}
	if made > 0 {
		return nil
	}
	end := day.AddDate(0, 0, 1)
	if nowMs < end.Add(billReady).UnixMilli()+delayMs {
		return httpjson.Errorf(http.StatusConflict, "BILL_NOT_READY", "the bill of %s is not made yet", date)
	}
	return c.inTx(ctx, func(tx *sql.Tx) error {
		isNew, err := sqldb.Changed(ctx, tx, insertBill, date)
		if err != nil {
			return fmt.Errorf("insert bill %s: %w", date, err)
		}
		if !isNew {
			return nil
		}
		if _, err := tx.ExecContext(ctx, insertBillRows, date, day.UnixMilli(), end.UnixMilli()); err != nil {
			return fmt.Errorf("insert rows of bill %s: %w", date, err)
		}
		return nil
	})
}

const listBillRows = `-- name: ListBillRows
SELECT position, kind, channel_txn, refund_no, out_trade_no, order_no, amount_cents, fee_cents, currency, at_ms
FROM bill_rows WHERE bill_date = ?1 AND position > ?2
ORDER BY position LIMIT ?3`

func (c *Channel) readBill(ctx context.Context, date string, after, limit int) (billPage, error) {
	page := billPage{Rows: []billRow{}}
	rows, err := c.env.DB.QueryContext(ctx, listBillRows, date, after, limit)
	if err != nil {
		return page, fmt.Errorf("list bill %s: %w", date, err)
	}
	defer rows.Close()
	var position int
	for rows.Next() {
		var r billRow
		if err := rows.Scan(&position, &r.Kind, &r.ChannelTxn, &r.RefundNo, &r.OutTradeNo, &r.OrderNo, &r.AmountCents,
			&r.FeeCents, &r.Currency, &r.AtMs); err != nil {
			return page, fmt.Errorf("read bill %s: %w", date, err)
		}
		page.Rows = append(page.Rows, r)
	}
	if len(page.Rows) == limit {
		page.Next = strconv.Itoa(position)
	}
	return page, rows.Err()
}
