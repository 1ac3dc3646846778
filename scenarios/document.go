package scenarios

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

// document is an incident file as lines of words: what both its parser and its
// formatter look at.
type document struct {
	story    string // what stands above the first section
	sections []section
}

type section struct {
	name  word
	lines []textLine
	text  string
}

// textLine is one line of a section: words, and a comment with its #.
type textLine struct {
	number  int
	words   []word
	comment string
}

// word is a part of a line as it is written, with its place in the file, from 1.
type word struct {
	text         string
	line, column int
}

// mistake is what is wrong at a place in a file.
type mistake struct {
	line, column int
	message      string
}

func (m *mistake) Error() string { return fmt.Sprintf("%d:%d: %s", m.line, m.column, m.message) }

func (w word) errorf(format string, args ...any) error {
	return &mistake{w.line, w.column, fmt.Sprintf(format, args...)}
}

// readDocument splits a file. There is nothing that it refuses.
func readDocument(text string) document {
	archive := txtar.Parse([]byte(text))
	d := document{story: trimLines(string(archive.Comment))}
	number := 1 + bytes.Count(archive.Comment, []byte("\n"))
	for _, f := range archive.Files {
		s := section{name: word{f.Name, number, 1 + len("-- ")}, text: string(f.Data)}
		for line := range strings.Lines(s.text) {
			number++
			s.lines = append(s.lines, splitLine(number, strings.TrimSuffix(line, "\n")))
		}
		number++
		d.sections = append(d.sections, s)
	}
	return d
}

const blanks = " "

// splitLine splits a line at blanks. A quoted word may hold blanks; a word that
// begins with # begins a comment. That is how faults are read, too.
func splitLine(number int, text string) textLine {
	line := textLine{number: number}
	for i := 0; i < len(text); {
		switch {
		case strings.IndexByte(blanks, text[i]) >= 0:
			i++
		case text[i] == '#':
			line.comment = strings.TrimRight(text[i:], blanks)
			return line
		default:
			end := i + wordLength(text[i:])
			line.words = append(line.words, word{text[i:end], number, 1 + i})
			i = end
		}
	}
	return line
}

func wordLength(text string) int {
	quoted, _ := strconv.QuotedPrefix(text)
	if text[0] != '"' {
		quoted = ""
	}
	if end := strings.IndexAny(text[len(quoted):], blanks); end >= 0 {
		return len(quoted) + end
	}
	return len(text)
}

// trimLines removes what nobody can see: blanks at the ends of lines, and empty
// lines at the end.
func trimLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(line, blanks+"\n"))
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// columnsOf says how many words of a section's lines stand in columns.
var columnsOf = map[string]int{"setup": 1, "timeline": 3, "faults": 3, "expect": 2}

// String returns the document in its canonical layout.
func (d document) String() string {
	var b strings.Builder
	if d.story != "" {
		b.WriteString(d.story + "\n")
	}
	for _, s := range d.sections {
		fmt.Fprintf(&b, "-- %s --\n", s.name.text)
		b.WriteString(layOut(s.lines, columnsOf[s.name.text]))
	}
	return b.String()
}

// layOut aligns the first columns of lines, and the comments behind them.
func layOut(lines []textLine, columns int) string {
	bodies := alignColumns(lines, columns)
	width := 0
	for i, l := range lines {
		if l.comment != "" {
			width = max(width, utf8.RuneCountInString(bodies[i]))
		}
	}
	var b strings.Builder
	for i, l := range lines {
		text := bodies[i]
		if text != "" && l.comment != "" {
			text = pad(text, width)
		}
		b.WriteString(text + l.comment + "\n")
	}
	if text := squeeze(b.String()); text != "" {
		return text + "\n"
	}
	return ""
}

// alignColumns returns each line's words as one text.
func alignColumns(lines []textLine, columns int) []string {
	widths := make([]int, columns)
	for _, l := range lines {
		for i, w := range l.words[:min(columns, len(l.words))] {
			if i+1 < len(l.words) {
				widths[i] = max(widths[i], utf8.RuneCountInString(w.text))
			}
		}
	}
	var bodies []string
	for _, l := range lines {
		body := ""
		for i, w := range l.words {
			switch {
			case i+1 == len(l.words):
				body += w.text
			case i < columns:
				body += pad(w.text, widths[i])
			default:
				body += w.text + " "
			}
		}
		bodies = append(bodies, body)
	}
	return bodies
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text))+2)
}

// squeeze leaves at most one empty line between others, and none around them.
func squeeze(text string) string {
	lines := slices.CompactFunc(strings.Split(text, "\n"), func(a, b string) bool { return a == "" && b == "" })
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
