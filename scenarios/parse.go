package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ParseIncident reads an incident file. name is the file's, for errors and reports;
// an error is "name:line:column: message".
func ParseIncident(name, text string) (*Incident, error) {
	p := &parser{x: &Incident{Name: name}, created: map[string]time.Duration{}, said: map[string]bool{}}
	err := checkText(text)
	if err == nil {
		err = p.parse(readDocument(text))
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return p.x, nil
}

// maxBytes is how large a file may be.
const maxBytes = 1_000_000

// checkText refuses what is no text of plain lines, at the first place that shows it.
func checkText(text string) error {
	if len(text) >= maxBytes {
		return word{line: 1, column: 1}.errorf("the file has %d bytes; an incident has less than %d", len(text), maxBytes)
	}
	number := 0
	for line := range strings.Lines(text) {
		number++
		for column, r := range line {
			if mistake := characterMistake(r, line[column:]); mistake != "" {
				return word{line: number, column: 1 + column}.errorf("%s", mistake)
			}
		}
	}
	return nil
}

func characterMistake(r rune, rest string) string {
	switch {
	case r == '\t':
		return "here is a tab: columns are made of blanks; 'tillstorm fmt' makes them"
	case r == '\r':
		return "here is a carriage return: lines end in a line feed alone; 'tillstorm fmt' makes them"
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\uFFFD"):
		return fmt.Sprintf("the byte %#02x is no text in UTF-8: is this an incident file?", rest[0])
	case r != '\n' && unicode.IsControl(r), r == '\uFEFF', r != ' ' && unicode.IsSpace(r) && r != '\n':
		return fmt.Sprintf("the character %U can't be seen, and has no place here", r)
	}
	return ""
}

// plainText replaces what fmt can: tabs and carriage returns.
func plainText(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\t", " ").Replace(text)
}

// parser fills in an incident.
type parser struct {
	x       *Incident
	numbers []word                   // of the orders, where they are declared
	expires map[string]cursor        // what stands after expires, by order
	created map[string]time.Duration // by order
	said    map[string]bool          // what may be said once
	last    time.Duration            // of the lines of the timeline so far
	pins    []word                   // where each stands
}

// sectionNames are the sections in the order in which they are read, wherever they
// stand.
var sectionNames = []string{"setup", "timeline", "faults", "expect"}

func (p *parser) parse(d document) error {
	if err := checkStory(d.story); err != nil {
		return err
	}
	found := map[string]section{}
	for _, s := range d.sections {
		if !slices.Contains(sectionNames, s.name.text) {
			return s.name.errorf("%s", unknownName("section", s.name.text, sectionNames))
		}
		if _, twice := found[s.name.text]; twice {
			return s.name.errorf("the section %q stands here a second time", s.name.text)
		}
		found[s.name.text] = s
	}
	p.x.Story = d.story
	if err := p.setup(found["setup"]); err != nil {
		return err
	}
	if err := p.timeline(found["timeline"]); err != nil {
		return err
	}
	if err := p.faults(found["faults"]); err != nil {
		return err
	}
	return p.expect(found["expect"])
}

// checkStory refuses text above the sections that is no comment: it is more likely a
// section without its head.
func checkStory(story string) error {
	number := 0
	for line := range strings.Lines(story) {
		number++
		if line != "\n" && line[0] != '#' {
			return word{line: number, column: 1}.errorf("above the first section there are only comments, which begin with #")
		}
	}
	return nil
}

// faults reads the plan. Its errors have lines and columns of their own.
func (p *parser) faults(s section) error {
	plan, err := p.x.ParseFaults(s.text, nil)
	if err == nil {
		p.x.Faults = plan
		return nil
	}
	line, rest, _ := strings.Cut(err.Error(), ":")
	column, message, _ := strings.Cut(rest, ": ")
	n, errLine := strconv.Atoi(line)
	m, errColumn := strconv.Atoi(column)
	if errors.Join(errLine, errColumn) != nil {
		return s.name.errorf("%v", err)
	}
	return word{line: s.name.line + n, column: m}.errorf("%s", message)
}
