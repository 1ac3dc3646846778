package sim

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

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
	switch {
	case r.t.p.dead:
		return 0, errDead
	case r.status == http.StatusNoContent || r.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case r.x.request.Method == http.MethodHead:
		return len(p), nil
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
	r.x.stream.send(&r.body)
}

// finish sends the answer, or the end of one that was begun by Flush.
func (r *responder) finish() {
	r.WriteHeader(http.StatusOK)
	if s := r.x.stream; s != nil {
		s.send(&r.body)
		r.x.w.after(r.x.w.timing.Link+s.delay, r.x.request.Exchange, func() { s.end(io.EOF) })
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
	passage, way := w.passage(m), w.way(m.From, m.To)
	switch {
	case passage.Drop:
		w.lose(m, m.From, "")
		return
	case way.Cut:
		w.lose(m, m.From, cut(m.From, m.To))
		return
	case passage.Reset:
		w.reset(m, x)
		return
	}
	passage.Delay += way.Slow
	if s != nil {
		s.delay, passage.Hold = passage.Delay, 0
	}
	w.carry(m, x.request.Exchange, w.timing.Link+passage.Delay, passage.Hold, func() {
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
	delay  time.Duration // of the answer's head; what follows can't overtake it
	buffer bytes.Buffer
	err    error // io.EOF at the end
}

// send puts what was written on its way.
func (s *stream) send(written *bytes.Buffer) {
	chunk := bytes.Clone(written.Bytes())
	written.Reset()
	if len(chunk) > 0 {
		s.x.w.after(s.x.w.timing.Link+s.delay, s.x.request.Exchange, func() { s.buffer.Write(chunk); s.wake() })
	}
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
		if err := ended(s.x.ctx); err != nil {
			return 0, err
		}
		t.await(s.x.ctx, noDeadline)
	}
	return s.buffer.Read(p)
}
