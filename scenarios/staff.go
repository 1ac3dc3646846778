package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// decideEvery is how often a channel's staff look at the refunds that got stuck.
const decideEvery = time.Hour

// bootStaff starts the people of a channel who bring a refund that is ABNORMAL to its
// buyer, or give it up. They are no part of the system, and nothing happens to them.
func (w *world) bootStaff(p *sim.Process) {
	for _, name := range w.channels {
		db := p.OpenDB(w.ledgers[name], sim.DBOptions{})
		p.Every("decide-"+name, decideEvery, func(ctx context.Context) {
			rows, err := db.QueryContext(ctx, "SELECT refund_no FROM refunds WHERE state = 'ABNORMAL' ORDER BY refund_no")
			if err != nil {
				return // next time
			}
			defer rows.Close()
			for rows.Next() {
				var number string
				if rows.Scan(&number) == nil {
					decide(ctx, p, name, number, decisionOf(number))
				}
			}
		})
	}
}

// decisionOf is what becomes of a refund that got stuck: one in four can't be brought to
// its buyer.
func decisionOf(refundNo string) string {
	if sim.HashName(refundNo)%4 == 0 {
		return "CLOSED"
	}
	return "SUCCESS"
}

func decide(ctx context.Context, p *sim.Process, channel, refundNo, state string) {
	ctx, cancel := p.Clock().WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(map[string]string{"refundNo": refundNo, "state": state})
	if err != nil {
		panic(err) // a body of the harness's own
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+channel+"/operator/refund", bytes.NewReader(body))
	if err != nil {
		panic(err) // a URL of the harness's own
	}
	if answer, err := p.HTTPClient().Do(r); err == nil {
		answer.Body.Close()
	}
}
