package checker_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// A history is told in lines of SUBJECT VERB WORDS. Each makes one or more records
// of a trace, a millisecond apart.
//
//	create(A)#1    sent 198.00           on any channel, or 198.00 mock: a request leaves and arrives; of a callback: sent T1 198.00,
//	                                     and a state such as CLOSED, and unnamed if it names no trade; of a refund-callback: sent R1 198.00 SUCCESS
//	callback(A)#1  forged T1 198.00      likewise, but by a stranger
//	create(A)#1    keyed K 198.00        likewise, under the idempotency key K; of an ask-refund or
//	                                     a cancel likewise
//	create(A)#1    sent 198.00 held      it leaves, and arrives when it arrives
//	create(A)#1    sent 198.00 lost      it leaves, and never arrives
//	callback(A)#1  copied                the network makes callback(A)#1+1, which arrives; held: not yet
//	callback(A)#1  arrives
//	callback(A)#1  commits ROW, ROW      rows change by the hand of this task
//	callback(A)#1  answers 200 PAID      the answer leaves and reaches the client; lost, held as above.
//	                                     Further words are code=CODE, FIELD=VALUE, and replayed
//	journal#1      sent A B              or after=0; answered with 200 rows=1,2
//	cancel(A)#1    sent                  attempt(A)#1 sent channel=mock, ask-refund(A)#1 sent 1.00 refundNo=R1
//	list#1         sent after=A          log(A)#1, refunds(A)#1, alerts#1; answered with 200 orders=A:PAID,B:CLOSED,
//	                                     log=CREATED,PAID, refunds=R1:ACCEPTED, alerts=1,2
//	callback(A)#1  returns               an answer that was held reaches the client
//	callback(A)#1  gives-up              its client waits no more
//	create(A)#1    calls prepay 198.00   a request to the channel; inside: with a transaction open
//	create(A)#1    meets full [STEP]     an operation is made to fail so; inside, likewise
//	create(A)#1    stands 6s             it is stalled; inside, likewise
//	create(A)#1    waits                 for a lock
//	create(A)#1    finds-locked          it has waited in vain
//	create(A)#1    misses MarkOrderPaid  the statement meets no row
//	create(A)#1    leases taken          an operation of the lease service ends so
//	create(A)#1    panics
//	shop-1         crashes [STEP]        inside, likewise
//	shop-1         pauses 6s             inside, likewise
//	clock          14:15:00              38:00:00 is on the next day
//
// What a task does, it does on shop-1, unless its name begins with a node: mock/close(A)#1.
// An underscore stands for a blank.
//
// A row is one of the following. What ends in "gone" is deleted, A/2 is a further row
// with the name A, T1@alipay a transaction of another channel than mock.
//
//	order A PAID 198.00
//	record T1 A 198.00 applied           or late, surplus
//	log A CREATED>PAID
//	charge T1 A 198.00
//	refund T1 198.00 SUCCESS
//	notification T1 PENDING
//	order A CREATED 198.00 S1            with a unit of stock
//	intent R1 T1 A 198.00 request        or late, surplus; a further word is its state
//	payback R1 T1 A 198.00 SUCCESS       the channel's refund of that number
//	message stock-release A              in the outbox; a further word is its state
//	move A freeze S1                     or release, deduct; put, with a number of units
//	stock S1 3/1/0                       available, frozen and sold units
//	mock.trades:A-1 out_trade_no=A-1 settle_at_ms=1    any row, by database, table and a name
//
// What happens in most histories has lines of its own, each a whole exchange:
//
//	A  is-created  198.00
//	A  is-charged  T1 198.00             by the channel
//	A  is-paid     T1 198.00             the callback comes, is booked and answered
//	A  is-closed                         by the scan
//	A  is-read     CREATED               or a status code
//	A  is-booked   T1 198.00 PAID        with its record, as a row has all; late: CLOSED
//	A  is-billed   T1 198.00             by the channel, for the day
//	A  is-owed     R1 T1 198.00 late     a refund intent and its message
//	A  is-repaid   R1 T1 198.00          by the channel
//	S1 is-stocked  4
//	A  is-frozen   S1                    the stock service is asked, and moves a unit; is-released, is-sold
//
// and so has what reconciliation does:
//
//	reconcile@15  begins
//	reconcile@15  fetches                the day's bill, and compares it with our books
//	reconcile@15  reports record-missing mock/T1 198.00    a further word is its detail
//	reconcile@15  ends                   it has looked at all our books
type teller struct {
	trace   *sim.Trace
	now     time.Duration
	counts  map[string]int          // of messages by kind and key, of copies, of rows of a table
	rows    map[string]int64        // row numbers by table and name
	sent    map[string]*sim.Message // requests by exchange
	answers map[string]*sim.Message // by exchange
	orders  map[string][3]string    // status, amount and SKU of an order's row
	paying  map[string]string       // the transaction that pays an order
	stock   map[string][3]int       // by SKU
	moves   []map[string]any        // the journal
}

