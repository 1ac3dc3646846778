package scenarios

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateFlag = flag.Bool("update", false, "rewrite statements.txt from the sources")

var statementName = regexp.MustCompile(`-- name: (\w+)`)

// The list of statements is that of the sources that run in a world.
func TestStatementsAreThoseOfTheSources(t *testing.T) {
	var names []string
	root := os.DirFS("..")
	require.NoError(t, fs.WalkDir(root, "system", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(file, "_test.go") || slices.Contains(outside, path.Dir(file)) {
			return err
		}
		text, err := fs.ReadFile(root, file)
		for _, m := range statementName.FindAllSubmatch(text, -1) {
			names = append(names, path.Dir(file)+"/"+string(m[1]))
		}
		return err
	}))
	slices.Sort(names)
	want := strings.Join(slices.Compact(names), "\n") + "\n"
	if *updateFlag {
		require.NoError(t, os.WriteFile("statements.txt", []byte(want), 0o644))
		return
	}
	require.Equal(t, want, statementNames, "go test ./scenarios -run TestStatements -update")
}

// outside are the folders whose code no node of a world runs.
var outside = []string{"system/embedded", "system/conformance"}
