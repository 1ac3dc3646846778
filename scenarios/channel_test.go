package scenarios

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// A channel that has taken the money and does not know it, because the commit's answer
// was lost, tells the shop of it all the same, without being started again first.
func TestChannelTellsOfWhatItMayHaveCommitted(t *testing.T) {
	incident, err := ParseIncident("lost.txtar", `
-- setup --
order A 198.00 CNY
-- timeline --
14:00:00.000 buyer creates A
14:00:01.000 buyer pays A
-- faults --
wechat loses-connection pay(A)#1/COMMIT:after
`)
	require.NoError(t, err)
	arena := sim.NewArena()
	defer arena.Close()
	r, err := Run(incident.Case(), arena)
	require.NoError(t, err)
	assert.Equal(t, Pass, r.Verdict, "%v", r.Failures)
	assert.Equal(t, 1, r.Probes["order paid"])
}
