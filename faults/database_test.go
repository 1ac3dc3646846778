package faults

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tillstorm/tillstorm/sim"
)

const lostConnection = "500 the connection to the database was lost: whether the last statement took effect is not known"

// The shop waits for a lock for a second.
func TestBusy(t *testing.T) {
	for plan, answer := range map[string]string{
		"shop-1 finds-locked pay(A)#1/BEGIN:before":  "1.01s buyer A: 500 database is locked",
		"shop-1 finds-locked pay(A)#1/COMMIT:before": "1.0104s buyer A: 500 database is locked",
	} {
		w := pay(t, plan, "A", "B")
		assert.Contains(t, w.notes(), answer, plan)
		assert.Equal(t, "B", w.payments(), plan)
	}
}

func TestSQLError(t *testing.T) {
	for plan, answer := range map[string]string{
		"shop-1 fails pay(A)#1/BEGIN:before":         "10ms buyer A: 500 disk I/O error",
		"shop-1 fails pay(A)#1/InsertPayment:before": "10.4ms buyer A: 500 disk I/O error",
		"shop-1 fails pay(A)#1/COMMIT:before":        "10.4ms buyer A: 500 disk I/O error",
	} {
		w := pay(t, plan, "A", "B")
		assert.Equal(t, []string{answer, paidB}, w.notes(), plan)
		assert.Equal(t, "B", w.payments(), plan)
	}
}

func TestLostCommit(t *testing.T) {
	for plan, payments := range map[string]string{
		"shop-1 loses-connection pay(A)#1/COMMIT:before": "B",
		"shop-1 loses-connection pay(A)#1/COMMIT:after":  "A B",
	} {
		w := pay(t, plan, "A", "B")
		assert.Contains(t, w.notes()[0], "buyer A: "+lostConnection, plan)
		assert.Equal(t, payments, w.payments(), plan)
	}
}

func TestSlow(t *testing.T) {
	w := pay(t, "database slows shop by 100ms from 0s for 900ms", "A", "B")
	assert.Equal(t, []string{"311.4ms buyer A: 200", paidB}, w.notes(), "three statements")
}

func TestFull(t *testing.T) {
	w := pay(t, "database fills shop from 500ms for 1s", "A", "B", "C")
	assert.Equal(t, []string{paidA, "1.0104s buyer B: 500 database or disk is full", "2.0114s buyer C: 200"}, w.notes())
	assert.Equal(t, "A C", w.payments())
}

// A write outside a transaction commits by itself.
func TestLostCommitOfAWrite(t *testing.T) {
	for plan, payments := range map[string]string{
		"shop-1 loses-connection boot#1/InsertPayment:before": "",
		"shop-1 loses-connection boot#1/InsertPayment:after":  "A",
	} {
		w := play(t, plan, func(w *world) {
			w.shop = w.database()
			w.Node("shop-1", func(p *sim.Process) {
				_, err := p.OpenDB(w.shop, sim.DBOptions{}).ExecContext(background, insert, "A")
				p.Note("insert", err.Error())
			})
		})
		assert.Contains(t, w.notes()[0], "insert: the connection to the database was lost", plan)
		assert.Equal(t, payments, w.payments(), plan)
	}
}

// Not every step is one where a database can do such a thing.
func TestStepsThatDatabaseFaultsDoNotFit(t *testing.T) {
	for _, line := range []string{
		"shop-1 finds-locked pay(A)#1/InsertPayment:before", // the transaction has the lock
		"shop-1 finds-locked pay(A)#1/BEGIN:after",
		"shop-1 finds-locked pay(A)#1/receive:before",
		"shop-1 fails pay(A)#1/COMMIT:after",
		"shop-1 fails pay(A)#1/answer:before",
		"shop-1 loses-connection pay(A)#1/BEGIN:before",
		"shop-1 loses-connection pay(A)#1/InsertPayment:after",
		"database slows inventory by 1s from 0s for 1h",
		"database fills inventory from 0s for 1h",
		"database fills shop from 0s for 5ms",
		"database fills shop from 1s for 1h",
	} {
		assert.Equal(t, []string{paidA}, unreached(t, line, "A"), line)
	}
}
