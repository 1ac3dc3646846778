package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each defect that comes with the sources applies to them as they are.
func TestDefectsApply(t *testing.T) {
	all, err := ReadDefects("defects")
	require.NoError(t, err)
	for _, d := range all {
		_, err := d.Plant("..", t.TempDir())
		assert.NoError(t, err)
	}
}

const twoLines = "It forgets the third\n\nCaught by: charge-once or no-orphan-money\n\n" +
	"--- a/system/x.go\n+++ b/system/x.go\n@@ -2,3 +2,2 @@\n two\n-three\n four\n"

func TestPlantFindsMovedLines(t *testing.T) {
	root, folder := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "system"), 0o700))
	plant := func(source string) (string, error) {
		require.NoError(t, os.WriteFile(filepath.Join(root, "system", "x.go"), []byte(source), 0o600))
		d, err := ParseDefect("dir/forgets.patch", twoLines)
		require.NoError(t, err)
		require.Equal(t, "forgets", d.Name)
		require.Equal(t, []string{"charge-once", "no-orphan-money"}, d.Properties)
		overlay, err := d.Plant(root, folder)
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(overlay)
		require.NoError(t, err)
		require.Contains(t, string(text), filepath.Join(root, "system", "x.go"))
		planted, err := os.ReadFile(filepath.Join(folder, "0-x.go"))
		require.NoError(t, err)
		return string(planted), nil
	}
	for _, c := range []struct{ source, planted string }{
		{"one\ntwo\nthree\nfour\n", "one\ntwo\nfour\n"},
		{"zero\nand\none\ntwo\nthree\nfour\n", "zero\nand\none\ntwo\nfour\n"},
		{"two\nthree\nfour\ntwo\nthree\nfour\n", "two\nfour\ntwo\nthree\nfour\n"},
	} {
		planted, err := plant(c.source)
		require.NoError(t, err)
		assert.Equal(t, c.planted, planted)
	}
	_, err := plant("one\ntwo\n3\nfour\n")
	assert.EqualError(t, err, `dir/forgets.patch:7: it does not apply to system/x.go: the lines from 2 on, beginning with "two", are not there any more`)
}

func TestDefectErrors(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"", "d.patch:1: the first line must say what is wrong with the system"},
		{"Caught by: charge-once\n", "d.patch:1: the first line must say what is wrong with the system"},
		{"Title\n", `d.patch:2: no line says which property must catch it, as in "Caught by: charge-once"`},
		{"Title\n\nCaught by: charge-twice\n", `d.patch:3: unknown property "charge-twice"; there are charge-once`},
		{"Title\n\nCaught by: charge-once\n", "d.patch:4: there is no diff"},
		{"Title\n\nCaught by: charge-onec\n", `d.patch:3: unknown property "charge-onec", do you mean "charge-once"?`},
		{"Title\n\nCaught by: charge-once\n\n--- a/sim/x.go\n+++ b/sim/x.go\n@@ -1 +1 @@\n-a\n+b\n", "d.patch:5: a defect changes or adds text files of system/, not sim/x.go"},
		{"Title\n\nCaught by: charge-once\n\n--- a/system/../sim/x.go\n+++ b/system/../sim/x.go\n@@ -1 +1 @@\n-a\n+b\n", "d.patch:5: a defect changes or adds text files of system/, not system/../sim/x.go"},
		{"Title\n\nCaught by: charge-once\n\n--- a/system/x.go\n+++ b/system/x.go\n@@ -1,7 +1 @@\n-a\n+b\n", "d.patch:8: fragment header miscounts lines"},
		{"Title\n\nCaught by: charge-once\n\n--- a/system/x.go\r\n+++ b/system/x.go\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", `d.patch:5: here is a carriage return: lines end in a line feed alone; sed -i 's/\r$//' d.patch makes them`},
	} {
		_, err := ParseDefect("d.patch", c.text)
		assert.ErrorContains(t, err, c.err)
	}
	_, err := ReadDefects(t.TempDir())
	assert.ErrorContains(t, err, "has no defects: they are files NAME.patch")
}

// All mistakes in the files of a folder are told at once.
func TestAllBrokenDefectsAreTold(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"good.patch": twoLines, "moved.patch": strings.Replace(twoLines, "x.go", "callback.go", 2), "no-title.patch": "\n" + twoLines,
		"other-property.patch": strings.Replace(twoLines, "charge-once", "charge-onec", 1),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	all, err := ReadDefects(folder)
	require.Len(t, all, 2)
	assert.ErrorContains(t, err, "no-title.patch:1: ")
	assert.ErrorContains(t, err, "other-property.patch:3: ")
	err = CheckDefects(t.Context(), all)
	assert.ErrorContains(t, err, filepath.Join(folder, "good.patch")+":7: it does not apply to system/x.go: open ")
	assert.ErrorContains(t, err, `moved.patch:7: it does not apply to system/callback.go: the lines from 2 on, beginning with "two"`)

	all, err = ReadDefects(folder, "good")
	require.NoError(t, err)
	assert.Len(t, all, 1)
	_, err = ReadDefects(folder, "goed")
	assert.EqualError(t, err, `unknown defect "goed", do you mean "good"?`)
}

// A defect is named, or is a file anywhere.
func TestReadDefect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.patch")
	require.NoError(t, os.WriteFile(file, []byte(twoLines), 0o600))
	d, err := readDefect("..", file)
	require.NoError(t, err)
	assert.Equal(t, "mine", d.Name)
	d, err = readDefect("..", "late-success-ignored")
	require.NoError(t, err)
	assert.Equal(t, []string{"no-orphan-money"}, d.Properties)
	for name, why := range map[string]string{
		"late-success-ignord": `unknown defect "late-success-ignord", do you mean "late-success-ignored"?`,
		"first-page":          "are books-first-page, recon-first-page, scan-one-page; 'ls scenarios/defects' lists all",
		"no/such":             "open no/such: no such file or directory",
		"no-such.patch":       "open no-such.patch: no such file or directory",
		"defect_test.go/":     "open defect_test.go/: not a directory",
		"./defects/../doc.go": "./defects/../doc.go:2: no line says which property must catch it",
	} {
		_, err := readDefect("..", name)
		assert.ErrorContains(t, err, why)
	}
}

func TestHuntSplitsItsSeeds(t *testing.T) {
	assert.Equal(t, []Seeds{{1, 200}, {201, 400}, {401, 600}, {601, 800}, {801, 1000}}, Hunt{Seeds: Seeds{1, 1000}}.ranges())
	assert.Equal(t, []Seeds{{7, 7}, {8, 8}}, Hunt{Seeds: Seeds{7, 8}}.ranges())
}
