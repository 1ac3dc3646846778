package sim

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
)

// Journal is where the databases of an arena live, and with that how they lock.
type Journal int

const (
	// MemDB databases live in memory and lock like a rollback journal: a commit waits
	// until nobody reads, and nobody begins to read while it is being made.
	MemDB Journal = iota
	// WAL databases are files with a write-ahead log, as in production: readers see a
	// snapshot, and neither wait for a writer nor hold one up.
	WAL
)

var journals = []string{MemDB: "memdb", WAL: "wal"}

// String returns the journal's name, "memdb" or "wal".
func (j Journal) String() string { return journals[j] }

// MarshalText implements encoding.TextMarshaler.
func (j Journal) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (j *Journal) UnmarshalText(text []byte) error {
	i := slices.Index(journals, string(text))
	if i < 0 {
		return fmt.Errorf("a journal is memdb or wal, not %q", text)
	}
	*j = Journal(i)
	return nil
}

// NewArena returns an empty arena whose databases have this journal.
func (j Journal) NewArena() *Arena {
	return &Arena{journal: j, images: map[string]*slot{}, statements: map[string]*statement{}}
}

// settings are those of every raw connection. The kernel does the waiting for locks.
const settings = "&_busy_timeout=0&_stmt_cache_size=128"

// checkpoints come ten times as often as SQLite would make them, so that short worlds
// meet them too, and the log stays small. It means nothing to a database in memory.
const checkpoints = "PRAGMA wal_autocheckpoint = 100"

// dsn names a new database.
func (a *Arena) dsn() (string, error) {
	a.opened++
	if a.journal == MemDB {
		// The arena's address makes the name unique in this process. SQLite's memdb
		// gives several connections one database in memory, with real locking.
		return fmt.Sprintf("file:/tillstorm-%p-%d?vfs=memdb", a, a.opened) + settings, nil
	}
	if a.folder == nil {
		var err error
		if a.folder, err = newFolder(); err != nil {
			return "", err
		}
	}
	// Nothing waits for the disk: what crashes here is a process, never the machine.
	// unix-excl keeps other processes out, so that the locks and the log's index are
	// in this one's memory; several connections of it see each other as always.
	file := url.URL{Scheme: "file", Path: filepath.Join(a.folder.path, fmt.Sprintf("%d.db", a.opened)),
		RawQuery: "vfs=unix-excl&_journal_mode=WAL&_synchronous=OFF" + settings}
	return file.String(), nil
}

// emptyLog moves what stands in the log to the database. A world that begins with an
// empty log meets its checkpoints where any other such world would.
func (s *slot) emptyLog() error {
	_, rows, err := s.anchor.readAll("PRAGMA wal_checkpoint(TRUNCATE)", nil)
	if err == nil && rows[0][0] != int64(0) {
		err = errors.New("a connection still reads an old snapshot")
	}
	return err
}

// hasWriter says that a transaction which may write is open.
func (s *slot) hasWriter() bool {
	err := s.anchor.exec("BEGIN IMMEDIATE")
	if err == nil {
		err = s.anchor.exec("ROLLBACK")
	}
	return isBusy(err)
}
