-- name: CreateEmbedded1
-- Every *_ms is Unix milliseconds by db_now_ms(), the database's clock.

CREATE TABLE messages (
    message_id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, as whoever handles messages may remember it
    topic      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    due_ms     INTEGER NOT NULL, -- for the next delivery; moves on with each claim
    deliveries INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX messages_by_due ON messages (topic, due_ms, message_id);

-- One row for each name that was ever taken, so that its token only grows.
CREATE TABLE leases (
    name     TEXT    NOT NULL PRIMARY KEY,
    owner    TEXT    NOT NULL,
    token    INTEGER NOT NULL,
    until_ms INTEGER NOT NULL -- 0 once released
) STRICT;

CREATE TABLE expiring_keys (
    key    TEXT    NOT NULL PRIMARY KEY,
    due_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX expiring_keys_by_due ON expiring_keys (due_ms, key);
