package checker

// Settled says that nothing is left to happen: no order waits for its money, and
// the channel has nothing more to say.
func (e *Evidence) Settled() bool {
	for _, row := range e.orders {
		if row.Text("status") == "CREATED" {
			return false
		}
	}
	for _, row := range e.tables["notifications"] {
		if row.Text("state") == "PENDING" {
			return false
		}
	}
	return true
}

// Probes counts the interesting places that the run came to, so that a run which
// proves nothing can be told from one that does.
func (e *Evidence) Probes() map[string]int {
	probes := map[string]int{"order paid": 0, "order closed": 0, "late success": 0, "callback repeated": 0, "charge without record": 0}
	for _, row := range e.orders {
		switch row.Text("status") {
		case "PAID":
			probes["order paid"]++
		case "CLOSED":
			probes["order closed"]++
		}
	}
	for _, row := range e.records {
		if row.Text("disposition") == "late" {
			probes["late success"]++
		}
	}
	acked := map[string]int{}
	for _, acks := range e.acks {
		for _, a := range acks {
			if a.txn == "" {
				continue
			}
			if acked[a.txn]++; acked[a.txn] == 2 {
				probes["callback repeated"]++
			}
		}
	}
	for _, charge := range e.tables["charges"] {
		if e.records["mock "+charge.Text("channel_txn")] == nil {
			probes["charge without record"]++
		}
	}
	return probes
}
