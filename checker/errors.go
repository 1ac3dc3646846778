package checker

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// trouble is what may explain an error, as far as the trace has told it.
type trouble struct {
	clients map[string]string        // of each request that has no answer yet: the node that waits for it
	gone    map[string]bool          // requests whose client waits no more: the handler's context has ended with that
	upset   map[string]bool          // tasks, as NODE/TASK, of which something was made to fail
	stood   map[string]bool          // tasks that were made to stand still
	paused  map[string]time.Duration // nodes: until when the whole process was
	waiting map[string]time.Duration // tasks that have waited for a lock: since when, the last time
	heldUp  map[string]time.Duration // databases: until when somebody who has the lock stands still
	paying  map[string]time.Duration // trades, as CHANNEL/NUMBER: until when their buyer was about to pay
}

func newTrouble() trouble {
	return trouble{
		clients: map[string]string{}, gone: map[string]bool{}, upset: map[string]bool{}, stood: map[string]bool{}, paused: map[string]time.Duration{},
		waiting: map[string]time.Duration{}, heldUp: map[string]time.Duration{}, paying: map[string]time.Duration{},
	}
}

const (
	lockPatience = 5 * time.Second // of a statement that waits for a lock
	forever      = time.Duration(math.MaxInt64)
)

// noteTrouble notes what may explain an error.
func (e *Evidence) noteTrouble(r *sim.Record) {
	switch r.Event {
	case sim.EventSend:
		if r.Message.Method != sim.MethodPublish {
			e.trouble.clients[r.Op] = r.Node
		}
	case sim.EventDeliver:
		if r.Message.Leg == sim.Answer {
			delete(e.trouble.clients, r.Message.Exchange)
		}
	case sim.EventFail:
		e.trouble.leave(r.Op)
	case sim.EventCrash:
		for exchange, client := range e.trouble.clients { // order-free: each by itself
			if client == r.Node {
				e.trouble.leave(exchange)
			}
		}
	case sim.EventStall, sim.EventPause, sim.EventFault, sim.EventBusy, sim.EventSQL:
		e.trouble.disturb(r)
	case sim.EventRow:
		e.observeOddity(r)
	}
}

// observeNoUnexplainedError finds an answer of 5xx and a panic that nothing in the
// trace explains. The explanations are few, and all are about the very task, since
// whatever fails elsewhere, such as a call, must not become an error of ours: an
// operation of the task was made to fail, or waited in vain for a lock whose holder
// was made to stand still; its client had gone; or the channel was told to answer so.
func observeNoUnexplainedError(e *Evidence, r *sim.Record) {
	switch r.Event {
	case sim.EventAnswer:
		if r.Message.Status/100 == 5 && !e.explains(r) {
			e.failError(r, r.Message.Key, fmt.Sprintf("%s was answered %d", r.Message.Kind, r.Message.Status), "failed "+r.Message.Kind)
		}
	case sim.EventPanic:
		if !e.trouble.upset[taskOf(r)] {
			what, _, _ := strings.Cut(r.Detail, "\n")
			e.failError(r, keyOf(r.Task), fmt.Sprintf("%s panicked (%s)", sim.Role(r.Task), what), "panic of "+sim.Role(r.Task))
		}
	}
}

// leave notes that the client of a request waits no more.
func (t *trouble) leave(exchange string) {
	if _, waits := t.clients[exchange]; waits {
		delete(t.clients, exchange)
		t.gone[exchange] = true
	}
}

// disturb notes what was done to a task, or to the whole process.
func (t *trouble) disturb(r *sim.Record) {
	switch r.Event {
	case sim.EventBusy:
		t.waiting[taskOf(r)] = r.At
	case sim.EventSQL:
		since, waited := t.waiting[taskOf(r)]
		if waited && strings.HasPrefix(r.Detail, "error: database is locked") && max(t.heldUp[databaseOf(r.Node)], t.paused[r.Node]) >= since {
			t.upset[taskOf(r)] = true
		}
	case sim.EventFault:
		t.upset[taskOf(r)] = true
		if r.OpenTx {
			t.holdUp(r, lockPatience)
		}
	default:
		t.stood[taskOf(r)] = true
		if r.Event == sim.EventPause {
			t.paused[r.Node] = max(t.paused[r.Node], r.At+durationOf(r))
		}
		if r.OpenTx {
			t.holdUp(r, durationOf(r))
		}
	}
}

func (t *trouble) holdUp(r *sim.Record, d time.Duration) {
	database := databaseOf(r.Node)
	t.heldUp[database] = max(t.heldUp[database], r.At+d)
}

// observeOddity notes where a channel's emulator does what it was told to do: its
// fault for a trade is spent by the task that serves the request, or the money is
// taken later than the buyer has confirmed.
func (e *Evidence) observeOddity(r *sim.Record) {
	switch r.Change.Table {
	case "oddities":
		e.trouble.upset[taskOf(r)] = true
	case "trades":
		trade := r.Change.Database + "/" + r.Change.Text("out_trade_no")
		if r.Change.Int("settle_at_ms") > 0 {
			e.trouble.paying[trade] = forever
		} else if e.trouble.paying[trade] == forever {
			e.trouble.paying[trade] = r.At
		}
	}
}

// explains says whether the trace explains a failed answer.
func (e *Evidence) explains(r *sim.Record) bool {
	m := r.Message
	return e.trouble.upset[taskOf(r)] || r.Op == m.Exchange && e.trouble.gone[m.Exchange] || m.Kind == "close" && e.isPaying(m) || m.Kind == "healthz" && e.trouble.tarries(r)
}

// tarries says whether a health check was made to stand still a moment ago, or waits for a
// lock whose holder was: it says so sooner than the lock would be given up.
func (t *trouble) tarries(r *sim.Record) bool {
	since, waited := t.waiting[taskOf(r)]
	paused := t.paused[r.Node] > r.At-lockPatience
	return t.stood[taskOf(r)] || paused || waited && t.heldUp[databaseOf(r.Node)] >= since
}

// isPaying says whether the buyer was about to pay the trade that a request wants
// closed: some channels answer that with an error of theirs.
func (e *Evidence) isPaying(answer *sim.Message) bool {
	request := e.requests[answer.Exchange]
	if request == nil {
		return false
	}
	until, known := e.trouble.paying[answer.From+"/"+parse(request).OutTradeNo]
	return known && until >= request.At
}

func (e *Evidence) failError(r *sim.Record, order, what, roles string) {
	about, price := "", e.price(order)
	if price.Cents != 0 {
		about = fmt.Sprintf("order %s of %s: ", order, price)
	}
	e.fail(Failure{Order: order, Stake: price, Seq: r.Seq, Roles: roles, Message: fmt.Sprintf(
		"%s%s at %s, and nothing that was done to it explains that", about, what, e.at(r))})
}

func taskOf(r *sim.Record) string { return r.Node + "/" + r.Task }

// keyOf returns what a task is about: the order, most often.
func keyOf(task string) string {
	_, key, _ := strings.Cut(task, "(")
	key, _, _ = strings.Cut(key, ")")
	return key
}

// databaseOf names the database that a node works on: instances of one service
// share theirs.
func databaseOf(node string) string {
	database, _, _ := strings.Cut(node, "-")
	return database
}
