-- name: CreateLedger1
-- Every *_ms is Unix milliseconds by db_now_ms(), the ledger's clock.

-- What a merchant asked us to collect. The out-trade number is the merchant's.
CREATE TABLE trades (
    out_trade_no TEXT    NOT NULL PRIMARY KEY,
    merchant_id  TEXT    NOT NULL,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    notify_url   TEXT    NOT NULL,
    state        TEXT    NOT NULL, -- NOTPAY, SUCCESS, CLOSED
    prepay_token TEXT    NOT NULL,
    created_ms   INTEGER NOT NULL
) STRICT;

-- Append-only: the payer's money was taken.
CREATE TABLE charges (
    channel_txn  TEXT    NOT NULL PRIMARY KEY,
    out_trade_no TEXT    NOT NULL REFERENCES trades,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    charged_ms   INTEGER NOT NULL
) STRICT;

CREATE INDEX charges_by_trade ON charges (out_trade_no);

-- What the merchant has still to acknowledge. The body is kept, so that every resend has the same bytes.
CREATE TABLE notifications (
    channel_txn TEXT    NOT NULL PRIMARY KEY REFERENCES charges,
    notify_url  TEXT    NOT NULL,
    body        TEXT    NOT NULL,
    trace_id    TEXT    NOT NULL,
    state       TEXT    NOT NULL, -- PENDING, ACKED, GIVEN_UP
    unacked     INTEGER NOT NULL DEFAULT 0, -- sends that brought no ack
    next_at_ms  INTEGER NOT NULL
) STRICT;

CREATE INDEX notifications_by_state ON notifications (state, next_at_ms, channel_txn);
