package scenarios

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
	"github.com/tillstorm/tillstorm/system/conformance"
)

// The simulated clock, loops, broker and leases pass the suite that the real ones pass.
func TestSimulatedServicesConform(t *testing.T) {
	w := sim.New(sim.Config{Start: usualStart})
	defer w.Close()
	b, l := w.Broker("broker"), w.Leases("leases")
	var result error
	done := false
	w.Node("subject", func(p *sim.Process) {
		result = conformance.Check(t.Context(), conformance.Subject{
			Clock: p.Clock(), Loops: p, Broker: broker{p.Broker(b)}, Leases: leases{p.Leases(l)}, Unit: 10 * time.Second,
		})
		done = true
	})
	w.Run(24 * time.Hour)
	require.True(t, done, "the suite never ended")
	require.NoError(t, result)
}
