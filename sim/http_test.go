package sim_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// call runs one request of the node "client" against handler on the node "server".
func call(t *testing.T, c sim.Config, handler http.HandlerFunc, client func(p *sim.Process)) *world {
	if c.Naming.Request == nil {
		c.Naming = work
	}
	w := newWorld(t, c)
	w.Node("server", func(p *sim.Process) { p.Serve(handler) })
	w.task("client", client)
	w.Run(time.Hour)
	return w
}

func ask(p *sim.Process) { answer(background, p) }

// impatient asks with a deadline of one second.
func impatient(p *sim.Process) {
	ctx, cancel := p.Clock().WithTimeout(background, time.Second)
	defer cancel()
	answer(ctx, p)
}

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hi") }

// Trap 7: net/http through the world.
func TestExchangeCarriesEverything(t *testing.T) {
	w := call(t, sim.Config{}, func(w http.ResponseWriter, r *http.Request) {
		body := must(io.ReadAll(r.Body))
		w.Header().Set("X-Answer", r.Header.Get("X-Question"))
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "not sent")
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, r.Method, " ", r.Host, " ", r.URL.Path, " ", r.URL.Query().Get("q"), " ", string(body), " ", r.ContentLength)
	}, func(p *sim.Process) {
		r := must(http.NewRequest("PUT", "http://server/a%20b?q=1", strings.NewReader("body")))
		r.Header.Set("X-Question", "why")
		resp := must(p.HTTPClient().Do(r))
		defer resp.Body.Close()
		note(p, "status", resp.Status)
		note(p, "headers", []string{resp.Header.Get("X-Answer"), resp.Header.Get("X-Late"), resp.Header.Get("Content-Type")})
		note(p, "body", string(must(io.ReadAll(resp.Body))))
	})
	require.Equal(t, []string{
		"10ms client/boot#1 status: 418 I'm a teapot",
		"10ms client/boot#1 headers: [why  text/plain; charset=utf-8]",
		"10ms client/boot#1 body: PUT server /a b 1 body 4",
	}, w.notes())
}

func TestAnswersWithoutBody(t *testing.T) {
	w := call(t, sim.Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusNoContent)
		}
		_, err := io.WriteString(w, "body")
		w.Header().Set("X", fmt.Sprint(err))
	}, func(p *sim.Process) {
		for _, ask := range []func(string) (*http.Response, error){p.HTTPClient().Get, p.HTTPClient().Head} {
			resp := must(ask("http://server/"))
			note(p, "got", fmt.Sprintf("%d %q", resp.StatusCode, must(io.ReadAll(resp.Body))))
		}
	})
	require.Equal(t, []string{`10ms client/boot#1 got: 204 ""`, `20ms client/boot#1 got: 200 ""`}, w.notes())
}

func TestRequestFails(t *testing.T) {
	for _, tt := range []struct {
		name    string
		config  sim.Config
		handler http.HandlerFunc
		client  func(p *sim.Process)
		want    string
	}{
		{"no such host", sim.Config{}, hello, func(p *sim.Process) {
			_, err := post(background, p, "http://nobody/", "")
			var dns *net.DNSError
			require.ErrorAs(t, err, &dns)
			note(p, "answer", err)
		}, `0s client/boot#1 answer: Post "http://nobody/": lookup nobody: no such host`},
		{"panic", sim.Config{}, func(http.ResponseWriter, *http.Request) { panic("oops") }, ask,
			`10ms client/boot#1 answer: Post "http://server/work": read tcp: handler aborted: connection reset by peer`},
		{"abort", sim.Config{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ask,
			`10ms client/boot#1 answer: Post "http://server/work": read tcp: handler aborted: connection reset by peer`},
		{"server crashes", with(crashAt("server/work#1/receive:after")), hello, ask,
			`10ms client/boot#1 answer: Post "http://server/work": read tcp: peer crashed: connection reset by peer`},
		{"request dropped", with(onMessage("work#1", sim.Passage{Drop: true})), hello, impatient,
			`1s client/boot#1 answer: Post "http://server/work": context deadline exceeded`},
		{"answer dropped", with(onMessage("work#1:answer", sim.Passage{Drop: true})), hello, impatient,
			`1s client/boot#1 answer: Post "http://server/work": context deadline exceeded`},
		{"dropped, no deadline", with(onMessage("work#1", sim.Passage{Drop: true})), hello, ask,
			`2m0s client/boot#1 answer: Post "http://server/work": dial tcp: connection timed out`},
		{"late answer", with(onMessage("work#1:answer", sim.Passage{Delay: 2 * time.Second})), hello, impatient,
			`1s client/boot#1 answer: Post "http://server/work": context deadline exceeded`},
		{"delayed", with(onMessage("work#1", sim.Passage{Delay: time.Minute})), hello, ask,
			`1m0.01s client/boot#1 answer: 200 hi`},
		{"slow, patient client", with(onMessage("work#1", sim.Passage{Delay: 10 * time.Minute})), hello, func(p *sim.Process) {
			ctx, cancel := p.Clock().WithTimeout(background, time.Hour)
			defer cancel()
			answer(ctx, p)
		}, `10m0.01s client/boot#1 answer: 200 hi`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := call(t, tt.config, tt.handler, tt.client)
			require.Equal(t, []string{tt.want}, w.notes())
			if tt.name == "late answer" {
				require.Len(t, w.story(sim.EventDeliver), 1, "nobody is there to take the answer")
			}
			panics := 0
			if tt.name == "panic" {
				panics = 1
			}
			require.Len(t, w.story(sim.EventPanic), panics)
			require.Len(t, w.story(sim.EventBoot), 2+strings.Count(tt.name, "crashes"), "a handler's panic must not kill the process")
		})
	}
}

