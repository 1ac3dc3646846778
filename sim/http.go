package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// transport sends the requests of one process through the world.
type transport struct{ p *Process }

// exchange is one request and what becomes of it.
type exchange struct {
	w       *World
	request *Message
	client  *task
	ctx     context.Context // the request's
	reply   *http.Response
	stream  *stream
	err     error
	settled bool            // the client has its reply or its error, or waits no more
	served  *virtualContext // the handler's, it ends then
}

// RoundTrip implements http.RoundTripper.
func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t := tr.p.enter("HTTP client")
	w := tr.p.w
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	x := &exchange{w: w, client: t, ctx: r.Context(), request: w.message(tr.p, r, body)}
	o := t.begin(x.request.Kind, x.request.Key)
	if err := ended(x.ctx); err != nil {
		return nil, err
	}
	w.number(x.request)
	t.record(Record{Event: EventSend, Op: x.request.Name(), Message: x.request})
	w.sendRequest(x, r)
	x.await()
	t.mustLive()
	if x.err != nil {
		t.record(Record{Event: EventFail, Op: x.request.Name(), Detail: x.err.Error()})
	}
	o.end()
	if x.err != nil {
		return nil, x.err
	}
	x.reply.Request = r
	return x.reply, nil
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

// message returns a request, still without its number.
func (w *World) message(p *Process, r *http.Request, body []byte) *Message {
	kind, key := r.Method+" "+r.URL.Path, ""
	if w.naming.Request != nil {
		kind, key = w.naming.Request(r, body)
	}
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &Message{
		Leg: Request, Kind: kind, Key: key, From: p.node.Name, To: r.URL.Host,
		Method: r.Method, Path: r.URL.RequestURI(), Body: body, Header: header,
	}
}

// number names a request as it is sent: one that a crash held back has no number.
func (w *World) number(m *Message) {
	name := joinKey(m.Kind, m.Key)
	w.messages[name]++
	m.Exchange, m.At = name+"#"+strconv.Itoa(w.messages[name]), w.now
}

// await parks the client until it has a reply, an error, or no more patience.
func (x *exchange) await() {
	defer x.hangUp()
	patience := x.w.now + x.w.timing.Connect
	if _, ok := trueDeadline(x.ctx); ok {
		patience = noDeadline
	}
	for x.reply == nil && x.err == nil {
		if x.err = ended(x.ctx); x.err != nil {
			return
		}
		if x.w.now >= patience {
			x.err = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT}
			return
		}
		x.client.await(x.ctx, patience)
	}
}

// hangUp ends the client's interest, also when the client died: without a reply, the
// server soon sees the connection closed.
func (x *exchange) hangUp() {
	x.settled = true
	if x.reply != nil {
		return
	}
	x.w.after(x.w.timing.Link, x.request.Exchange, func() {
		if x.served != nil {
			x.served.cancel()
		}
	})
}

// sendRequest puts the request on its way, or loses it.
func (w *World) sendRequest(x *exchange, r *http.Request) {
	m := x.request
	nodes := w.hosts[hostname(m.To)]
	if len(nodes) == 0 {
		x.fail(0, &net.DNSError{Err: "no such host", Name: m.To, IsNotFound: true})
		return
	}
	passage := w.passage(m)
	switch {
	case passage.Drop:
		w.lose(m, m.From, "")
		return
	case passage.Reset:
		w.reset(m, x)
		return
	}
	nodes = directed(nodes, passage.To)
	w.deliverAfter(w.timing.Link+passage.Delay, passage.Hold, nodes, x, m.Exchange, r)
	for i, later := range passage.Copies {
		name := m.Exchange + "+" + strconv.Itoa(i+1)
		w.trace.add(Record{At: w.now, Node: m.From, Event: EventCopy, Op: name, Message: m})
		ghost := &exchange{w: w, request: m, settled: true} // nobody waits for a copy's answer
		w.deliverAfter(w.timing.Link+passage.Delay+later, 0, nodes, ghost, name, r)
	}
}

// reset breaks the exchange's connection, and loses the message that is on it.
func (w *World) reset(m *Message, x *exchange) {
	w.trace.add(Record{At: w.now, Node: m.From, Event: EventReset, Op: m.Name(), Message: m})
	x.fail(w.timing.Link, errReset)
}

func (w *World) passage(m *Message) Passage {
	if w.faults == nil {
		return Passage{}
	}
	return w.faults.Message(m)
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return hostport
}

