package checker_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// TestLegalHistoriesPass is the check against false alarms: whatever the network,
// the crashes and the clients do, a shop that works breaks nothing.
func TestLegalHistoriesPass(t *testing.T) {
	for seed := range uint64(500) {
		s := drawHistory(seed, "")
		failures, unknown := s.judge(t)
		require.Empty(t, failures, "seed %d:\n%s", seed, s.story())
		require.False(t, unknown, "seed %d:\n%s", seed, s.story())
	}
}

// TestPlantedDefectsAreFound proves that the checker is not blind to the shop of
// these histories.
func TestPlantedDefectsAreFound(t *testing.T) {
	for defect, property := range map[string]string{
		"answers before the commit":                 "acked-is-durable",
		"books every delivery":                      "charge-once",
		"pays a closed order":                       "closed-is-final",
		"closes a paid order":                       "legal-transitions",
		"reads a stale copy":                        "linearizable-orders",
		"answers a repeat with the status of now":   "linearizable-orders",
		"forgets that it has acknowledged a charge": "linearizable-orders",
		"fails by itself":                           "no-unexplained-error",
	} {
		t.Run(defect, func(t *testing.T) {
			for seed := range uint64(1000) {
				failures, _ := drawHistory(seed, defect).judge(t)
				if slices.ContainsFunc(failures, func(f checker.Failure) bool { return f.Property == property }) {
					return
				}
			}
			t.Errorf("%s was never broken", property)
		})
	}
}

// shop is the shop as the specification has it, for one order, and a world in which
// everything may go wrong.
type shop struct {
	*rand.Rand
	defect   string
	lines    []string
	status   string            // of the order's row, "" while there is none
	stale    string            // what it was before its last change
	booked   map[string]string // what each transaction is answered
	copies   int               // of records, by the defect that books twice
	sent     map[string]int    // by kind
	copied   map[string]int    // by exchange
	onTheWay []string          // requests that were sent and did not arrive
	handlers []*handler
	held     []string // exchanges whose answer is on its way
}

// handler serves one request, in steps.
type handler struct {
	name, kind, txn string
	did             bool   // it has done its work
	answer          string // what it will say
}

func drawHistory(seed uint64, defect string) *shop {
	s := &shop{Rand: sim.Rand(seed, "history", ""), defect: defect,
		booked: map[string]string{}, sent: map[string]int{}, copied: map[string]int{}}
	for range 5 + s.IntN(60) {
		s.step(s.IntN(100))
	}
	for len(s.handlers) > 0 {
		s.serve(s.handlers[0])
	}
	return s
}

func (s *shop) judge(t *testing.T) ([]checker.Failure, bool) {
	trace := &sim.Trace{}
	evidence := checker.New(trace).Judge(told...)
	require.NoError(t, newTeller(trace).tell(s.story()))
	return evidence.Finish()
}

func (s *shop) story() string { return strings.Join(s.lines, "\n") }

func (s *shop) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *shop) step(what int) {
	switch {
	case what < 8:
		s.send("create", "198.00")
	case what < 22:
		s.send("callback", fmt.Sprintf("T%d 198.00", 1+s.IntN(2)))
	case what < 34:
		s.send("read", "")
	case what < 52:
		if len(s.onTheWay) > 0 {
			s.arrive(s.IntN(len(s.onTheWay)))
		}
	case what < 58:
		if len(s.onTheWay) > 0 {
			s.copy(s.onTheWay[s.IntN(len(s.onTheWay))])
		}
	case what < 82:
		if len(s.handlers) > 0 {
			s.serve(s.handlers[s.IntN(len(s.handlers))])
		}
	case what < 88:
		if len(s.held) > 0 {
			i := s.IntN(len(s.held))
			s.say("%s returns", s.held[i])
			s.held = slices.Delete(s.held, i, i+1)
		}
	case what < 92:
		s.say("shop-1 crashes")
		s.handlers = nil
	default:
		s.move()
	}
}

func (s *shop) send(kind, words string) {
	s.sent[kind]++
	name := fmt.Sprintf("%s(A)#%d", kind, s.sent[kind])
	s.say("%s sent %s held", name, words)
	s.onTheWay = append(s.onTheWay, name+" "+words)
}

func (s *shop) copy(request string) {
	name, words, _ := strings.Cut(request, " ")
	if strings.Contains(name, "+") {
		return
	}
	s.copied[name]++
	s.say("%s copied held", name)
	s.onTheWay = append(s.onTheWay, fmt.Sprintf("%s+%d %s", name, s.copied[name], words))
}

