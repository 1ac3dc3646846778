package sqldb

import (
	"errors"

	"github.com/mattn/go-sqlite3"
)

// IsBusy reports whether a statement gave up waiting for another connection's lock. It has changed nothing, and may
// succeed when it is tried again.
func IsBusy(err error) bool {
	var failure sqlite3.Error
	return errors.As(err, &failure) && failure.Code == sqlite3.ErrBusy
}
