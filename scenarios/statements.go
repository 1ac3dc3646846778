package scenarios

import (
	_ "embed"
	"strings"
)

// statementNames lists the named statements of the system, the channel and the stock
// service, FOLDER/NAME. A test writes it from the sources.
//
//go:embed statements.txt
var statementNames string

// statementsWithout returns the named statements that are not among those reached.
func statementsWithout(reached map[string]bool) []string {
	missed := []string{}
	for name := range strings.Lines(statementNames) {
		if name = strings.TrimSpace(name); !reached[name] {
			missed = append(missed, name)
		}
	}
	return missed
}
