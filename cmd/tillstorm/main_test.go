package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/scenarios"
	"github.com/tillstorm/tillstorm/sim"
)

// command runs a command line and returns what it prints and how it ends.
func command(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

const payFile = "../../scenarios/incidents/pay.txtar"

// jsonOf runs a command line that prints one JSON object, which must have the keys.
func jsonOf(t *testing.T, keys string, args ...string) (report map[string]any, err error) {
	stdout, _, err := command(t, args...)
	require.NoError(t, json.Unmarshal([]byte(stdout), &report), "one JSON object and nothing else")
	for _, key := range strings.Fields(keys) {
		assert.Contains(t, report, key)
	}
	return report, err
}

func TestRunAndSweepJSONHaveTheContractsKeys(t *testing.T) {
	const keys = `seeds passed broken unknown stale nondeterministic failures steps statements
		sim_ns wall_ns trace_hash faults_fired probes unreached`
	for _, args := range [][]string{{"sweep", "--seeds", "1-3", "--json"}, {"run", payFile, "--seeds", "1-3", "--json"}} {
		report, err := jsonOf(t, keys, args...)
		require.NoError(t, err)
		assert.EqualValues(t, 3, report["passed"])
	}
}

func TestCrashJSONHasTheContractsKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "short.txtar")
	const text = "-- setup --\norder A 1.00 CNY\n-- timeline --\n14:00:00.000 buyer creates A\n14:00:00.100 buyer cancels A\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	report, err := jsonOf(t, "points replies tried broken stale depth failures statements_without_point", "crash", file, "--depth", "2", "--budget", "3", "--json")
	require.NoError(t, err)
	assert.Equal(t, report["points"].(float64)+report["replies"].(float64)+3, report["tried"])
}

// A fault of a file that never comes is stale: it proves nothing any more.
func TestRunOfAFileWhoseFaultNeverComes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stale.txtar")
	const text = "-- setup --\norder A 1.00 CNY\n-- timeline --\n14:00:00.000 buyer creates A\n-- faults --\nnetwork drops callback(A)#1\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	report, err := jsonOf(t, "", "run", file, "--json")
	require.Equal(t, verdictError{scenarios.Stale}, err)
	assert.Equal(t, []any{"network  drops  callback(A)#1"}, report["unreached"])
	failure := report["failures"].([]any)[0].(map[string]any)
	assert.Equal(t, file, failure["file"])
	assert.Equal(t, "stale", failure["property"])
	assert.Equal(t, "go run ./cmd/tillstorm replay "+file, failure["repro"])
	_, _, err = command(t, "replay", file)
	assert.Equal(t, verdictError{scenarios.Stale}, err)

	_, _, err = command(t, "fmt", file)
	require.NoError(t, err)
	formatted, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(formatted), "\n14:00:00.000  buyer  creates  A\n")
}

// The verdict comes first. Of a pass, faults are what it went through; of a broken run, what
// went wrong.
func TestReplayBeginsWithTheVerdict(t *testing.T) {
	stdout, _, err := command(t, "replay", "--seed", "1")
	require.NoError(t, err)
	assert.Regexp(t, `^pass: seed 1: \d+ steps, `, stdout)
	assert.Contains(t, stdout, "\n\nthe faults that it went through:\n  ")
	assert.NotContains(t, stdout, "went wrong")
	assert.Regexp(t, `\n  and \d+ more, lighter or of more frequent kinds\n$`, stdout)
	stdout, _, err = command(t, "replay", payFile)
	require.NoError(t, err)
	assert.NotContains(t, stdout, "faults", "it has none")

	broken := &scenarios.Result{Case: scenarios.Case{Seed: 7}, Verdict: scenarios.Broken, Trace: &sim.Trace{}, Failures: []checker.Failure{{Seq: 1}}}
	broken.Trace.Append(sim.Record{})
	broken.Fired = []faults.Firing{{Perturbation: faults.Perturbation{Kind: faults.Drop, At: "create(A)#1"}}}
	var out bytes.Buffer
	require.Equal(t, verdictError{scenarios.Broken}, printRun(&out, broken))
	assert.Regexp(t, `^broken: seed 7: (.*\n)+\nwhat went wrong:\n  .* drops  create\(A\)#1\n\nseed 7: `, out.String())
}

