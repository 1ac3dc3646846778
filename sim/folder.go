package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// folder is a directory in memory for the files of one arena. Its lock ends with the
// process, however that ends: a folder that can be locked was left behind by one that
// was killed, and whoever makes the next folder removes it.
type folder struct {
	path string
	lock *os.File
}

func newFolder() (*folder, error) {
	parent := "/dev/shm"
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		parent = os.TempDir()
	}
	removeAbandoned(parent)
	unready, err := os.MkdirTemp(parent, "tillstorm-*.new")
	if err != nil {
		return nil, fmt.Errorf("making a folder for databases: %w", err)
	}
	f := &folder{path: strings.TrimSuffix(unready, ".new") + ".wal"}
	f.lock, err = lockFolder(unready)
	if err == nil { // only now it gets the name under which others look for abandoned ones
		err = os.Rename(unready, f.path)
	}
	if err != nil {
		f.path = unready
		f.remove()
		return nil, fmt.Errorf("making a folder for databases: %w", err)
	}
	return f, nil
}

func (f *folder) remove() {
	os.RemoveAll(f.path)
	f.lock.Close()
}

func removeAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, "tillstorm-*.wal"))
	for _, path := range paths {
		if lock, err := lockFolder(path); err == nil {
			(&folder{path, lock}).remove()
		}
	}
}
