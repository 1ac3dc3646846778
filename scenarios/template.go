package scenarios

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed template.txtar
var template string

// Template returns an incident file to begin with.
func Template(name string) (string, error) {
	if !wordPattern.MatchString(name) {
		return "", fmt.Errorf("%q is no name for an incident, such as late-callback-after-close", name)
	}
	return strings.Replace(template, "NAME", strings.ToUpper(name[:1])+strings.ReplaceAll(name[1:], "-", " "), 1), nil
}
