package sim

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// statement is what the kernel must know of a SQL text before it runs it.
type statement struct {
	name        string // from "-- name: X", or verb and table
	verb        string
	write       bool
	script      bool          // several statements in one text
	soils       bool          // leaves something on the connection that outlives the transaction
	busyTimeout time.Duration // of PRAGMA busy_timeout, which the kernel keeps to itself
	setsTimeout bool
}

var (
	nameComment   = regexp.MustCompile(`(?m)^\s*--\s*name:\s*(\S+)`)
	comment       = regexp.MustCompile(`(?s)--[^\n]*(\n|$)|/\*.*?\*/`)
	tableOf       = regexp.MustCompile(`(?i)\b(?:from|into|update|table(?:\s+if\s+(?:not\s+)?exists)?)\s+(?:or\s+\w+\s+)?["\x60\[]?(\w+)`)
	pragmaTimeout = regexp.MustCompile(`(?i)^pragma\s+busy_timeout\s*[=(]\s*(\d+)`)
	writes        = regexp.MustCompile(`(?i)\b(insert|update|delete|replace|create|drop|alter)\b`)
)

func parseStatement(query string) *statement {
	text := strings.TrimSpace(comment.ReplaceAllString(query, " "))
	verb, rest, _ := strings.Cut(text, " ")
	s := &statement{verb: strings.ToUpper(strings.TrimRight(verb, ";"))}
	s.script = strings.Contains(strings.TrimRight(text, "; \n\t"), ";")
	switch s.verb {
	case "PRAGMA", "ATTACH", "DETACH":
		s.soils = !strings.Contains(strings.ToLower(rest), "user_version")
	case "CREATE":
		s.soils = strings.HasPrefix(strings.ToUpper(strings.TrimSpace(rest)), "TEMP")
	}
	if m := pragmaTimeout.FindStringSubmatch(text); m != nil && !s.script {
		ms, _ := strconv.Atoi(m[1])
		s.busyTimeout, s.setsTimeout, s.soils = time.Duration(ms)*time.Millisecond, true, false
	}
	s.write = s.verb != "SELECT" && s.verb != "PRAGMA" && s.verb != "EXPLAIN" && writes.MatchString(text)
	s.name = statementName(query, text, s.verb)
	return s
}

func statementName(query, text, verb string) string {
	if m := nameComment.FindStringSubmatch(query); m != nil {
		return m[1]
	}
	if verb == "PRAGMA" {
		word := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" =(;\n\t", r) })
		if len(word) > 1 {
			return verb + " " + word[1]
		}
	}
	if m := tableOf.FindStringSubmatch(text); m != nil {
		return verb + " " + m[1]
	}
	return verb
}

// endsTx says whether the statement is there to end a transaction.
func (s *statement) endsTx() bool { return s.commits() || s.verb == "ROLLBACK" }

func (s *statement) commits() bool { return s.verb == "COMMIT" || s.verb == "END" }
