package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/tillstorm/tillstorm/system/sqldb"
)

// setting is one thing on which all instances over one directory must agree.
type setting struct{ flag, value string }

// settings are what would make two instances contradict each other if it differed. A secret is there as a hash.
func (o *options) settings() []setting {
	key := sha256.Sum256([]byte("till signing key\n" + o.signingKey))
	closeBy, consistency := slices.Sorted(slices.Values(o.closeBy)), slices.Sorted(slices.Values(o.consistency))
	return []setting{
		{"merchant", o.merchant},
		{"signing-key", secretHash + hex.EncodeToString(key[:16])},
		{"channel", strings.Join(o.channels, ",")},
		{"stock-url", o.stockURL},
		{"pay-window", o.payWindow.String()},
		{"close", o.closePolicy},
		{"late-success", o.lateSuccess},
		{"close-by", strings.Join(closeBy, ",")},
		{"consistency", strings.Join(consistency, ",")},
	}
}

const secretHash = "sha256:"

// agreement is what an instance holds for as long as it lives: a read transaction on the settings that it goes by, in a
// database of their own without a WAL. While anybody reads there, SQLite lets nobody write; and when a process ends,
// in whatever way, its lock ends too. So the settings can be changed by the first instance, and by no other.
type agreement struct {
	db   *sql.DB
	conn *sql.Conn
}

// changePatience is how long an instance that wants to change the settings waits for others that are only starting.
// Meanwhile SQLite lets nobody begin to read; so it is far shorter than busyTimeout, which readers have.
const changePatience = 200 * time.Millisecond

// agree takes part in the settings of a directory, or refuses with those that differ. An instance that is alone there
// changes them, and is told which; a visitor never does, but where there are none.
func agree(ctx context.Context, dir string, mine []setting, visitor bool) (a *agreement, changed []string, err error) {
	db := sql.OpenDB(connector{dsn: dataSource(dir, "settings", url.Values{}), driver: &sqlite3.SQLiteDriver{}, gate: newGate()})
	a = &agreement{db: db}
	var differ string
	if a.conn, err = db.Conn(ctx); err == nil {
		changed, differ, err = a.settle(ctx, mine, visitor)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("database %s: %w", databasePath(dir, "settings"), err)
	case differ != "" && visitor:
		err = usageError{fmt.Errorf("%s: %s was last served with other settings:\n%s", named("data"), dir, differ)}
	case differ != "":
		err = usageError{fmt.Errorf("%s: %s is served with other settings; start with the same, or end the others first:\n%s",
			named("data"), dir, differ)}
	default:
		return a, changed, nil
	}
	return nil, nil, errors.Join(err, a.close())
}

// settle returns once the agreement is held, with the flags that it has changed, or with the words for what differs.
// After writing it compares again: somebody may have come between.
func (a *agreement) settle(ctx context.Context, mine []setting, visitor bool) (changed []string, differ string, err error) {
	for {
		stored, err := a.hold(ctx)
		if err != nil {
			return nil, "", err
		}
		flags, differ := differing(stored, mine)
		if len(flags) == 0 {
			return changed, "", nil
		}
		if _, err := a.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			return nil, "", err
		}
		first := len(stored) == 0
		if visitor && !first {
			return nil, differ, nil
		}
		switch err := a.rewrite(ctx, mine); {
		case sqldb.IsBusy(err) && first: // another first instance is about it
		case sqldb.IsBusy(err):
			return nil, differ, nil
		case err != nil:
			return nil, "", err
		case !first:
			changed = flags
		}
	}
}

// hold begins to read and goes on until the connection closes. A new database has no settings.
func (a *agreement) hold(ctx context.Context) (map[string]string, error) {
	if _, err := a.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	var tables int
	err := a.conn.QueryRowContext(ctx, "-- name: HasSettings\nSELECT count(*) FROM sqlite_schema WHERE name = 'settings'").Scan(&tables)
	if err != nil || tables == 0 {
		return nil, err
	}
	rows, err := a.conn.QueryContext(ctx, "-- name: ReadSettings\nSELECT flag, value FROM settings")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := map[string]string{}
	for rows.Next() {
		var s setting
		if err := rows.Scan(&s.flag, &s.value); err != nil {
			return nil, err
		}
		stored[s.flag] = s.value
	}
	return stored, rows.Err()
}

// The whole change is made with the exclusive lock: a commit that had to wait for readers would let nobody begin to read.
const (
	createSettings = `-- name: CreateSettings
CREATE TABLE IF NOT EXISTS settings (
    flag  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT`

	deleteSettings = `-- name: DeleteSettings
DELETE FROM settings`

	insertSetting = `-- name: InsertSetting
INSERT INTO settings (flag, value) VALUES (?1, ?2)`
)

// rewrite fails as busy while anybody holds the agreement.
func (a *agreement) rewrite(ctx context.Context, mine []setting) error {
	if err := a.setPatience(ctx, changePatience); err != nil {
		return err
	}
	_, err := a.conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	if err := errors.Join(err, a.setPatience(ctx, busyTimeout)); err != nil {
		return err
	}
	for _, query := range []string{createSettings, deleteSettings} {
		if _, err := a.conn.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	for _, s := range mine {
		if _, err := a.conn.ExecContext(ctx, insertSetting, s.flag, s.value); err != nil {
			return err
		}
	}
	_, err = a.conn.ExecContext(ctx, "COMMIT")
	return err
}

func (a *agreement) setPatience(ctx context.Context, d time.Duration) error {
	_, err := a.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
	return err
}

func (a *agreement) close() error {
	var err error
	if a.conn != nil {
		err = a.conn.Close()
	}
	return errors.Join(err, a.db.Close())
}

// differing are the flags that differ, and the same in words.
func differing(stored map[string]string, mine []setting) (flags []string, words string) {
	var lines []string
	for _, s := range mine {
		there := stored[s.flag]
		switch {
		case there == s.value:
			continue
		case strings.HasPrefix(s.value, secretHash):
			lines = append(lines, fmt.Sprintf("  %s is another one there", named(s.flag)))
		default:
			lines = append(lines, fmt.Sprintf("  %s is %q there, not %q", named(s.flag), there, s.value))
		}
		flags = append(flags, s.flag)
	}
	return flags, strings.Join(lines, "\n")
}
