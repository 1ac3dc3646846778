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