var start = time.Date(2026, 3, 2, 14, 0, 0, 0, time.UTC)

func newTeller(trace *sim.Trace) *teller {
	trace.Start = start
	return &teller{trace: trace, counts: map[string]int{}, rows: map[string]int64{},
		sent: map[string]*sim.Message{}, answers: map[string]*sim.Message{}, orders: map[string][3]string{},
		paying: map[string]string{}, stock: map[string][3]int{}}
}

// tell adds a history to the trace. A line that can't be understood is an error.
func (t *teller) tell(history string) (err error) {
	line, number := "", 0
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("line %d, %q: %v", number, line, v)
		}
	}()
	for _, line = range strings.Split(history, "\n") {
		number++
		text, _, _ := strings.Cut(line, "//")
		if words := strings.Fields(text); len(words) > 0 {
			t.line(words[0], words[1], words[2:])
		}
	}
	return nil
}

func (t *teller) line(subject, verb string, words []string) {
	fate := ""
	if n := len(words); n > 0 && (words[n-1] == "held" || words[n-1] == "lost") {
		words, fate = words[:n-1], words[n-1]
	}
	switch {
	case subject == "clock":
		var hour, minute, second int
		_, err := fmt.Sscanf(verb, "%d:%d:%d", &hour, &minute, &second)
		must(err)
		t.now = time.Duration(hour-start.Hour())*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	case verb == "sent":
		t.send(subject, words, fate, nil)
	case verb == "forged":
		t.send(subject, words, fate, func(m *sim.Message) { m.From = "stranger" })
	case verb == "keyed":
		t.send(subject, words[1:], fate, func(m *sim.Message) { t.key(m, words) })
	case verb == "copied":
		t.copied(subject, fate)
	case verb == "arrives":
		node, name := place(subject)
		t.add(sim.Record{Node: node, Event: sim.EventDeliver, Op: name, Message: t.request(subject)})
	case verb == "commits":
		for _, row := range strings.Split(strings.Join(words, " "), ",") {
			t.row(subject, strings.Fields(row))
		}
	case verb == "answers":
		t.answer(subject, words, fate)
	case verb == "returns":
		m := t.answers[subject]
		t.add(sim.Record{Node: m.To, Event: sim.EventDeliver, Op: m.Name(), Message: m})
	case verb == "gives-up":
		t.add(sim.Record{Node: t.request(subject).From, Event: sim.EventFail, Op: subject, Detail: "context deadline exceeded"})
	case verb == "calls":
		t.call(subject, words)
	case verb == "crashes":
		t.add(sim.Record{Node: subject, Event: sim.EventCrash, Op: strings.Join(words, " "), OpenTx: slices.Contains(words, "inside")})
	case verb == "pauses":
		t.add(sim.Record{Node: subject, Event: sim.EventPause, Op: "somewhere", Detail: words[0], OpenTx: slices.Contains(words, "inside")})
	case troubles[verb] != "":
		t.suffer(subject, verb, words)
	default:
		t.whole(subject, verb, words)
	}
}

// troubles are what may happen to a task.
var troubles = map[string]sim.Event{
	"meets": sim.EventFault, "stands": sim.EventStall, "waits": sim.EventBusy, "finds-locked": sim.EventSQL,
	"misses": sim.EventSQL, "leases": sim.EventLease, "panics": sim.EventPanic,
}

