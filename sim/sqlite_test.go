package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// With what is bound to it in view, SQLite would search an index for this GLOB, and plan
// the statement again whenever it is bound.
func TestBoundValuesDoNotChangeAPlan(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	_, rows, err := d.Query("EXPLAIN QUERY PLAN SELECT key FROM transfers WHERE key GLOB ?", "k*")
	require.NoError(t, err)
	require.Contains(t, rows[0][3], "SCAN")
}
