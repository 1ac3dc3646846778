package checker_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// TestProbes tells the histories of testdata/probes.txtar, one for each probe in the
// order of the list. A section begins with what it reaches, and how often.
func TestProbes(t *testing.T) {
	const file = "testdata/probes.txtar"
	told, err := txtar.ParseFile(file)
	require.NoError(t, err)
	var names []string
	for i, section := range told.Files {
		names = append(names, section.Name)
		t.Run(section.Name, func(t *testing.T) {
			want, history := splitProbe(string(section.Data))
			trace := &sim.Trace{}
			evidence := checker.New(trace)
			require.NoError(t, newTeller(trace).tell(history))
			reached := describeProbes(evidence.Probes())
			if *update {
				told.Files[i].Data, want = []byte(reached+history), reached
			}
			assert.Equal(t, want, reached)
			assert.Positive(t, evidence.Probes()[section.Name])
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(file, txtar.Format(told), 0o600))
	}
	var all []string
	for _, p := range checker.Probes() {
		all = append(all, p.Name)
	}
	assert.Equal(t, all, names, "each probe has its history")
	assert.GreaterOrEqual(t, len(all), 40)
}

func splitProbe(text string) (reaches, history string) {
	if first, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "reaches ") {
		return first + "\n", rest
	}
	return "", text
}

func describeProbes(probes map[string]int) string {
	var reached []string
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		if n := probes[name]; n > 0 {
			reached = append(reached, fmt.Sprintf("%s %d", name, n))
		}
	}
	return "reaches  " + strings.Join(reached, "; ") + "\n"
}

func TestOperations(t *testing.T) {
	trace := &sim.Trace{}
	evidence := checker.New(trace)
	ask := func(task, exchange string, status int) {
		m := &sim.Message{Exchange: exchange, Leg: sim.Request, From: "buyer", To: "shop", Method: "POST"}
		trace.Append(sim.Record{Node: "buyer", Task: task, Event: sim.EventSend, Op: exchange, Message: m})
		if status != 0 {
			answer := &sim.Message{Exchange: exchange, Leg: sim.Answer, From: "shop-1", To: "buyer", Status: status}
			trace.Append(sim.Record{Node: "buyer", Event: sim.EventDeliver, Op: answer.Name(), Message: answer})
		}
	}
	ask("creates(A)#1", "create(A)#1", 500)
	ask("creates(A)#1", "create(A)#2", 201)
	ask("creates(B)#1", "create(B)#1", 503)
	ask("creates(B)#1", "create(B)#2", 0)
	ask("creates(C)#1", "create(C)#1", 0)
	ask("cancels(A)#1", "cancel(A)#1", 409)
	assert.Equal(t, map[string]int{
		"creates: succeeded": 1, "creates: failed": 1, "creates: no answer": 1, "cancels: refused": 1,
	}, evidence.Operations())
}