func TestRequestToANodeThatIsDown(t *testing.T) {
	w := newWorld(t, sim.Config{Naming: work})
	server := w.Node("server", func(p *sim.Process) { p.Serve(http.HandlerFunc(hello)) })
	w.At(0, "", func() { server.Crash(time.Minute) })
	w.task("client", func(p *sim.Process) {
		_, err := post(background, p, "http://server/", "")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		note(p, "refused", "")
	})
	w.Run(time.Second)
	require.Equal(t, []string{"10ms client/boot#1 refused"}, w.notes())
}

func TestResetIsToldAsSuch(t *testing.T) {
	call(t, with(crashAt("server/work#1/answer:before")), hello, func(p *sim.Process) {
		_, err := post(background, p, "http://server/", "")
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestCopiesRunTheHandlerAgain(t *testing.T) {
	w := call(t, with(onMessage("work#1", sim.Passage{Copies: []time.Duration{0, time.Second}})), hello, ask)
	require.Equal(t, []string{"10ms client/boot#1 answer: 200 hi"}, w.notes())
	require.Equal(t, []string{"5ms server/work#1 work#1", "5ms server/work#1+1 work#1+1", "1.005s server/work#1+2 work#1+2"}, w.story(sim.EventAnswer))
}

func TestHostBalancesOverNodesThatAreUp(t *testing.T) {
	w := newWorld(t, sim.Config{Naming: work})
	var nodes []*sim.Node
	served := map[string]int{}
	for _, name := range []string{"s1", "s2", "s3"} {
		nodes = append(nodes, w.Node(name, func(p *sim.Process) {
			p.Serve(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served[p.Name()]++ }))
		}))
	}
	w.Host("server", nodes...)
	w.task("client", func(p *sim.Process) {
		for i := range 60 {
			if i == 30 {
				nodes[1].Crash(time.Hour)
			}
			must(post(background, p, "http://server:8080/work", ""))
		}
	})
	w.Run(time.Minute)
	require.Equal(t, 60, served["s1"]+served["s2"]+served["s3"])
	require.Greater(t, served["s1"], 10)
	require.Greater(t, served["s2"], 3)
	require.Less(t, served["s2"], 30)
	require.Greater(t, served["s3"], 10)
}

// streaming is a server that sends 0, 1, 2, end, a second apart.
func streaming(t *testing.T, f *faults, client func(p *sim.Process, body io.Reader)) *world {
	c := with(f)
	c.Naming = work
	w := newWorld(t, c)
	w.Node("server", func(p *sim.Process) {
		p.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for i := range 3 {
				fmt.Fprint(w, i)
				w.(http.Flusher).Flush()
				p.Clock().Sleep(r.Context(), time.Second)
			}
			fmt.Fprint(w, "end")
		}))
	})
	w.task("client", func(p *sim.Process) {
		ctx, cancel := p.Clock().WithTimeout(background, 10*time.Second)
		defer cancel()
		resp := must(p.HTTPClient().Do(must(http.NewRequestWithContext(ctx, "GET", "http://server/work", nil))))
		defer resp.Body.Close()
		client(p, resp.Body)
	})
	w.Run(time.Minute)
	return w
}

