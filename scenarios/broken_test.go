package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// Each file of testdata/broken has one thing wrong, and says in its first line what is told
// of it; @ stands for a character that no file can show: see unshown.
func TestBrokenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txt")
	require.NoError(t, err)
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, one := range splitCases(string(text)) {
			count++
			assertBroken(t, one.text, one.err)
		}
	}
	for text, told := range unshown() {
		count++
		assertBroken(t, text, told)
	}
	assert.Greater(t, count, 60)
}

var oneError = regexp.MustCompile(`^f\.txtar:\d+:\d+: [^\n]+$`)

func assertBroken(t *testing.T, text, told string) {
	t.Helper()
	_, err := ParseIncident("f.txtar", text)
	if assert.Error(t, err, text[:min(200, len(text))]) {
		assert.Equal(t, "f.txtar:"+told, err.Error(), text[:min(400, len(text))])
		assert.Regexp(t, oneError, err.Error())
	}
}

type brokenCase struct{ err, text string }

// splitCases reads cases: a line "=== ERROR", and the file below it.
func splitCases(text string) (cases []brokenCase) {
	for part := range strings.SplitSeq(text, "=== ") {
		if told, file, ok := strings.Cut(part, "\n"); ok && told != "" {
			cases = append(cases, brokenCase{told, file})
		}
	}
	return cases
}

// unshown are files with what an editor does not show, by their text.
func unshown() map[string]string {
	const head, tail = "# x\n-- setup --\n", "\n-- timeline --\n14:00:00.021 buyer creates A\n"
	return map[string]string{
		"":                                    "1:1: there is no timeline: nothing would happen",
		"\n\n":                                "1:1: there is no timeline: nothing would happen",
		"\x7fELF\x02\x01":                     "1:1: the character U+007F can't be seen, and has no place here",
		"\x89PNG\r\n":                         "1:1: the byte 0x89 is no text in UTF-8: is this an incident file?",
		strings.Repeat("x", 1_000_000):        "1:1: the file has 1000000 bytes; an incident has less than 1000000",
		head + "order A 1.00 CNY\r" + tail:    "3:17: here is a carriage return: lines end in a line feed alone; 'tillstorm fmt' makes them",
		head + "order\tA 1.00 CNY" + tail:     "3:6: here is a tab: columns are made of blanks; 'tillstorm fmt' makes them",
		head + "order A 1.00\u00a0CNY" + tail: "3:13: the character U+00A0 can't be seen, and has no place here",
		head + "order A 1.00 CNY\x00" + tail:  "3:17: the character U+0000 can't be seen, and has no place here",
		"\ufeff" + head + "order A 1.00 CNY" + tail:                                         "1:1: the character U+FEFF can't be seen, and has no place here",
		head + "order A 1.00 CNY" + tail + "-- faults --\nnetwork drops callback(\xff)#1\n": "7:24: the byte 0xff is no text in UTF-8: is this an incident file?",
	}
}

// What has tabs and carriage returns is formatted, and is right then.
func TestFormatMakesPlainText(t *testing.T) {
	text, err := FormatIncident("f.txtar", "-- setup --\r\norder\tA\t1.00 CNY\r\n-- timeline --\r\n14:00:00.021\tbuyer creates A\r\n")
	require.NoError(t, err)
	assert.Equal(t, "-- setup --\norder  A 1.00 CNY\n-- timeline --\n14:00:00.021  buyer  creates  A\n", text)
	assert.Empty(t, txtar.Parse([]byte(text)).Comment)
}
