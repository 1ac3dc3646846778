-- name: CreateSchema1
-- Every *_ms is Unix milliseconds by db_now_ms(), the database's clock.

-- What somebody wants to be paid. The order number is the caller's.
CREATE TABLE orders (
    order_no     TEXT    NOT NULL PRIMARY KEY,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    currency     TEXT    NOT NULL,
    channel      TEXT    NOT NULL, -- of the first attempt
    sku          TEXT    NOT NULL, -- empty: no stock is involved
    quantity     INTEGER NOT NULL, -- of the SKU; 0 without one
    stock_no     TEXT    NOT NULL, -- the order's name at the stock service; a reinstated order gets another
    status       TEXT    NOT NULL,
    close_reason TEXT    NOT NULL DEFAULT '', -- deadline, cancelled, out_of_stock
    created_ms   INTEGER NOT NULL,
    deadline_ms  INTEGER NOT NULL,
    paid_ms      INTEGER,
    closed_ms    INTEGER,
    paid_channel TEXT, -- with paid_txn: the one charge that paid the order, whose money we keep
    paid_txn     TEXT
) STRICT;

-- The closing scan walks this in order; closed and paid orders don't slow it down.
CREATE INDEX orders_by_deadline ON orders (status, deadline_ms, order_no);

-- One row per attempt to pay an order on one channel.
CREATE TABLE payment_orders (
    out_trade_no  TEXT    NOT NULL PRIMARY KEY,
    order_no      TEXT    NOT NULL REFERENCES orders,
    channel       TEXT    NOT NULL,
    attempt       INTEGER NOT NULL, -- 1, 2, ... within the order
    state         TEXT    NOT NULL, -- OPEN, PAID, CLOSED
    prepay_token  TEXT    NOT NULL DEFAULT '',
    created_ms    INTEGER NOT NULL,
    query_tries   INTEGER NOT NULL DEFAULT 0,
    next_query_ms INTEGER, -- when the channel is asked next; NULL once it can't take money for this attempt any more
    UNIQUE (order_no, attempt)
) STRICT;

-- The pending query walks this in order.
CREATE INDEX payment_orders_by_query ON payment_orders (next_query_ms, out_trade_no) WHERE next_query_ms IS NOT NULL;

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

-- One row per intent to give back (a part of) one charge. The number is kept over every retry.
CREATE TABLE refunds (
    refund_no     TEXT    NOT NULL PRIMARY KEY,
    order_no      TEXT    NOT NULL REFERENCES orders,
    channel       TEXT    NOT NULL,
    channel_txn   TEXT    NOT NULL,
    out_trade_no  TEXT    NOT NULL REFERENCES payment_orders,
    amount_cents  INTEGER NOT NULL CHECK (amount_cents > 0),
    total_cents   INTEGER NOT NULL, -- of the charge
    currency      TEXT    NOT NULL,
    cause         TEXT    NOT NULL, -- request, late, surplus
    state         TEXT    NOT NULL, -- REQUESTED, ACCEPTED, SUCCEEDED, FAILED
    channel_state TEXT    NOT NULL DEFAULT '', -- the channel's own word for it, as heard last
    created_ms    INTEGER NOT NULL,
    done_ms       INTEGER,
    query_tries   INTEGER NOT NULL DEFAULT 0,
    next_query_ms INTEGER, -- when the channel is asked next; NULL once the refund is final
    FOREIGN KEY (channel, channel_txn) REFERENCES payment_records
) STRICT;

CREATE INDEX refunds_by_order ON refunds (order_no, channel, channel_txn);

CREATE INDEX refunds_by_query ON refunds (next_query_ms, refund_no) WHERE next_query_ms IS NOT NULL;

-- What must be told to others because of a fact, written in the fact's own transaction.
CREATE TABLE outbox (
    message_id   INTEGER PRIMARY KEY,
    kind         TEXT    NOT NULL,
    message_key  TEXT    NOT NULL,
    body         TEXT    NOT NULL,
    trace_id     TEXT    NOT NULL,
    state        TEXT    NOT NULL, -- PENDING, DELIVERED, PARKED
    tries        INTEGER NOT NULL DEFAULT 0,
    last_error   TEXT    NOT NULL DEFAULT '',
    created_ms   INTEGER NOT NULL,
    next_ms      INTEGER NOT NULL, -- when it is tried next
    done_ms      INTEGER,
    UNIQUE (kind, message_key)
) STRICT;

-- The relay walks this in order.
CREATE INDEX outbox_by_due ON outbox (next_ms, message_id) WHERE state = 'PENDING';

-- The highest fencing token that a job has written with; who comes with a lower one has lost its lease.
CREATE TABLE job_fences (
    job   TEXT    NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL
) STRICT;

-- Every change of an order's status, its creation included (from '').
CREATE TABLE order_status_log (
    log_id      INTEGER PRIMARY KEY,
    order_no    TEXT    NOT NULL REFERENCES orders,
    from_status TEXT    NOT NULL,
    to_status   TEXT    NOT NULL,
    cause       TEXT    NOT NULL, -- create, callback, query, deadline, cancelled, out_of_stock, refund, reinstate
    trace_id    TEXT    NOT NULL,
    at_ms       INTEGER NOT NULL
) STRICT;

CREATE INDEX order_status_log_by_order ON order_status_log (order_no, log_id);