// What is added to a file must come to pass; it may keep the file's own faults from it.
func TestReplayOfAFileWithAFault(t *testing.T) {
	stdout, _, err := command(t, "replay", payFile, "--fault", "shop-1 crashes callback(A)#1/COMMIT:before restarts 1s")
	require.NoError(t, err)
	assert.Contains(t, stdout, "shop-1  crashes  callback(A)#1/COMMIT:before  restarts 1s\n")
	_, _, err = command(t, "replay", payFile, "--fault", "network drops callback(A)#77")
	assert.Equal(t, verdictError{scenarios.Stale}, err)
}

func TestReplayGivesTheSweepsTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1.jsonl")
	first, _, err := command(t, "replay", "--seed", "1", "--trace", file)
	require.NoError(t, err)
	second, _, err := command(t, "replay", "--seed", "1")
	require.NoError(t, err)
	assert.Equal(t, first, second)
	assert.Contains(t, first, "pass: ")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		require.True(t, json.Valid(line), "%s", line)
	}
	text2, _, err := command(t, "replay", "--seed", "1", "--trace", "-")
	require.NoError(t, err)
	records := 0
	for line := range strings.Lines(text2) {
		if !strings.HasPrefix(line, "    ") { // a panic's stack goes on below its record
			records++
		}
	}
	assert.Equal(t, bytes.Count(text, []byte("\n")), records, "the trace alone, one record after the other")
}

func TestReplayOverWAL(t *testing.T) {
	swept, _, err := command(t, "sweep", "--seeds", "1", "--db", "wal")
	require.NoError(t, err)
	assert.Contains(t, swept, "profile storm over wal")
	inMemory, _, err := command(t, "replay", "--seed", "1")
	require.NoError(t, err)
	again, _, err := command(t, "replay", "--seed", "1", "--journal", "wal")
	require.NoError(t, err)
	assert.NotEqual(t, inMemory, again)
	for _, journal := range []string{"wal", "memdb"} {
		_, _, err = command(t, "replay", "--seed", "1", "--db", journal)
		assert.EqualError(t, err, "unknown flag: --db: how the databases lock is --journal memdb or --journal wal here")
	}
	for name, elsewhere := range map[string]string{"sweep": "like replay's --journal", "replay": "like sweep's --db"} {
		help, _, err := command(t, name, "--help")
		require.NoError(t, err)
		assert.Contains(t, help, elsewhere)
	}
}

// Failures of one kind are told once, with the seeds or files that the others are at.
func TestFailuresOfOneKindNameTheirRuns(t *testing.T) {
	at := func(file string, seeds ...uint64) (failures []scenarios.SeedFailure) {
		for _, seed := range seeds {
			failures = append(failures, scenarios.SeedFailure{File: file, Seed: seed, Text: "told", Fingerprint: "kind"})
		}
		return failures
	}
	for _, one := range []struct {
		failures []scenarios.SeedFailure
		told     string
	}{
		{at("", 1), "told\n"},
		{at("", 1, 1, 4), "told\n  (3 failures of this kind; seeds: 1, 4)\n\n"},
		{at("", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), "told\n  (12 failures of this kind; seeds: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more)\n\n"},
		{append(at("a.txtar", 0), at("b.txtar", 3)...), "told\n  (2 failures of this kind; files: a.txtar, b.txtar seed 3)\n\n"},
	} {
		var out bytes.Buffer
		printFailures(&out, one.failures)
		assert.Equal(t, one.told, out.String())
	}
}

func TestJUnitReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.xml")
	_, _, err := command(t, "sweep", "--seeds", "1-2", "--junit", file)
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), `<testsuite name="sweep storm 1-2" tests="1" failures="0"`)
}

func TestBadUsageIsExitCode2(t *testing.T) {
	for _, args := range [][]string{
		{"nonsense"}, {"sweep", "extra"}, {"sweep", "--nonsense"}, {"sweep", "--seeds", "5-1"}, {"sweep", "--seeds", "abc"},
		{"sweep", "--profile", "nonsense"}, {"sweep", "--db", "disk"}, {"sweep", "--shard", "3/2"}, {"sweep", "--for", "-1s"}, {"sweep", "--workers", "-1"},
		{"sweep", "--seeds", "1-2", "--shard", "8/8"}, {"sweep", "--seeds", "1-2", "--for", "1ns"},
		{"sweep", "--seeds", "1", "--junit", "/no/such/folder/r.xml"}, {"replay"}, {"replay", "--seed", "x"}, {"replay", "--seed", "1", "--profile", "nonsense"},
		{"replay", "--seed", "1", "--trace", "/no/such/folder/t.txt"}, {"replay", "--seed", "1", "--fault", "network drops callback(A)#1"},
		{"replay", payFile, "--fault", "nonsense"}, {"run"}, {"run", "/no/such/file.txtar"}, {"run", "main_test.go"}, {"run", payFile, "--seeds", "x"},
		{"fmt"}, {"fmt", "main_test.go"}, {"crash"}, {"crash", payFile, "--depth", "3"}, {"crash", payFile, "--budget", "-1"},
	} {
		assert.Equal(t, exitInvalid, run(t.Context(), args), "%v", args)
	}
}

func TestVerdictsHaveTheContractsExitCodes(t *testing.T) {
	want := map[scenarios.Verdict]int{scenarios.Pass: 0, scenarios.Broken: 1, scenarios.Unknown: 3, scenarios.Stale: 4, scenarios.Nondeterministic: 5}
	for verdict, code := range want {
		assert.Equal(t, code, verdict.ExitCode(), verdict)
	}
}

// Who gives several faults is told which one is wrong.
func TestFaultErrorsShowTheLine(t *testing.T) {
	for line, why := range map[string]string{
		"network dorps callback(A)#1":     `1:9: unknown verb "dorps"`,
		"clock skews shop-7 by 1s for 1s": `1:13: unknown node "shop-7"`,
		"network drops callback(A)#1":     "1:1: this fault stands here a second time",
	} {
		_, _, err := command(t, "replay", payFile, "--fault", "network drops callback(A)#1", "--fault", line)
		assert.ErrorContains(t, err, `--fault "`+line+`": `+why)
	}
}

// What tillstorm faults gives as examples can be tried on an incident as it stands.
func TestExamplesOfFaultsFitAnIncident(t *testing.T) {
	for _, p := range faults.Placeholders() {
		_, err := fileCase(payFile, []string{p.Example})
		assert.NoError(t, err, p.Word)
	}
}

func TestLists(t *testing.T) {
	stdout, _, err := command(t, "faults")
	require.NoError(t, err)
	assert.Regexp(t, `duplicate +network duplicates MESSAGE after DURATION +a request arrives once more\n`, stdout)
	assert.Contains(t, stdout, "\n\nMESSAGE  ", "what its words stand for")
	assert.Regexp(t, `\nPART +wechat misfiles-row A-1 in trade +what is wrong in the bill's row: trade, order, currency\n`, stdout)
	stdout, _, err = command(t, "verbs")
	require.NoError(t, err)
	assert.Contains(t, stdout, "buyer pays ORDER [CHANNEL] [attempt N]")
	stdout, _, err = command(t, "invariants")
	require.NoError(t, err)
	assert.Contains(t, stdout, "closed-is-final")
}
