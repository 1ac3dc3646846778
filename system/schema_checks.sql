-- name: CreateChecks1
-- What guards the money: alerts, idempotency keys, reconciliation.

-- What a guard or a reconciliation found. Each thing is one row, however often it is found.
CREATE TABLE alerts (
    alert_id     INTEGER PRIMARY KEY,
    kind         TEXT    NOT NULL,
    subject      TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL, -- the money at stake
    currency     TEXT    NOT NULL,
    detail       TEXT    NOT NULL,
    trace_id     TEXT    NOT NULL,
    raised_ms    INTEGER NOT NULL,
    UNIQUE (kind, subject)
) STRICT;

-- One row per key that a caller has used for an operation. While it is RUNNING, owner works on it until until_ms; after
-- that anybody who has the same request may take it over, under the same effect id.
CREATE TABLE idempotency_keys (
    caller      TEXT    NOT NULL,
    operation   TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    fingerprint TEXT    NOT NULL, -- of the request, SHA-256
    effect_id   TEXT    NOT NULL, -- names what the request makes, over every time it is run
    state       TEXT    NOT NULL, -- RUNNING, DONE
    owner       TEXT    NOT NULL, -- whose answer will count
    until_ms    INTEGER NOT NULL,
    status      INTEGER NOT NULL DEFAULT 0, -- the answer, when DONE
    answer      TEXT    NOT NULL DEFAULT '',
    created_ms  INTEGER NOT NULL,
    PRIMARY KEY (caller, operation, key)
) STRICT;

-- Which hour a job has last been run for, so that one of several instances runs it.
CREATE TABLE reconcile_jobs (
    job  TEXT    NOT NULL PRIMARY KEY,
    hour INTEGER NOT NULL -- hours since 1970 by db_now_ms()
) STRICT;

INSERT INTO reconcile_jobs (job, hour) VALUES ('reconcile', 0);

-- The days of each channel, without a gap from the first one on: what has become of their bills.
CREATE TABLE bill_days (
    channel   TEXT    NOT NULL,
    bill_day  TEXT    NOT NULL, -- 2026-01-31, in the channel's zone
    start_ms  INTEGER NOT NULL,
    end_ms    INTEGER NOT NULL, -- the start of the next day
    state     TEXT    NOT NULL, -- WAITING for the bill, FETCHED whole, CHECKED for good
    place     TEXT    NOT NULL DEFAULT '', -- how far the bill has been fetched, as the channel says it
    row_count INTEGER NOT NULL DEFAULT 0,
    tries     INTEGER NOT NULL DEFAULT 0, -- that were begun
    next_ms   INTEGER, -- when something is to be done about it; NULL once it is CHECKED
    PRIMARY KEY (channel, bill_day)
) STRICT;

CREATE INDEX bill_days_by_due ON bill_days (next_ms) WHERE next_ms IS NOT NULL;

-- The bills as the channels sent them. They are kept: a charge of one day may be recorded here on the next.
CREATE TABLE bill_rows (
    channel      TEXT    NOT NULL,
    bill_day     TEXT    NOT NULL,
    position     INTEGER NOT NULL, -- 1, 2, ... within the bill
    kind         TEXT    NOT NULL, -- charge, refund
    number       TEXT    NOT NULL, -- the channel's of a charge, ours of a refund
    out_trade_no TEXT    NOT NULL,
    order_no     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL,
    currency     TEXT    NOT NULL,
    at_ms        INTEGER NOT NULL, -- charged, or refund accepted, by the channel's clock
    PRIMARY KEY (channel, bill_day, position)
) STRICT;

CREATE INDEX bill_rows_by_number ON bill_rows (channel, kind, number, bill_day, position);

-- What must stand in a day's bill is found by these.
CREATE INDEX payment_records_by_time ON payment_records (channel, recorded_ms, channel_txn);
CREATE INDEX refunds_by_done ON refunds (channel, done_ms, refund_no);