func (t *teller) suffer(subject, verb string, words []string) {
	node, task := place(subject)
	r := sim.Record{Node: node, Task: task, Event: troubles[verb], Op: "COMMIT", OpenTx: slices.Contains(words, "inside")}
	switch verb {
	case "meets", "stands", "leases":
		r.Detail = words[0]
		r.Op = strings.Join(words[1:], " ")
	case "misses":
		r.Op, r.Detail = words[0], "0 rows"
	case "finds-locked":
		r.Detail = "error: database is locked"
	case "panics":
		r.Detail = "assignment to entry in nil map\nmain.go:1"
	}
	t.add(r)
}

// place returns the node that a subject names, and its task there.
func place(subject string) (node, task string) {
	subject = strings.ReplaceAll(subject, "_", " ")
	if node, task, ok := strings.Cut(subject, "/"); ok {
		return node, task
	}
	return "shop-1", subject
}

// whole tells what has a line of its own.
func (t *teller) whole(order, verb string, words []string) {
	var does [][3]string
	switch verb {
	case "is-created":
		name := t.next("create", order)
		does = [][3]string{{name, "sent", words[0]},
			{name, "commits", fmt.Sprintf("order %s CREATED %s, log %s >CREATED", order, strings.Join(words, " "), order)}, {name, "answers", "201 CREATED " + words[0]}}
	case "is-charged":
		does = [][3]string{{"pay(" + order + ")#1", "commits", fmt.Sprintf("charge %s %s %s, notification %s PENDING", words[0], order, words[1], words[0])}}
	case "is-paid":
		name := t.next("callback", order)
		does = [][3]string{{name, "sent", words[0] + " " + words[1]},
			{name, "commits", fmt.Sprintf("record %s %s %s applied, order %s PAID, log %s CREATED>PAID%s", words[0], order, words[1], order, order, t.messageAbout(order, "stock-deduct"))},
			{name, "answers", "200 PAID"}}
	case "is-closed":
		does = [][3]string{{"close-scan@14:15:00", "commits", fmt.Sprintf("order %s CLOSED, log %s CREATED>CLOSED%s", order, order, t.messageAbout(order, "stock-release"))}}
	case "is-owed":
		does = [][3]string{{"owe(" + order + ")#1", "commits", fmt.Sprintf("intent %s %s %s %s %s, message refund %s", words[0], words[1], order, words[2], words[3], words[0])}}
	case "is-repaid":
		does = [][3]string{{"pay-back(" + order + ")#1", "commits", fmt.Sprintf("payback %s %s %s %s SUCCESS", words[0], words[1], order, words[2])}}
	case "is-stocked":
		does = [][3]string{{"put#1", "commits", fmt.Sprintf("move first-%s put %s %s, %s", order, order, words[0], t.shift(order, words[0], "0", "0"))}}
	case "is-frozen":
		does = t.moved(order, "freeze", words[0], "-1", "1", "0")
	case "is-released":
		does = t.moved(order, "release", words[0], "1", "-1", "0")
	case "is-sold":
		does = t.moved(order, "deduct", words[0], "0", "-1", "1")
	case "is-booked":
		disposition := map[string]string{"PAID": "applied paid_channel=mock paid_txn=" + words[0], "CLOSED": "late"}[words[2]]
		disposition, paidBy, _ := strings.Cut(disposition, " ")
		does = [][3]string{{"callback(" + order + ")#1", "commits", fmt.Sprintf(
			"shop.orders:%[1]s order_no=%[1]s status=%[4]s amount_cents=%[3]d currency=CNY %[6]s, shop.payment_records:%[2]s channel=mock channel_txn=%[2]s "+
				"order_no=%[1]s out_trade_no=%[1]s-1 amount_cents=%[3]d currency=CNY disposition=%[5]s recorded_ms=%[7]d",
			order, words[0], cents(words[1]), words[2], disposition, paidBy, start.UnixMilli())}}
	case "is-billed":
		does = [][3]string{{"mock/bill#1", "commits", fmt.Sprintf(
			"mock.bills:1 bill_date=2026-03-02, mock.bill_rows:%[2]s bill_date=2026-03-02 kind=charge channel_txn=%[2]s order_no=%[1]s out_trade_no=%[1]s-1 amount_cents=%[3]d currency=CNY",
			order, words[0], cents(words[1]))}}
	case "begins", "ends":
		job := map[string]string{"begins": "reconcile", "ends": "stock"}[verb]
		does = [][3]string{{order, "commits", fmt.Sprintf("shop.reconcile_jobs:%[1]s job=%[1]s hour=%[2]d", job, t.counts["hour"])}}
		t.counts["hour"]++
	case "fetches":
		day := fmt.Sprintf("shop.bill_days:1 channel=mock bill_day=2026-03-02 start_ms=%d end_ms=%d ", start.Add(-14*time.Hour).UnixMilli(), start.Add(10*time.Hour).UnixMilli())
		for _, row := range []string{"tries=0 state=WAITING", "tries=1 state=WAITING", "tries=1 state=FETCHED", "tries=1 state=FETCHED"} {
			does = append(does, [3]string{order, "commits", day + row})
		}
	case "reports":
		t.counts["alert"]++
		does = [][3]string{{order, "commits", fmt.Sprintf("shop.alerts:%d kind=%s subject=%s amount_cents=%d currency=CNY raised_ms=%d detail=%s",
			t.counts["alert"], words[0], words[1], cents(words[2]), start.Add(t.now).UnixMilli(), strings.Join(words[3:], ""))}}
	case "is-read":
		name := t.next("read", order)
		answer := words[0]
		if _, err := strconv.Atoi(answer); err != nil {
			answer = "200 " + answer
		}
		does = [][3]string{{name, "sent", ""}, {name, "answers", answer}}
	default:
		panic("there is no verb " + verb)
	}
	for _, one := range does {
		t.line(one[0], one[1], strings.Fields(one[2]))
	}
}

