package sim_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

// SQL that reads the host's clock is refused; the same words as data are not.
func TestHostTimeInSQLIsRefused(t *testing.T) {
	w := newWorld(t, sim.Config{})
	d := w.bank("bank")
	for query, refused := range map[string]bool{
		"SELECT datetime('now')":                    true,
		"SELECT strftime('%s', 'now')":              true,
		"SELECT unixepoch()":                        true,
		"SELECT CURRENT_TIMESTAMP":                  true,
		"SELECT 'now', 'CURRENT_TIMESTAMP'":         false,
		"SELECT db_now_ms()":                        false,
		"SELECT datetime(db_now_ms()/1000, 'auto')": false,
		"SELECT 1 -- CURRENT_TIMESTAMP":             false,
	} {
		w.Node("n "+query, func(p *sim.Process) {
			_, err := p.OpenDB(d, sim.DBOptions{}).Exec(query)
			if refused {
				assert.ErrorContains(t, err, "db_now_ms()", query)
			} else {
				assert.NoError(t, err, query)
			}
		})
	}
	w.Run(1)
	w.Run(1000 * ms)
}
