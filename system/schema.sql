-- name: CreateSchema1
-- Every *_ms is Unix milliseconds by db_now_ms(), the database's clock.

-- What somebody wants to be paid. The order number is the caller's.
CREATE TABLE orders (
    order_no     TEXT    NOT NULL PRIMARY KEY,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    close_reason TEXT    NOT NULL DEFAULT '',
    created_ms   INTEGER NOT NULL,
    deadline_ms  INTEGER NOT NULL,
    paid_ms      INTEGER,
    closed_ms    INTEGER
) STRICT;

-- The closing scan walks this in order; closed and paid orders don't slow it down.
CREATE INDEX orders_by_deadline ON orders (status, deadline_ms, order_no);

-- One row per attempt to pay an order on one channel.
CREATE TABLE payment_orders (
    out_trade_no TEXT    NOT NULL PRIMARY KEY,
    order_no     TEXT    NOT NULL REFERENCES orders,
    channel      TEXT    NOT NULL,
    attempt      INTEGER NOT NULL, -- 1, 2, ... within the order
    state        TEXT    NOT NULL, -- OPEN, PAID, CLOSED
    prepay_token TEXT    NOT NULL DEFAULT '',
    created_ms   INTEGER NOT NULL,
    UNIQUE (order_no, attempt)
) STRICT;

-- Append-only facts: this channel transaction happened, and this is what it met.
CREATE TABLE payment_records (
    channel      TEXT    NOT NULL,
    channel_txn  TEXT    NOT NULL,
    order_no     TEXT    NOT NULL REFERENCES orders,
    out_trade_no TEXT    NOT NULL REFERENCES payment_orders,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    disposition  TEXT    NOT NULL, -- applied: it paid the order; late: the order was closed; surplus: it was paid already
    order_status TEXT    NOT NULL, -- the order's status after it; every repeat is answered with this
    recorded_ms  INTEGER NOT NULL,
    PRIMARY KEY (channel, channel_txn)
) STRICT;

CREATE INDEX payment_records_by_order ON payment_records (order_no);

-- Every change of an order's status, its creation included (from '').
CREATE TABLE order_status_log (
    log_id      INTEGER PRIMARY KEY,
    order_no    TEXT    NOT NULL REFERENCES orders,
    from_status TEXT    NOT NULL,
    to_status   TEXT    NOT NULL,
    cause       TEXT    NOT NULL, -- create, callback, deadline
    trace_id    TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL
) STRICT;

CREATE INDEX order_status_log_by_order ON order_status_log (order_no, log_id);
