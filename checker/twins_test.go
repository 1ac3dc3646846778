package checker_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

var update = flag.Bool("update", false, "write what the illegal twins break into testdata; read it before you believe it")

// told are the properties that histories are told for. The others compare whole
// books: see TestBooks.
var told = []string{"charge-once", "closed-is-final", "legal-transitions", "acked-is-durable", "no-call-in-transaction",
	"no-unexplained-error", "linearizable-orders"}

// toldAlone are further ones, whose histories are judged by them alone: those of the
// others leave out what they look at.
var toldAlone = []string{"authentic-only", "same-key-same-answer", "job-exclusive", "definite-answer", "gap-found"}

// whole are those that are told whole histories, with every effect of what happens.
var whole = []string{"effect-once", "refund-bounded", "stock-conserved", "outbox-delivered", "linearizable-stock"}

// judgesOf are the properties that judge the histories told for one; none if it has none.
func judgesOf(property string) []string {
	switch {
	case slices.Contains(told, property):
		return told
	case slices.Contains(whole, property):
		return slices.Concat(told, whole)
	case slices.Contains(toldAlone, property):
		return []string{property}
	}
	return nil
}

// TestTwins judges the histories in testdata, one file for each property. A section
// "legal: ..." breaks nothing. A section "illegal: ..." begins with what it breaks:
//
//	breaks  PROPERTY  STAKE  |  ROLES
//	tells   MESSAGE
//
// and breaks nothing else. The rest is the history; see teller.
func TestTwins(t *testing.T) {
	for _, property := range checker.Properties() {
		judges := judgesOf(property.Name)
		if judges == nil {
			continue
		}
		t.Run(property.Name, func(t *testing.T) {
			file := filepath.Join("testdata", property.Name+".txtar")
			twins, err := txtar.ParseFile(file)
			require.NoError(t, err)
			seen := map[string]int{}
			for i, twin := range twins.Files {
				kind, name, _ := strings.Cut(twin.Name, ": ")
				seen[kind]++
				t.Run(name, func(t *testing.T) {
					verdicts, history := splitTwin(string(twin.Data))
					failures := judge(t, history, judges...)
					if *update {
						verdicts = describe(failures)
						twins.Files[i].Data = []byte(verdicts + history)
					}
					switch kind {
					case "legal":
						require.Empty(t, verdicts, "a legal history breaks nothing")
					case "illegal":
						require.Contains(t, verdicts, "breaks  "+property.Name+"  ")
					default:
						t.Fatalf("a history is legal or illegal, not %q", kind)
					}
					assert.Equal(t, verdicts, describe(failures))
					for _, f := range failures {
						assertTells(t, f)
					}
				})
			}
			if *update {
				require.NoError(t, os.WriteFile(file, txtar.Format(twins), 0o600))
			}
			assert.NotZero(t, seen["legal"])
			assert.NotZero(t, seen["illegal"])
		})
	}
}

// splitTwin cuts a section into its verdicts and its history.
func splitTwin(text string) (verdicts, history string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "breaks ") || strings.HasPrefix(line, "tells ") {
			verdicts += line
		} else {
			history += line
		}
	}
	return verdicts, history
}

// judge tells a history to a checker of some properties that watches, and returns its
// failures. Its first line may be the policy that it goes by.
func judge(t *testing.T, history string, properties ...string) []checker.Failure {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge(properties...)
	evidence.BillsIn("mock", time.UTC)
	history, reinstates := strings.CutPrefix(history, "policy reinstate\n")
	if reinstates {
		evidence.AllowReinstatement()
	}
	require.NoError(t, newTeller(trace).tell(history))
	failures, unknown := evidence.Finish()
	assert.False(t, unknown)
	return failures
}

func describe(failures []checker.Failure) string {
	var b strings.Builder
	for _, f := range failures {
		fmt.Fprintf(&b, "breaks  %s  %s  |  %s\ntells   %s\n", f.Property, f.Stake, f.Roles, f.Message)
	}
	return b.String()
}

var sentences = func() map[string]string {
	all := map[string]string{}
	for _, p := range checker.Properties() {
		all[p.Name] = p.Sentence
	}
	return all
}()

var digit = regexp.MustCompile(`\d`)

// assertTells checks what every failure must say, whatever it is.
func assertTells(t *testing.T, f checker.Failure) {
	assert.Equal(t, f.Property+": "+sentences[f.Property]+": "+f.Message, f.Error())
	assert.NotEmpty(t, sentences[f.Property])
	assert.Contains(t, f.Message, "order "+f.Order)
	assert.Regexp(t, `\d+\.\d\d CNY`, f.Message)
	assert.Positive(t, f.Stake.Cents)
	assert.Positive(t, f.Seq)
	assert.Equal(t, f.Property+" | "+f.Roles, f.Fingerprint())
	assert.NotRegexp(t, digit, f.Fingerprint())
	assert.NotContains(t, f.Fingerprint(), "("+f.Order+")")
}

func TestTellerRefusesNonsense(t *testing.T) {
	for _, line := range []string{"A", "A is-eaten", "x commits cow A 1", "read(A)#1 answers 200", "create(A)#1 sent a-lot", "callback(A)#1 copied", "clock noon"} {
		assert.ErrorContains(t, newTeller(&sim.Trace{}).tell(line), "line 1", line)
	}
}