func (s *shop) arrive(i int) {
	words := strings.Fields(s.onTheWay[i])
	s.onTheWay = slices.Delete(s.onTheWay, i, i+1)
	h := &handler{name: words[0]}
	h.kind, _, _ = strings.Cut(h.name, "(")
	if h.kind == "callback" {
		h.txn = words[1]
	}
	s.say("%s arrives", h.name)
	s.handlers = append(s.handlers, h)
	if s.defect == "answers before the commit" && h.kind == "callback" && s.status == "CREATED" {
		s.say("%s answers 200 PAID", h.name)
	}
}

// serve brings a handler one step on: it works, then it answers.
func (s *shop) serve(h *handler) {
	if !h.did {
		h.did = true
		if h.answer = s.refusal(h); h.answer == "" {
			s.work(h)
		}
		return
	}
	s.handlers = slices.DeleteFunc(s.handlers, func(other *handler) bool { return other == h })
	if h.answer == "200" || h.answer == "201" { // the order is read again for the answer
		h.answer += " " + s.status + " 198.00"
	}
	switch s.IntN(5) {
	case 0:
		s.say("%s meets error", h.name)
		h.answer = "500"
	case 1:
		h.answer += " lost"
	case 2:
		if !strings.Contains(h.name, "+") {
			s.held = append(s.held, h.name)
		}
		h.answer += " held"
	}
	s.say("%s answers %s", h.name, h.answer)
}

func (s *shop) refusal(h *handler) string {
	refusal := map[int]string{0: "400", 1: "401", 2: "429", 3: "503"}[s.IntN(20)]
	if refusal == "503" && s.defect != "fails by itself" {
		s.say("%s meets busy", h.name)
	}
	return refusal
}

func (s *shop) work(h *handler) {
	switch h.kind {
	case "create":
		h.answer = "200"
		if s.status == "" {
			s.change(h.name, "CREATED", "")
			h.answer = "201"
		}
	case "read":
		h.answer = "200 " + s.status
		if s.defect == "reads a stale copy" && s.stale != "" {
			h.answer = "200 " + s.stale
		}
		if s.status == "" {
			h.answer = "404"
		}
	case "callback":
		s.book(h)
	}
}

func (s *shop) book(h *handler) {
	if s.status == "" {
		h.answer = "404"
		return
	}
	if s.booked[h.txn] == "" {
		disposition := map[string]string{"CREATED": "applied", "CLOSED": "late"}[s.status]
		if disposition == "" {
			disposition = "surplus"
		}
		record := fmt.Sprintf("record %s A 198.00 %s", h.txn, disposition)
		if s.status == "CREATED" || s.defect == "pays a closed order" && s.status == "CLOSED" {
			s.change(h.name, "PAID", record)
		} else {
			s.say("%s commits %s", h.name, record)
		}
		s.booked[h.txn] = s.status
	} else if s.defect == "books every delivery" {
		s.copies++
		s.say("%s commits record %s/%d A 198.00 surplus", h.name, h.txn, 1+s.copies)
	}
	h.answer = "200 " + s.booked[h.txn]
	switch s.defect {
	case "answers a repeat with the status of now":
		h.answer = "200 " + s.status
	case "forgets that it has acknowledged a charge":
		h.answer = "404"
	}
}

// move is what happens without a client: a close, a refund, a payment found by asking.
func (s *shop) move() {
	switch s.status {
	case "CREATED":
		if s.IntN(3) > 0 {
			s.change("close-scan@14:15:00", "CLOSED", "")
			return
		}
		s.booked["T9"] = "PAID"
		s.change("query(A)#1", "PAID", "record T9 A 198.00 applied")
	case "PAID":
		if s.defect == "closes a paid order" {
			s.change("close-scan@14:15:00", "CLOSED", "")
			return
		}
		s.change("refund(A)#1", "REFUNDING", "")
	case "REFUNDING":
		s.change("refund(A)#1", "REFUNDED", "")
	case "CLOSED":
		s.say("note(A)#1 commits order A CLOSED 198.00")
	}
}

// change moves the order's row and writes its log, with a further row.
func (s *shop) change(task, to, row string) {
	line := fmt.Sprintf("%s commits order A %s 198.00, log A %s>%s", task, to, s.status, to)
	if row != "" {
		line += ", " + row
	}
	s.say("%s", line)
	s.stale, s.status = s.status, to
}
