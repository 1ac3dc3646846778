//go:build !linux && !darwin

package sim

import (
	"errors"
	"os"
)

// lockFolder fails: SQLite's unix-excl, which WAL needs, is not there either.
func lockFolder(string) (*os.File, error) { return nil, errors.ErrUnsupported }
