package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// The routes are declared once; the page, the help and GET / tell the same ones.
func TestRoutesAreToldEverywhere(t *testing.T) {
	t.Parallel()
	shop := serveOn(t, t.TempDir())
	_, index, err := get(shop.url + "/")
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile(`(?m)^\| (GET|POST) \| (\S+) \| (.*) \|$`).FindAllStringSubmatch(readFile(t, "../../docs/till.md"), -1) {
		documented = append(documented, fmt.Sprintf("  %-4s %-38s %s\n", row[1], row[2], row[3]))
		path, _, _ := strings.Cut(strings.ReplaceAll(row[2], "{channel}", "mock"), "?")
		require.Contains(t, index, fmt.Sprintf(`{"method":%q,"path":%q`, row[1], path))
	}
	require.Equal(t, routesHelp(), strings.Join(documented, ""))
	require.Equal(t, len(documented), strings.Count(index, `"method"`))
	help, _, code := output(t, "serve", "--help")
	require.Zero(t, code)
	require.Contains(t, help, routesHelp())
}

// Every code that a service writes is on the page.
func TestCodesAreDocumented(t *testing.T) {
	page := readFile(t, "../../docs/till.md")
	written := regexp.MustCompile(`(?:Errorf\(http\.Status\w+, |checkName\([^,]+, |refuse\()"([a-z_]+)"`)
	documented := regexp.MustCompile(`[a-z_]+`).FindAllString(page, -1)
	var codes int
	for _, pattern := range []string{"*.go", "../../system/*.go", "../../system/httpjson/*.go", "../../system/inventory/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, found := range written.FindAllStringSubmatch(readFile(t, file), -1) {
				codes++
				require.True(t, slices.Contains(documented, found[1]), "%s answers with %s, which docs/till.md doesn't have", file, found[1])
			}
		}
	}
	require.Greater(t, codes, 40)
}

func TestSettingsAreDocumented(t *testing.T) {
	page := readFile(t, "../../docs/till.md")
	shared := map[string]bool{}
	for _, s := range (&options{}).settings() {
		shared[s.flag] = true
	}
	newServe().Flags().VisitAll(func(flag *pflag.Flag) {
		row := strings.TrimRight(fmt.Sprintf("| --%s | %s | %s", flag.Name, variable(flag.Name), strings.Trim(flag.DefValue, "[]")), " ") + " |"
		require.Contains(t, page, row)
		_, rest, _ := strings.Cut(page, row)
		line, _, _ := strings.Cut(rest, "\n")
		require.Equal(t, shared[flag.Name], strings.Contains(line, "**shared**"), flag.Name)
	})
}

// The lines of the README, word for word: an order is paid through the channel, and its money goes back.
func TestTheCurlFlowOfTheReadme(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(readFile(t, "../../README.md"), "## The service itself")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(section, -1)
	wants := []string{`"status":"CREATED"`, `"state":"SUCCESS"`, `"status":"PAID"`, `"refundNo"`, `"state":"SUCCEEDED"`}
	require.Len(t, lines, len(wants))
	data := t.TempDir()
	shop := serveOn(t, data)
	for n, line := range lines {
		var answer string
		require.Eventually(t, func() bool { // the callback and the refund take a moment
			answer = shop.shell(t, line)
			return strings.Contains(answer, wants[n])
		}, 20*time.Second, 50*time.Millisecond, "%s", line)
	}
	_, alerts, err := get(shop.url + "/alerts")
	require.NoError(t, err)
	require.JSONEq(t, `{"alerts":[],"next":0}`, alerts)
	require.Zero(t, shop.end(syscall.SIGTERM))
}
