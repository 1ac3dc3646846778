package faults

import (
	"fmt"
	"strconv"
	"strings"
)

// word is a part of a line, with the column where it begins, from 1.
type word struct {
	text   string
	column int
}

type wordError struct {
	column  int
	message string
}

func (e *wordError) Error() string { return fmt.Sprintf("%d: %s", e.column, e.message) }

func (w word) errorf(format string, args ...any) error {
	return &wordError{w.column, fmt.Sprintf(format, args...)}
}

const blanks = " \t\r"

// splitWords splits a line at blanks. A quoted word may hold blanks; a word that
// begins with # begins a comment.
func splitWords(line string) ([]word, error) {
	var words []word
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case strings.IndexByte(blanks, c) >= 0:
			i++
		case c == '#':
			return words, nil
		case c == '"':
			quoted, err := strconv.QuotedPrefix(line[i:])
			if err != nil {
				return nil, word{column: i + 1}.errorf("the quote is never closed, or has an escape that Go does not know")
			}
			text, _ := strconv.Unquote(quoted)
			words = append(words, word{text, i + 1})
			if i += len(quoted); i < len(line) && strings.IndexByte(blanks, line[i]) < 0 {
				return nil, word{column: i + 1}.errorf("a blank must follow a quoted word")
			}
		default:
			end := strings.IndexAny(line[i:], blanks)
			if end < 0 {
				end = len(line) - i
			}
			words = append(words, word{line[i : i+end], i + 1})
			i += end
		}
	}
	return words, nil
}
