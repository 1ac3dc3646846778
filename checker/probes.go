package checker

// Probes counts the interesting places that the run came to, so that a run which
// proves nothing can be told from one that does.
func (e *Evidence) Probes() map[string]int {
	probes := map[string]int{"order paid": 0, "order closed": 0, "late success": 0, "callback repeated": 0, "charge without record": 0}
	for _, row := range e.table("orders") {
		switch row.Text("status") {
		case "PAID":
			probes["order paid"]++
		case "CLOSED":
			probes["order closed"]++
		}
		if e.repeated(row.Text("order_no")) {
			probes["callback repeated"]++
		}
	}
	for _, row := range e.table("payment_records") {
		if row.Text("disposition") == "late" {
			probes["late success"]++
		}
	}
	for _, charge := range e.table("charges") {
		if e.booked[charge.Database+" "+charge.Text("channel_txn")] == 0 {
			probes["charge without record"]++
		}
	}
	return probes
}

// repeated says whether one charge of an order was acknowledged more than once.
func (e *Evidence) repeated(order string) bool {
	seen := map[string]bool{}
	for _, a := range e.acks[order] {
		if a.txn != "" && seen[a.txn] {
			return true
		}
		seen[a.txn] = true
	}
	return false
}
