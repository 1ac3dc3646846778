package sim

import (
	"bytes"
	"context"
	"errors"
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
	server  *Process
	reply   *http.Response
	stream  *stream
	err     error
	settled bool // the client has its reply or its error, or waits no more
	gone    bool // the server can see that the client waits no more
}

// RoundTrip implements http.RoundTripper.
func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t := tr.p.enter("HTTP client")
	w := tr.p.w
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	x := &exchange{w: w, client: t, request: w.message(tr.p, r, body)}
	o := t.begin(x.request.Kind, x.request.Key)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	t.record(Record{Event: EventSend, Op: x.request.Name(), Message: x.request})
	w.sendRequest(x, r)
	x.await(r.Context())
	o.end()
	if x.err != nil {
		t.record(Record{Event: EventFail, Op: x.request.Name(), Detail: x.err.Error()})
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

// message names a request.
func (w *World) message(p *Process, r *http.Request, body []byte) *Message {
	kind, key := r.Method+" "+r.URL.Path, ""
	if w.naming.Request != nil {
		kind, key = w.naming.Request(r, body)
	}
	name := joinKey(kind, key)
	w.messages[name]++
	return &Message{
		Exchange: name + "#" + strconv.Itoa(w.messages[name]), Leg: Request, At: w.now, Kind: kind, Key: key,
		From: p.node.Name, To: r.URL.Host, Method: r.Method, Path: r.URL.RequestURI(), Body: body, Header: r.Header.Clone(),
	}
}

// await parks the client until it has a reply, an error, or no more patience.
func (x *exchange) await(ctx context.Context) {
	patience := x.w.now + x.w.timing.Connect
	timeout := error(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT})
	if deadline, ok := trueDeadline(ctx); ok && deadline < patience {
		patience, timeout = deadline, context.DeadlineExceeded
	}
	for x.reply == nil && x.err == nil {
		if x.w.now >= patience {
			x.err = timeout
			break
		}
		x.client.parkUntil(patience)
	}
	x.settled = true
	if x.err != nil {
		x.w.after(x.w.timing.Link, x.request.Exchange, func() { x.gone = true })
	}
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
	if passage.Drop {
		w.trace.add(Record{At: w.now, Node: m.From, Event: EventDrop, Op: m.Name(), Message: m})
		return
	}
	w.deliverAfter(w.timing.Link+passage.Delay, nodes, x, m.Exchange, r)
	for i, later := range passage.Copies {
		name := m.Exchange + "+" + strconv.Itoa(i+1)
		w.trace.add(Record{At: w.now, Node: m.From, Event: EventCopy, Op: name, Message: m})
		ghost := &exchange{w: w, request: m, settled: true} // nobody waits for a copy's answer
		w.deliverAfter(w.timing.Link+passage.Delay+later, nodes, ghost, name, r)
	}
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
func (w *World) deliverAfter(d time.Duration, nodes []*Node, x *exchange, name string, r *http.Request) {
	w.after(d, name, func() {
		node := route(nodes, name)
		if node == nil {
			x.fail(w.timing.Link, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
			return
		}
		p := node.process
		w.trace.add(Record{At: w.now, Node: node.Name, Event: EventDeliver, Op: name, Message: x.request})
		x.server = p
		p.exchanges = append(p.exchanges, x)
		t := p.newTask(p.unique(name), x.request.Key, nil)
		t.run = func() { x.serve(t, p, r) }
		w.ready(t)
	})
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

// serverRequest returns the request as the server's side sees it.
func (x *exchange) serverRequest(p *Process, r *http.Request) *http.Request {
	ctx := &virtualContext{Context: context.Background(), p: p, deadline: noDeadline, ended: func() bool { return x.gone }}
	m := x.request
	in := (&http.Request{
		Method: r.Method, URL: requestURI(m), Host: m.To, Header: m.Header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: m.From + ":1024", RequestURI: m.Path,
		Body: io.NopCloser(bytes.NewReader(m.Body)), ContentLength: int64(len(m.Body)),
	}).WithContext(ctx)
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
	if x.stream != nil {
		x.w.after(x.w.timing.Link, x.request.Exchange, func() { x.stream.end(err) })
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

// responder is the http.ResponseWriter of one exchange. Like net/http's it holds
// the answer back until the handler returns or flushes.
type responder struct {
	x      *exchange
	t      *task
	header http.Header
	sent   http.Header // a copy of header at WriteHeader
	status int
	body   bytes.Buffer
}

func (r *responder) Header() http.Header { return r.header }

func (r *responder) WriteHeader(status int) {
	if r.status != 0 || status < 200 { // informational answers are not carried
		return
	}
	r.status, r.sent = status, r.header.Clone()
}

func (r *responder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.t.p.dead {
		return 0, errDead
	}
	return r.body.Write(p)
}

// Flush sends what was written so far. The rest of the body follows as a stream.
func (r *responder) Flush() {
	r.t.p.enter("Flush")
	r.WriteHeader(http.StatusOK)
	if r.x.stream == nil {
		o := r.t.begin("flush", "")
		r.x.stream = &stream{x: r.x}
		r.send(r.x.stream)
		o.end()
		return
	}
	r.x.stream.sendAfter(r.x.w.timing.Link, bytes.Clone(r.body.Bytes()))
	r.body.Reset()
}

// finish sends the answer, or the end of one that was begun by Flush.
func (r *responder) finish() {
	r.WriteHeader(http.StatusOK)
	if s := r.x.stream; s != nil {
		s.sendAfter(r.x.w.timing.Link, bytes.Clone(r.body.Bytes()))
		r.x.w.after(r.x.w.timing.Link, r.x.request.Exchange, func() { s.end(io.EOF) })
		return
	}
	r.send(nil)
}

// send puts the answer on its way, or loses it. A nil stream says it is whole.
func (r *responder) send(s *stream) {
	x := r.x
	w := x.w
	m := &Message{
		Exchange: x.request.Exchange, Leg: Answer, At: w.now, Kind: x.request.Kind, Key: x.request.Key,
		From: r.t.p.node.Name, To: x.request.From, Status: r.status, Body: bytes.Clone(r.body.Bytes()), Header: r.sent,
	}
	r.body.Reset()
	r.t.record(Record{Event: EventAnswer, Op: r.t.name, Message: m})
	if x.client == nil {
		return
	}
	passage := w.passage(m)
	if passage.Drop {
		w.trace.add(Record{At: w.now, Node: m.From, Event: EventDrop, Op: m.Name(), Message: m})
		return
	}
	w.after(w.timing.Link+passage.Delay, x.request.Exchange, func() {
		if x.settled {
			return
		}
		w.trace.add(Record{At: w.now, Node: m.To, Event: EventDeliver, Op: m.Name(), Message: m})
		x.settle(response(m, s), nil)
	})
}

// response returns an answer as the client sees it.
func response(m *Message, s *stream) *http.Response {
	resp := &http.Response{
		Status: strconv.Itoa(m.Status) + " " + http.StatusText(m.Status), StatusCode: m.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: m.Header.Clone(), ContentLength: int64(len(m.Body)),
	}
	if resp.Header.Get("Content-Type") == "" && len(m.Body) > 0 {
		resp.Header.Set("Content-Type", http.DetectContentType(m.Body))
	}
	resp.Body = io.NopCloser(bytes.NewReader(m.Body))
	if s != nil {
		s.buffer.Write(m.Body)
		resp.Body, resp.ContentLength = io.NopCloser(s), -1
	}
	return resp
}

// stream is the body of an answer that the handler flushed before its end.
type stream struct {
	x      *exchange
	buffer bytes.Buffer
	err    error // io.EOF at the end
}

func (s *stream) sendAfter(d time.Duration, chunk []byte) {
	if len(chunk) == 0 {
		return
	}
	s.x.w.after(d, s.x.request.Exchange, func() { s.buffer.Write(chunk); s.wake() })
}

func (s *stream) end(err error) { s.err = err; s.wake() }

func (s *stream) wake() {
	if c := s.x.client; c != nil && !c.p.dead {
		s.x.w.ready(c)
	}
}

// Read implements io.Reader for the client: it waits in virtual time.
func (s *stream) Read(p []byte) (int, error) {
	t := s.x.client.p.enter("response body")
	if t != s.x.client {
		return 0, errors.New("sim: a streamed response body must be read by the task that sent the request")
	}
	for s.buffer.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		t.park()
	}
	return s.buffer.Read(p)
}
