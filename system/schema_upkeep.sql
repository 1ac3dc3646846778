-- name: CreateUpkeep1
-- What keeps the tables small, and their reading short.

-- What has been kept for long enough is found by these.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_ms);
CREATE INDEX outbox_by_done ON outbox (done_ms) WHERE state = 'DELIVERED';

-- How far the stock journal has been compared: the id of its last row that was, and in which hour it was compared from
-- its first row on.
ALTER TABLE reconcile_jobs ADD COLUMN place INTEGER NOT NULL DEFAULT 0;

INSERT INTO reconcile_jobs (job, hour) VALUES ('stock', 0);