// messageAbout adds to a commit the message about an order's stock, if it has any.
func (t *teller) messageAbout(order, kind string) string {
	if t.orders[order][2] == "" {
		return ""
	}
	return fmt.Sprintf(", message %s %s", kind, order)
}

// moved is an exchange with the stock service that moves a unit.
func (t *teller) moved(order, movement, sku string, by ...string) [][3]string {
	name := t.next(movement, order)
	return [][3]string{{name, "sent", sku},
		{name, "commits", fmt.Sprintf("move %s %s %s, %s", order, movement, sku, t.shift(sku, by...))}, {name, "answers", "200"}}
}

// shift is the row of a SKU after some units have moved.
func (t *teller) shift(sku string, by ...string) string {
	units := t.stock[sku]
	for i := range units {
		n, err := strconv.Atoi(by[i])
		must(err)
		units[i] += n
	}
	return fmt.Sprintf("stock %s %d/%d/%d", sku, units[0], units[1], units[2])
}

func (t *teller) add(r sim.Record) {
	t.now += time.Millisecond
	r.At = t.now
	t.trace.Append(r)
}

func (t *teller) next(kind, key string) string {
	return fmt.Sprintf("%s(%s)#%d", kind, key, t.counts[kind+"("+key+")"]+1)
}

func (t *teller) send(name string, words []string, fate string, differs func(*sim.Message)) {
	kindKey, _, _ := strings.Cut(name, "#")
	kind, key, _ := strings.Cut(strings.TrimSuffix(kindKey, ")"), "(")
	t.counts[kindKey]++
	m := &sim.Message{Exchange: name, Leg: sim.Request, Kind: kind, Key: key, From: "buyer", To: "shop", Method: "POST"}
	switch kind {
	case "create":
		m.Path, m.Body = "/orders", encode(map[string]any{"orderNo": key, "amountCents": cents(words[0]), "channel": strings.Join(words[1:], "")})
	case "callback":
		txn, channel := transaction(words[0])
		m.From, m.Path = channel, "/callback/pay"
		notice := map[string]any{"orderNo": key, "outTradeNo": key + "-1", "channel": channel, "channelTxn": txn, "amountCents": cents(words[1])}
		if last := len(words) - 1; words[last] == "unnamed" {
			delete(notice, "outTradeNo")
			words = words[:last]
		}
		notice["state"] = strings.Join(words[2:], "")
		m.Body = encode(notice)
	case "refund-callback":
		number, channel := transaction(words[0])
		m.From, m.Path = channel, "/callback/refund"
		m.Body = encode(map[string]any{"orderNo": key, "channel": channel, "refundNo": number, "amountCents": cents(words[1]), "state": words[2]})
	case "freeze", "release", "deduct":
		m.From, m.To, m.Path = "shop-1", "stock", "/"+kind
		about := map[string]any{"orderNo": key}
		if kind == "freeze" {
			about["sku"], about["quantity"] = words[0], 1
		}
		m.Body = encode(about)
	case "journal":
		m.From, m.To, m.Method, m.Path = "shop-1", "stock", "GET", "/journal?"
		for _, word := range words {
			if !strings.Contains(word, "=") {
				word = "orderNo=" + word
			}
			m.Path += word + "&"
		}
	case "cancel", "attempt", "ask-refund":
		m.Path, m.Body = "/orders/"+key+map[string]string{"cancel": "/cancel", "attempt": "/pay", "ask-refund": "/refunds"}[kind], encode(fields(words))
	case "list", "alerts":
		m.Method, m.Path = "GET", map[string]string{"list": "/orders", "alerts": "/alerts"}[kind]+"?"+strings.Join(words, "&")
	case "log", "refunds":
		m.Method, m.Path = "GET", "/orders/"+key+"/"+kind
	default:
		m.Method, m.Path = "GET", "/orders/"+key+"?fresh=1"
	}
	if differs != nil {
		differs(m)
	}
	t.sent[name] = m
	t.add(sim.Record{Node: m.From, Task: "task#1", Event: sim.EventSend, Op: name, Message: m})
	switch fate {
	case "":
		t.line(name, "arrives", nil)
	case "lost":
		t.add(sim.Record{Node: m.From, Event: sim.EventDrop, Op: name, Message: m})
	}
}

