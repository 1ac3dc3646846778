package inventory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// The movements that an order's stock can make, and the one that brings stock in.
const (
	movePut     = "put"
	moveFreeze  = "freeze"
	moveRelease = "release"
	moveDeduct  = "deduct"
)

// Movement is a row of the journal.
type Movement struct {
	JournalID int64  `json:"journalId"`
	OrderNo   string `json:"orderNo"`
	Movement  string `json:"movement"`
	SKU       string `json:"sku"`
	Quantity  int64  `json:"quantity"`
	AtMs      int64  `json:"atMs"`
}

// The inserts decide by the journal's unique key whether a movement is new, and by the rows beside it whether it may
// still happen. They change one row or none.
const (
	insertPut = `-- name: InsertPut
INSERT INTO stock_journal (order_no, movement, sku, quantity, at_ms)
VALUES (?1, 'put', ?2, ?3, db_now_ms())
ON CONFLICT (order_no, movement) DO NOTHING`

	insertFreeze = `-- name: InsertFreeze
INSERT INTO stock_journal (order_no, movement, sku, quantity, at_ms)
SELECT ?1, 'freeze', ?2, ?3, db_now_ms()
WHERE NOT EXISTS (SELECT 1 FROM stock_journal WHERE order_no = ?1 AND movement = 'release')
ON CONFLICT (order_no, movement) DO NOTHING`

	insertRelease = `-- name: InsertRelease
INSERT INTO stock_journal (order_no, movement, sku, quantity, at_ms)
SELECT ?1, 'release', coalesce(max(sku), ''), coalesce(max(quantity), 0), db_now_ms()
FROM stock_journal WHERE order_no = ?1 AND movement = 'freeze'
HAVING NOT EXISTS (SELECT 1 FROM stock_journal WHERE order_no = ?1 AND movement = 'deduct')
ON CONFLICT (order_no, movement) DO NOTHING`

	insertDeduct = `-- name: InsertDeduct
INSERT INTO stock_journal (order_no, movement, sku, quantity, at_ms)
SELECT ?1, 'deduct', sku, quantity, db_now_ms()
FROM stock_journal WHERE order_no = ?1 AND movement = 'freeze'
AND NOT EXISTS (SELECT 1 FROM stock_journal WHERE order_no = ?1 AND movement = 'release')
ON CONFLICT (order_no, movement) DO NOTHING`
)

// The updates move stock. Their arguments are SKU and quantity.
const (
	putStock = `-- name: PutStock
INSERT INTO stock (sku, available, frozen, sold) VALUES (?1, ?2, 0, 0)
ON CONFLICT (sku) DO UPDATE SET available = available + ?2`

	freezeStock = `-- name: FreezeStock
UPDATE stock SET available = available - ?2, frozen = frozen + ?2
WHERE sku = ?1 AND available >= ?2`

	releaseStock = `-- name: ReleaseStock
UPDATE stock SET available = available + ?2, frozen = frozen - ?2
WHERE sku = ?1 AND frozen >= ?2`

	deductStock = `-- name: DeductStock
UPDATE stock SET frozen = frozen - ?2, sold = sold + ?2
WHERE sku = ?1 AND frozen >= ?2`
)

// put brings stock in, once per delivery number. A number that is used for other content is a 409 put_conflict.
func (s *Service) put(ctx context.Context, wanted Movement) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		isNew, err := sqldb.Changed(ctx, tx, insertPut, wanted.OrderNo, wanted.SKU, wanted.Quantity)
		if err != nil {
			return fmt.Errorf("journal put %s: %w", wanted.OrderNo, err)
		}
		if isNew {
			return moveStock(ctx, tx, putStock, wanted)
		}
		known, _, err := readMovement(ctx, tx, wanted.OrderNo, movePut)
		if err == nil && !known.sameAs(wanted) {
			return refuse("put_conflict", "put %s is known with other content", wanted.OrderNo)
		}
		return err
	})
}

