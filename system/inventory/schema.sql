-- name: CreateStock1
-- Every *_ms is Unix milliseconds by db_now_ms(), the database's clock.

-- Where the units of a SKU are. Their sum is what was put in.
CREATE TABLE stock (
    sku       TEXT    NOT NULL PRIMARY KEY,
    available INTEGER NOT NULL CHECK (available >= 0),
    frozen    INTEGER NOT NULL CHECK (frozen >= 0), -- promised to an order that isn't paid
    sold      INTEGER NOT NULL CHECK (sold >= 0)
) STRICT;

-- Append-only: every movement of stock, at most one of a kind per order.
CREATE TABLE stock_journal (
    journal_id INTEGER PRIMARY KEY, -- grows; writers come one after the other, so no lower one appears later
    order_no   TEXT    NOT NULL,    -- of a put: the number of the delivery
    movement   TEXT    NOT NULL CHECK (movement IN ('put', 'freeze', 'release', 'deduct')),
    sku        TEXT    NOT NULL,    -- empty for a release that found nothing frozen
    quantity   INTEGER NOT NULL CHECK (quantity >= 0),
    at_ms      INTEGER NOT NULL,
    UNIQUE (order_no, movement)
) STRICT;