// noteBody notes each piece of a body as it arrives.
func noteBody(p *sim.Process, body io.Reader) {
	piece := make([]byte, 100)
	for {
		n, err := body.Read(piece)
		if err != nil {
			if errors.Is(err, syscall.ECONNRESET) {
				err = syscall.ECONNRESET
			}
			note(p, "end", err)
			return
		}
		note(p, "piece", string(piece[:n]))
	}
}

// Flush sends what there is; a slow head is not overtaken by what follows it.
func TestFlushStreams(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults *faults
		want   []string
	}{
		{"whole", nil, []string{"10ms piece: 0", "1.01s piece: 1", "2.01s piece: 2", "3.01s piece: end", "3.01s end: EOF"}},
		{"delayed", onMessage("work#1:answer", sim.Passage{Delay: 1500 * ms}), []string{"1.51s piece: 0", "2.51s piece: 1", "3.51s piece: 2", "4.51s piece: end", "4.51s end: EOF"}},
		{"crash", crashAt("server/work#1/sleep#2:after"), []string{"10ms piece: 0", "1.01s piece: 1", "2.01s end: connection reset by peer"}},
		{"stalled", &faults{step: func(s sim.Step) sim.Strike {
			if s.Name() == "server/work#1/sleep:after" {
				return sim.Strike{Stall: time.Minute}
			}
			return sim.Strike{}
		}}, []string{"10ms piece: 0", "10s end: context deadline exceeded"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := streaming(t, tt.faults, noteBody)
			for i := range tt.want {
				tt.want[i] = strings.Replace(tt.want[i], "s ", "s client/boot#1 ", 1)
			}
			require.Equal(t, tt.want, w.notes())
		})
	}
}

func TestMaxBytesReader(t *testing.T) {
	w := call(t, sim.Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 3))
		var tooLarge *http.MaxBytesError
		require.ErrorAs(t, err, &tooLarge)
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	}, ask)
	require.Equal(t, []string{"10ms client/boot#1 answer: 413 http: request body too large"}, w.notes())
}

// What a handler leaves running under the request's context ends with the handler.
func TestRequestContextEndsWithTheHandler(t *testing.T) {
	w := newWorld(t, sim.Config{Naming: work})
	w.Node("server", func(p *sim.Process) {
		p.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			p.Go("left", func(context.Context) { note(p, "left", p.Clock().Sleep(r.Context(), time.Minute)) })
			p.Clock().Sleep(r.Context(), time.Second)
		}))
	})
	w.task("client", ask)
	w.Run(time.Hour)
	require.Equal(t, []string{"1.005s server/left#1 left: context canceled", "1.01s client/boot#1 answer: 200 "}, w.notes())
}

// A request that arrives when its client has given up is served all the same: whoever has
// held it up on the way tells nothing of that.
func TestRequestIsServedThoughItsClientHasGone(t *testing.T) {
	c := with(&faults{message: func(m *sim.Message) sim.Passage { return sim.Passage{Delay: time.Minute} }})
	c.Naming = work
	w := newWorld(t, c)
	w.Node("server", func(p *sim.Process) {
		p.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			note(p, "served", p.Clock().Sleep(r.Context(), time.Minute))
		}))
	})
	w.task("client", impatient)
	w.Run(time.Hour)
	require.Contains(t, w.notes(), "2m0.005s server/work#1 served: <nil>")
}

// The server sees that its client has gone, by giving up or by dying, and a wait
// under the request's context ends then.
func TestRequestContextEndsWithTheClient(t *testing.T) {
	for name, c := range map[string]struct {
		config sim.Config
		client func(p *sim.Process)
		want   string
	}{
		"gives up": {sim.Config{}, impatient, "1.005s server/work#1 gone: context canceled"},
		"dies": {with(&faults{step: func(s sim.Step) sim.Strike {
			return sim.Strike{Crash: s.Name() == "client/dier#1/sleep:after", Restart: time.Hour}
		}}), func(p *sim.Process) {
			p.Go("dier", func(ctx context.Context) { p.Clock().Sleep(ctx, 2*time.Second) })
			ask(p)
		}, "2.005s server/work#1 gone: context canceled"},
	} {
		c.config.Naming = work
		w := newWorld(t, c.config)
		w.Node("server", func(p *sim.Process) {
			p.Serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				note(p, "gone", p.Clock().Sleep(r.Context(), time.Minute))
			}))
		})
		w.task("client", c.client)
		w.Run(time.Hour)
		require.Contains(t, w.notes(), c.want, name)
	}
}