// freeze promises stock to an order. It is refused as 409 out_of_stock, freeze_conflict (another SKU or quantity than
// before) or order_released (the order is dead).
func (s *Service) freeze(ctx context.Context, wanted Movement) (m Movement, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		isNew, err := sqldb.Changed(ctx, tx, insertFreeze, wanted.OrderNo, wanted.SKU, wanted.Quantity)
		if err != nil {
			return fmt.Errorf("journal freeze of %s: %w", wanted.OrderNo, err)
		}
		if isNew {
			if err := takeStock(ctx, tx, wanted); err != nil {
				return err
			}
		} else if err := refuseAfter(ctx, tx, wanted.OrderNo, moveRelease, "order_released"); err != nil {
			return err
		}
		m, _, err = readMovement(ctx, tx, wanted.OrderNo, moveFreeze)
		if err == nil && !m.sameAs(wanted) {
			return refuse("freeze_conflict", "order %s has frozen %d of %s", m.OrderNo, m.Quantity, m.SKU)
		}
		return err
	})
	return m, err
}

func takeStock(ctx context.Context, tx *sql.Tx, wanted Movement) error {
	taken, err := sqldb.Changed(ctx, tx, freezeStock, wanted.SKU, wanted.Quantity)
	if err != nil {
		return fmt.Errorf("freeze %s: %w", wanted.SKU, err)
	}
	if !taken {
		return refuse("out_of_stock", "there are not %d of %s left", wanted.Quantity, wanted.SKU)
	}
	return nil
}

// release takes a promise back, and forbids a later one. A sold order's is a 409 order_deducted.
func (s *Service) release(ctx context.Context, orderNo string) (m Movement, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		isNew, err := sqldb.Changed(ctx, tx, insertRelease, orderNo)
		if err != nil {
			return fmt.Errorf("journal release of %s: %w", orderNo, err)
		}
		if !isNew {
			if err := refuseAfter(ctx, tx, orderNo, moveDeduct, "order_deducted"); err != nil {
				return err
			}
		}
		m, _, err = readMovement(ctx, tx, orderNo, moveRelease)
		if err != nil || !isNew || m.Quantity == 0 {
			return err
		}
		return moveStock(ctx, tx, releaseStock, m)
	})
	return m, err
}

// deduct sells what was promised. It is refused as 409 order_released or order_not_frozen.
func (s *Service) deduct(ctx context.Context, orderNo string) (m Movement, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		isNew, err := sqldb.Changed(ctx, tx, insertDeduct, orderNo)
		if err != nil {
			return fmt.Errorf("journal deduct of %s: %w", orderNo, err)
		}
		if !isNew {
			if err := refuseAfter(ctx, tx, orderNo, moveRelease, "order_released"); err != nil {
				return err
			}
		}
		var found bool
		if m, found, err = readMovement(ctx, tx, orderNo, moveDeduct); err != nil {
			return err
		}
		if !found {
			return refuse("order_not_frozen", "nothing is frozen for order %s", orderNo)
		}
		if !isNew {
			return nil
		}
		return moveStock(ctx, tx, deductStock, m)
	})
	return m, err
}

// moveStock moves stock that must be there; if it isn't, the journal and the stock contradict each other.
func moveStock(ctx context.Context, tx *sql.Tx, query string, m Movement) error {
	moved, err := sqldb.Changed(ctx, tx, query, m.SKU, m.Quantity)
	if err == nil && !moved {
		err = errors.New("the stock contradicts its journal")
	}
	if err != nil {
		return fmt.Errorf("move %d of %s for %s: %w", m.Quantity, m.SKU, m.OrderNo, err)
	}
	return nil
}

// refuseAfter refuses a movement because another one has happened.
func refuseAfter(ctx context.Context, tx *sql.Tx, orderNo, movement, code string) error {
	_, found, err := readMovement(ctx, tx, orderNo, movement)
	if err == nil && found {
		return refuse(code, "the %s of order %s is final", movement, orderNo)
	}
	return err
}

const selectMovement = `-- name: ReadMovement
SELECT journal_id, order_no, movement, sku, quantity, at_ms
FROM stock_journal WHERE order_no = ?1 AND movement = ?2`

func readMovement(ctx context.Context, tx *sql.Tx, orderNo, movement string) (m Movement, found bool, err error) {
	err = tx.QueryRowContext(ctx, selectMovement, orderNo, movement).
		Scan(&m.JournalID, &m.OrderNo, &m.Movement, &m.SKU, &m.Quantity, &m.AtMs)
	if errors.Is(err, sql.ErrNoRows) {
		return m, false, nil
	}
	if err != nil {
		return m, false, fmt.Errorf("read %s of %s: %w", movement, orderNo, err)
	}
	return m, true, nil
}

func (m Movement) sameAs(other Movement) bool {
	return m.SKU == other.SKU && m.Quantity == other.Quantity
}