// fields are those of a body: an amount, or FIELD=VALUE.
func fields(words []string) map[string]any {
	body := map[string]any{}
	for _, word := range words {
		field, text, ok := strings.Cut(word, "=")
		if !ok {
			field, text = "amountCents", strconv.FormatInt(cents(word), 10)
		}
		body[field] = plain(text)
	}
	return body
}

// plain is a number, if a text is one.
func plain(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

// entries are those of a list: orders and refunds with a state, A:PAID,B:CLOSED; the
// statuses of a log, or the numbers of alerts.
func entries(list, text, order string) []any {
	var all []any
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		name, state, _ := strings.Cut(one, ":")
		switch list {
		case "orders":
			all = append(all, map[string]any{"orderNo": name, "status": state})
		case "refunds":
			all = append(all, map[string]any{"refundNo": name, "orderNo": order, "state": state})
		case "log":
			all = append(all, map[string]any{"to": name})
		case "alerts":
			all = append(all, map[string]any{"alertId": plain(name)})
		}
	}
	return all
}

// key makes a request one under a key.
func (t *teller) key(m *sim.Message, words []string) {
	m.Method, m.Header = http.MethodPost, http.Header{"Idempotency-Key": words[:1]}
	if m.Body == nil {
		m.Body = encode(map[string]any{"wants": words[1:]})
	}
}

func (t *teller) copied(name, fate string) {
	t.counts[name]++
	m := t.request(name)
	name = fmt.Sprintf("%s+%d", name, t.counts[name])
	t.add(sim.Record{Node: m.From, Event: sim.EventCopy, Op: name, Message: m})
	if fate == "" {
		t.line(name, "arrives", nil)
	}
}

// request returns the request of an exchange, also under the name of a copy.
func (t *teller) request(name string) *sim.Message {
	_, name = place(name)
	exchange, _, _ := strings.Cut(name, "+")
	if t.sent[exchange] == nil {
		panic("nobody has sent " + exchange)
	}
	return t.sent[exchange]
}

