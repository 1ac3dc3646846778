package sim

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// statement is what the kernel must know of a SQL text before it runs it.
type statement struct {
	text        string // what is run
	name        string // from "-- name: X", or verb and table
	verb        string
	write       bool
	script      bool   // several statements in one text
	partial     bool   // what it did before an error may stay done
	soils       bool   // leaves something on the connection that outlives the transaction
	locks       bool   // a BEGIN that takes the lock at once
	savepoint   string // of SAVEPOINT, RELEASE and ROLLBACK TO
	hostTime    bool   // reads the clock of the machine that runs the world
	setsTimeout bool
	busyTimeout time.Duration // of PRAGMA busy_timeout, which the kernel keeps to itself
}

var (
	nameComment   = regexp.MustCompile(`(?m)^\s*--\s*name:\s*(\S+)`)
	commentOrText = regexp.MustCompile(`(?s)'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/`)
	tableOf       = regexp.MustCompile(`(?i)\b(?:from|into|update|table(?:\s+if\s+(?:not\s+)?exists)?)\s+(?:or\s+\w+\s+)?(?:main\.)?(?:"([^"]+)"|\x60([^\x60]+)\x60|\[([^\]]+)\]|(\w+))`)
	pragmaOf      = regexp.MustCompile(`(?i)^pragma\s+(?:main\.)?(\w+)`)
	pragmaTimeout = regexp.MustCompile(`(?i)^pragma\s+(?:main\.)?busy_timeout\s*[=(]\s*(\d+)`)
	beginLocks    = regexp.MustCompile(`(?i)^begin\s+(immediate|exclusive)\b`)
	savepointOf   = regexp.MustCompile(`(?i)^(?:savepoint|release(?:\s+savepoint)?|rollback(?:\s+transaction)?\s+to(?:\s+savepoint)?)\s+["\x60\[]?(\w+)`)
	deleteAll     = regexp.MustCompile(`(?i)^delete\s+from\s+\S+$`)
	writes        = regexp.MustCompile(`(?i)\b(insert|update|delete|replace|create|drop|alter)\b`)
	soils         = regexp.MustCompile(`(?i)\b(pragma|attach|detach|temp|temporary)\b`)
	hostClock     = regexp.MustCompile(`(?i)\bcurrent_(timestamp|time|date)\b|\b(date|time|datetime|julianday|unixepoch)\s*\(\s*\)`)
	hostNow       = regexp.MustCompile(`(?i)\b(date|time|datetime|julianday|unixepoch|strftime|timediff)\s*\([^)]*'now'`)
	partial       = regexp.MustCompile(`(?i)\bfail\b`)
)

func parseStatement(query string) *statement {
	text := strings.Trim(commentOrText.ReplaceAllStringFunc(query, func(part string) string {
		if part[0] == '\'' {
			return "''"
		}
		return " "
	}), "; \r\n\t")
	s := &statement{text: query, script: strings.Contains(text, ";")}
	if words := strings.Fields(text); len(words) > 0 {
		s.verb = strings.ToUpper(words[0])
	}
	s.hostTime = hostClock.MatchString(text) || hostNow.MatchString(query)
	s.soils = soils.MatchString(text) && (s.script || !strings.EqualFold(pragma(text), "user_version"))
	if m := pragmaTimeout.FindStringSubmatch(text); m != nil && !s.script {
		ms, _ := strconv.Atoi(m[1])
		s.busyTimeout, s.setsTimeout, s.soils = time.Duration(ms)*time.Millisecond, true, false
	}
	s.locks = beginLocks.MatchString(text)
	if m := savepointOf.FindStringSubmatch(text); m != nil && !s.script {
		s.savepoint = m[1]
	}
	if deleteAll.MatchString(text) {
		s.text = text + " WHERE true" // without it, SQLite drops the pages and reports no row
	}
	s.partial = s.script || partial.MatchString(text)
	s.write = s.verb != "SELECT" && s.verb != "PRAGMA" && s.verb != "EXPLAIN" && writes.MatchString(text)
	s.name = statementName(query, text, s.verb)
	return s
}

func statementName(query, text, verb string) string {
	if m := nameComment.FindStringSubmatch(query); m != nil {
		return m[1]
	}
	if name := pragma(text); name != "" {
		return verb + " " + name
	}
	if m := tableOf.FindStringSubmatch(text); m != nil {
		return verb + " " + strings.Join(m[1:], "")
	}
	return verb
}

func pragma(text string) string {
	if m := pragmaOf.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// endsTx says whether the statement is there to end a transaction.
func (s *statement) endsTx() bool {
	return s.commits() || s.verb == "ROLLBACK" && s.savepoint == ""
}

func (s *statement) commits() bool { return s.verb == "COMMIT" || s.verb == "END" }

func (s *statement) kind() SQLKind {
	switch {
	case s.verb == "BEGIN":
		return SQLBegin
	case s.commits():
		return SQLCommit
	case s.verb == "ROLLBACK":
		return SQLRollback
	case s.write:
		return SQLWrite
	}
	return SQLRead
}