// deliverAfter lets the request arrive at one of the nodes and starts the handler
// there as a task with the request's name.
func (w *World) deliverAfter(d, hold time.Duration, nodes []*Node, x *exchange, name string, r *http.Request) {
	w.carry(x.request, name, d, hold, func() {
		node := route(nodes, name)
		if node == nil {
			x.fail(w.timing.Link, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
			return
		}
		way := w.way(x.request.From, node.Name)
		switch {
		case way.Cut:
			w.lose(x.request, node.Name, cut(x.request.From, node.Name))
		case way.Slow > 0:
			w.after(way.Slow, name, func() { x.arrive(node, name, r) })
		default:
			x.arrive(node, name, r)
		}
	})
}

// arrive starts the handler on the node, if something listens there.
func (x *exchange) arrive(node *Node, name string, r *http.Request) {
	w, p := x.w, node.process
	if p == nil || p.handler == nil {
		x.fail(w.timing.Link, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
		return
	}
	w.trace.add(Record{At: w.now, Node: node.Name, Event: EventDeliver, Op: name, Message: x.request})
	p.exchanges = append(p.exchanges, x)
	t := p.newTask(p.unique(name), x.request.Key, nil)
	t.run = func() { x.serve(t, p, r) }
	w.ready(t)
}

// directed leaves of a host's nodes the one that a request is meant for, if that is up.
func directed(nodes []*Node, to string) []*Node {
	for _, n := range nodes {
		if n.Name == to && n.Up() {
			return []*Node{n}
		}
	}
	return nodes
}

// route chooses among the nodes that listen, by the name of what arrives.
func route(nodes []*Node, name string) *Node {
	up := make([]*Node, 0, 4)
	for _, n := range nodes {
		if n.process != nil && n.process.handler != nil {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[Draw(0, "route", HashName(name))%uint64(len(up))]
}

// serve runs the handler, as net/http's server would.
func (x *exchange) serve(t *task, p *Process, r *http.Request) {
	t.begin("receive", "").end()
	rec := &responder{x: x, t: t, header: http.Header{}}
	ok := x.handle(t, p, rec, x.serverRequest(p, r))
	o := t.begin("answer", "")
	if ok {
		rec.finish()
	} else {
		x.reset("handler aborted")
	}
	p.leave(x)
	x.served.cancel()
	o.end()
}

// handle calls the handler. A panic of the handler's own ends only its exchange.
func (x *exchange) handle(t *task, p *Process, rec *responder, r *http.Request) (ok bool) {
	defer func() {
		v := recover()
		if p.dead {
			panic(crashed{})
		}
		if v == nil {
			return
		}
		ok = false
		if v != http.ErrAbortHandler {
			t.record(Record{Event: EventPanic, Detail: fmt.Sprintf("%v\n%s", v, panicStack())})
		}
	}()
	p.handler.ServeHTTP(rec, r)
	return true
}

// serverRequest returns the request as the server's side sees it. One that arrives when
// its client has given up has been held by a proxy on the way, which tells nothing of that:
// it is served like any other, and its answer finds nobody.
func (x *exchange) serverRequest(p *Process, r *http.Request) *http.Request {
	x.served = &virtualContext{Context: context.Background(), p: p, deadline: noDeadline}
	m := x.request
	in := (&http.Request{
		Method: r.Method, URL: requestURI(m), Host: m.To, Header: m.Header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: m.From + ":1024", RequestURI: m.Path,
		Body: io.NopCloser(bytes.NewReader(m.Body)), ContentLength: int64(len(m.Body)),
	}).WithContext(x.served)
	if r.Host != "" {
		in.Host = r.Host
	}
	return in
}

// requestURI returns the URL as it stands in a request line.
func requestURI(m *Message) *url.URL {
	u, err := url.ParseRequestURI(m.Path)
	if err != nil {
		panic(fmt.Sprintf("sim: a request for %q was sent: %v", m.Path, err))
	}
	return u
}

// fail lets the client's request end in an error, after d.
func (x *exchange) fail(d time.Duration, err error) {
	x.w.after(d, x.request.Exchange, func() { x.settle(nil, err) })
}

// reset closes the exchange without a further answer.
func (x *exchange) reset(why string) {
	err := &net.OpError{Op: "read", Net: "tcp", Err: fmt.Errorf("%s: %w", why, syscall.ECONNRESET)}
	if s := x.stream; s != nil {
		x.w.after(x.w.timing.Link+s.delay, x.request.Exchange, func() { s.end(err) })
		return
	}
	x.fail(x.w.timing.Link, err)
}

// settle gives the client its reply or its error, if it still waits for one.
func (x *exchange) settle(reply *http.Response, err error) {
	if x.settled {
		return
	}
	x.settled, x.reply, x.err = true, reply, err
	if !x.client.p.dead {
		x.w.ready(x.client)
	}
}

func (p *Process) leave(x *exchange) {
	for i := range p.exchanges {
		if p.exchanges[i] == x {
			p.exchanges = append(p.exchanges[:i], p.exchanges[i+1:]...)
			return
		}
	}
}
