package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseIncident reads an incident file. name is the file's, for errors and reports;
// an error is "name:line:column: message".
func ParseIncident(name, text string) (*Incident, error) {
	p := &parser{x: &Incident{Name: name}, created: map[string]time.Duration{}, said: map[string]bool{}}
	if err := p.parse(readDocument(text)); err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	return p.x, nil
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
