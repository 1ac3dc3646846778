package system

import (
	"context"
	"database/sql"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// work is one write transaction, together with the messages that follow from its facts.
type work struct {
	*sql.Tx
	shop     *Shop
	messages []message // to be brought on their way once the transaction is committed
}

// transact runs do in one write transaction and commits what it did; an error of do leaves nothing. After an error of
// the commit itself the facts may stand or not: the database knows. Nothing that do calls may talk to anybody.
func (s *Shop) transact(ctx context.Context, what string, do func(w *work) error) error {
	w := &work{shop: s}
	err := sqldb.InTx(ctx, s.env.DB, what, func(tx *sql.Tx) error {
		w.Tx = tx
		return do(w)
	})
	if err != nil {
		return err
	}
	for _, m := range w.messages {
		s.dispatch(m)
	}
	return nil
}

// maxPages bounds how much one run of a job takes on; the next run goes on.
const maxPages = 100

// workOff does something about every row of a list, page by page. The list is read by key, not by offset, so that what
// is done, and takes rows out of it, makes it skip none, and what fails is passed over until the next run.
func workOff[T any](ctx context.Context, size int, list func(ctx context.Context, after T) ([]T, error), do func(T)) error {
	var last T
	for range maxPages {
		page, err := list(ctx, last)
		if err != nil {
			return err
		}
		for _, row := range page {
			do(row)
		}
		if len(page) < size {
			return nil
		}
		last = page[len(page)-1]
	}
	return nil
}

// exec runs a statement that changes at most one row, and reports whether it did.
func (w *work) exec(ctx context.Context, query string, args ...any) (bool, error) {
	return sqldb.Changed(ctx, w.Tx, query, args...)
}
