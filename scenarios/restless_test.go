package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// A run that would go on for ever is ended, and told as what it is.
func TestRestlessRunIsBroken(t *testing.T) {
	c := shortOne(t, "").Case()
	c.maxSteps = 50_000
	r, err := Run(c, nil, func(w *sim.World) {
		w.Node("spinner", func(p *sim.Process) {
			for p.Clock().Sleep(context.Background(), time.Millisecond) == nil {
				p.Note("again", "")
			}
		})
	})
	require.NoError(t, err)
	require.Equal(t, Broken, r.Verdict)
	require.Len(t, r.Failures, 1)
	require.Equal(t, "finally-terminal | endless boot on spinner", r.Failures[0].Fingerprint())
	require.Contains(t, r.Failures[0].Message, "of the last 1000 records are by boot on spinner")
}
