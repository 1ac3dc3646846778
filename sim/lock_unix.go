//go:build linux || darwin

package sim

import (
	"os"
	"syscall"
)

// lockFolder locks a directory that nobody else has locked, until it is closed.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
