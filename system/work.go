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

// exec runs a statement that changes at most one row, and reports whether it did.
func (w *work) exec(ctx context.Context, query string, args ...any) (bool, error) {
	return sqldb.Changed(ctx, w.Tx, query, args...)
}
