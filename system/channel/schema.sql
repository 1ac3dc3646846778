-- name: CreateLedger1
-- Every *_ms is Unix milliseconds by db_now_ms(), the ledger's clock.

-- What a merchant asked us to collect. The out-trade number is the merchant's.
CREATE TABLE trades (
    out_trade_no   TEXT    NOT NULL PRIMARY KEY,
    merchant_id    TEXT    NOT NULL,
    order_no       TEXT    NOT NULL,
    amount_cents   INTEGER NOT NULL CHECK (amount_cents > 0),
    currency       TEXT    NOT NULL,
    notify_url     TEXT    NOT NULL,
    time_expire_ms INTEGER NOT NULL, -- who starts to pay later is refused; 0: no limit
    state          TEXT    NOT NULL, -- NOTPAY, SUCCESS, CLOSED
    prepay_token   TEXT    NOT NULL,
    token_ms       INTEGER NOT NULL, -- when the token was made or refreshed
    created_ms     INTEGER NOT NULL,
    started_ms     INTEGER NOT NULL DEFAULT 0, -- when the payer last scanned the code or opened the password box
    settle_at_ms   INTEGER NOT NULL DEFAULT 0, -- the payer has confirmed, and the money is taken then
    declined       INTEGER NOT NULL DEFAULT 0  -- tries to pay that failed
) STRICT;

CREATE INDEX trades_by_settling ON trades (settle_at_ms) WHERE state = 'NOTPAY' AND settle_at_ms > 0;

-- Append-only: the payer's money was taken.
CREATE TABLE charges (
    channel_txn  TEXT    NOT NULL PRIMARY KEY,
    out_trade_no TEXT    NOT NULL REFERENCES trades,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    fee_cents    INTEGER NOT NULL,
    charged_ms   INTEGER NOT NULL
) STRICT;

CREATE INDEX charges_by_trade ON charges (out_trade_no);
CREATE INDEX charges_by_time ON charges (charged_ms);

-- One row per refund that was accepted. The payer has the money back when the state is SUCCESS, and not before.
CREATE TABLE refunds (
    refund_no    TEXT    NOT NULL PRIMARY KEY, -- the merchant's
    channel_txn  TEXT    NOT NULL REFERENCES charges,
    out_trade_no TEXT    NOT NULL REFERENCES trades,
    order_no     TEXT    NOT NULL,
    merchant_id  TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    fee_cents    INTEGER NOT NULL, -- of the charge's fee, what goes back to the merchant
    notify_url   TEXT    NOT NULL,
    state        TEXT    NOT NULL, -- PROCESSING, SUCCESS, ABNORMAL, CLOSED
    outcome      TEXT    NOT NULL, -- the state that it goes to at settle_at_ms
    accepted_ms  INTEGER NOT NULL,
    settle_at_ms INTEGER NOT NULL,
    settled_ms   INTEGER           -- when it left PROCESSING
) STRICT;

CREATE INDEX refunds_by_trade ON refunds (out_trade_no);
CREATE INDEX refunds_by_time ON refunds (accepted_ms);
CREATE INDEX refunds_by_settling ON refunds (settle_at_ms) WHERE state = 'PROCESSING';

-- What the merchant has still to acknowledge. The body is kept, so that every resend has the same bytes.
CREATE TABLE notifications (
    notice_id    TEXT    NOT NULL PRIMARY KEY, -- the channel transaction, or refund, closed, failed, finished and a number
    out_trade_no TEXT    NOT NULL REFERENCES trades,
    notify_url   TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    trace_id     TEXT    NOT NULL,
    state        TEXT    NOT NULL, -- PENDING, ACKED, GIVEN_UP
    unacked      INTEGER NOT NULL DEFAULT 0, -- sends that brought no ack
    next_at_ms   INTEGER NOT NULL
) STRICT;

CREATE INDEX notifications_by_state ON notifications (state, next_at_ms, notice_id);
CREATE INDEX notifications_by_trade ON notifications (out_trade_no);

-- How the channel is to behave for one trade, as JSON: see Oddity. It may be there before its trade.
CREATE TABLE oddities (
    out_trade_no TEXT NOT NULL PRIMARY KEY,
    body         TEXT NOT NULL
) STRICT;

-- Bills that are made. What comes later changes none.
CREATE TABLE bills (
    bill_date TEXT    NOT NULL PRIMARY KEY, -- 2026-01-31, a day in the channel's zone
    made_ms   INTEGER NOT NULL
) STRICT;

CREATE TABLE bill_rows (
    bill_date    TEXT    NOT NULL REFERENCES bills,
    position     INTEGER NOT NULL, -- 1, 2, ...
    kind         TEXT    NOT NULL, -- charge, refund
    channel_txn  TEXT    NOT NULL,
    refund_no    TEXT    NOT NULL, -- empty for a charge
    out_trade_no TEXT    NOT NULL,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL,
    fee_cents    INTEGER NOT NULL,
    currency     TEXT    NOT NULL,
    at_ms        INTEGER NOT NULL, -- charged, or refund accepted
    PRIMARY KEY (bill_date, position)
) STRICT;

-- Mistakes that an operator plants in bills to come: a row left out, a row with another amount, a row of nothing real.
CREATE TABLE bill_edits (
    reference    TEXT    NOT NULL PRIMARY KEY, -- the row's refund number, or its channel transaction
    action       TEXT    NOT NULL, -- hide, change, add
    kind         TEXT    NOT NULL,
    out_trade_no TEXT    NOT NULL,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL,
    currency     TEXT    NOT NULL,
    at_ms        INTEGER NOT NULL
) STRICT;

-- Bills that are ready later than they should be.
CREATE TABLE bill_delays (
    bill_date TEXT    NOT NULL PRIMARY KEY,
    delay_ms  INTEGER NOT NULL
) STRICT;

-- What a POST with an Idempotency-Key was answered, where the personality knows such keys.
CREATE TABLE idempotency_keys (
    key         TEXT    NOT NULL PRIMARY KEY,
    fingerprint TEXT    NOT NULL, -- of path and body
    status      INTEGER NOT NULL, -- 0 while the first request is in flight
    body        TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL
) STRICT;