func (t *teller) answer(name string, words []string, fate string) {
	request := t.request(name)
	code, err := strconv.Atoi(words[0])
	must(err)
	body, header := map[string]any{"orderNo": request.Key}, http.Header{}
	for i, word := range words[1:] {
		switch field, value, ok := strings.Cut(word, "="); {
		case field == "rows":
			var rows []any
			for id := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' }) {
				n, err := strconv.Atoi(id)
				must(err)
				rows = append(rows, t.moves[n-1])
			}
			body["rows"] = rows
		case field == "orders" || field == "refunds" || field == "log" || field == "alerts":
			body[field] = entries(field, value, request.Key)
		case field == "code":
			body["error"] = map[string]string{"code": value}
		case ok:
			body[field] = plain(value)
		case word == "replayed":
			header.Set("Idempotency-Replayed", "true")
		case i == 0:
			body["status"] = word
		default:
			body["amountCents"] = cents(word)
		}
	}
	node, name := place(name)
	m := &sim.Message{Exchange: request.Exchange, Leg: sim.Answer, Kind: request.Kind, Key: request.Key,
		From: node, To: request.From, Status: code, Body: encode(body), Header: header}
	t.add(sim.Record{Node: node, Task: name, Event: sim.EventAnswer, Op: name, Message: m})
	if name != request.Exchange {
		return // nobody waits for the answer to a copy
	}
	t.answers[name] = m
	switch fate {
	case "":
		t.line(name, "returns", nil)
	case "lost":
		t.add(sim.Record{Node: "shop-1", Event: sim.EventDrop, Op: m.Name(), Message: m})
	}
}

func (t *teller) call(task string, words []string) {
	_, key, _ := strings.Cut(task, "(")
	key, _, _ = strings.Cut(key, ")")
	name := t.next(words[0], key)
	m := &sim.Message{Exchange: name, At: t.now + time.Millisecond, Leg: sim.Request, Kind: words[0], Key: key, From: "shop-1", To: "channel", Method: "POST", Path: "/" + words[0]}
	body := map[string]any{"outTradeNo": key + "-1"}
	if len(words) > 1 && words[1] != "inside" {
		body["orderNo"], body["amountCents"] = key, cents(words[1])
	}
	m.Body = encode(body)
	t.counts[words[0]+"("+key+")"]++
	t.sent[name] = m
	t.add(sim.Record{Node: "shop-1", Task: task, Event: sim.EventSend, Op: m.Name(), Message: m, OpenTx: words[len(words)-1] == "inside"})
}

// row tells of one row that a task has changed.
func (t *teller) row(task string, words []string) {
	if where, name, ok := strings.Cut(words[0], ":"); ok {
		t.anyRow(task, where, name, words[1:])
		return
	}
	kind, name, rest := words[0], words[1], words[2:]
	plain, _, _ := strings.Cut(name, "/")
	if kind == "log" {
		name = fmt.Sprint(t.counts["log"])
		t.counts["log"]++
	}
	if kind == "message" || kind == "move" {
		name += " " + rest[0]
	}
	c := &sim.Change{Database: "shop", Table: kind + "s"}
	if rest[0] != "gone" {
		t.fill(c, plain, rest)
	}
	switch kind {
	case "record":
		c.Table = "payment_records"
	case "log":
		c.Table = "order_status_log"
	case "charge", "refund", "notification":
		_, c.Database = transaction(name)
	case "intent":
		c.Table = "refunds"
	case "payback":
		c.Table = "refunds"
		_, c.Database = transaction(rest[0])
	case "message":
		c.Table = "outbox"
	case "move":
		c.Database, c.Table = "stock", "stock_journal"
	case "stock":
		c.Database, c.Table = "stock", "stock"
	}
	t.change(task, c, name)
}

func (t *teller) change(task string, c *sim.Change, name string) {
	key := c.Database + " " + c.Table
	if t.rows[key+" "+name] == 0 {
		t.counts[key]++
		t.rows[key+" "+name] = int64(t.counts[key])
	}
	c.RowID = t.rows[key+" "+name]
	node, task := place(task)
	t.add(sim.Record{Node: node, Task: task, Event: sim.EventRow, Change: c})
}

// anyRow tells of a row in its columns' own names.
func (t *teller) anyRow(task, where, name string, words []string) {
	database, table, _ := strings.Cut(where, ".")
	c := &sim.Change{Database: database, Table: table}
	for _, word := range words {
		column, text, ok := strings.Cut(word, "=")
		if !ok {
			panic("a column has a value")
		}
		c.Columns, c.Values = append(c.Columns, column), append(c.Values, plain(text))
	}
	t.change(task, c, name)
}

// fill writes the columns that the checker knows.
func (t *teller) fill(c *sim.Change, name string, rest []string) {
	set := func(column string, value any) {
		c.Columns, c.Values = append(c.Columns, column), append(c.Values, value)
	}
	txn, channel := transaction(name)
	switch c.Table {
	case "orders":
		known := t.orders[name]
		copy(known[:], rest)
		t.orders[name] = known
		set("order_no", name)
		set("status", known[0])
		set("amount_cents", cents(known[1]))
		set("currency", "CNY")
		set("created_ms", start.UnixMilli())
		set("deadline_ms", start.Add(15*time.Minute).UnixMilli())
		if known[2] != "" {
			set("sku", known[2])
			set("quantity", int64(1))
			set("stock_no", name)
		}
		if paid, by := transaction(t.paying[name]); paid != "" && known[0] != "CREATED" && known[0] != "CLOSED" {
			set("paid_channel", by)
			set("paid_txn", paid)
		}
	case "records", "charges":
		set("channel", channel)
		set("channel_txn", txn)
		set("order_no", rest[0])
		set("amount_cents", cents(rest[1]))
		set("currency", "CNY")
		if len(rest) > 2 {
			set("disposition", rest[2])
			if rest[2] == "applied" {
				t.paying[rest[0]] = name
			}
		}
	case "logs":
		from, to, _ := strings.Cut(rest[0], ">")
		set("order_no", name)
		set("from_status", from)
		set("to_status", to)
	case "refunds":
		set("channel_txn", txn)
		set("amount_cents", cents(rest[0]))
		set("state", rest[1])
	case "intents", "paybacks":
		txn, channel := transaction(rest[0])
		set("refund_no", name)
		set("channel", channel)
		set("channel_txn", txn)
		set("order_no", rest[1])
		set("amount_cents", cents(rest[2]))
		set("currency", "CNY")
		if c.Table == "paybacks" {
			set("state", rest[3])
			return
		}
		set("cause", rest[3])
		set("state", cmp.Or(strings.Join(rest[4:], ""), "REQUESTED"))
	case "messages":
		set("kind", name)
		set("message_key", rest[0])
		set("state", cmp.Or(strings.Join(rest[1:], ""), "PENDING"))
	case "moves":
		set("journal_id", int64(len(t.moves)+1))
		set("order_no", name)
		set("movement", rest[0])
		set("sku", rest[1])
		quantity, err := strconv.ParseInt(cmp.Or(strings.Join(rest[2:], ""), "1"), 10, 64)
		must(err)
		set("quantity", quantity)
		t.moves = append(t.moves, map[string]any{"journalId": len(t.moves) + 1, "orderNo": name, "movement": rest[0]})
	case "stocks":
		var units [3]int
		_, err := fmt.Sscanf(rest[0], "%d/%d/%d", &units[0], &units[1], &units[2])
		must(err)
		t.stock[name] = units
		set("sku", name)
		for i, column := range []string{"available", "frozen", "sold"} {
			set(column, int64(units[i]))
		}
	case "notifications":
		set("channel_txn", txn)
		set("state", rest[0])
	default:
		panic("there is no row " + c.Table)
	}
}

func transaction(name string) (txn, channel string) {
	txn, channel, _ = strings.Cut(name, "@")
	return txn, cmp.Or(channel, "mock")
}

func cents(amount string) int64 {
	yuan, err := strconv.ParseFloat(amount, 64)
	must(err)
	return int64(math.Round(yuan * 100))
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	must(err)
	return body
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
