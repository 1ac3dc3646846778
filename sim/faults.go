package sim

import (
	"strconv"
	"time"
)

// Faults decides what goes wrong. Its answers must depend only on what it is
// asked, or the run is not deterministic.
type Faults interface {
	// Step is asked each time a task reaches a step.
	Step(s Step) Strike
	// Message is asked once for each leg of an exchange, when it is sent.
	Message(m *Message) Passage
}

// Strike is what happens to a task at a step: first it is stalled, then its
// process crashes. The zero Strike does nothing.
type Strike struct {
	Stall   time.Duration
	Crash   bool
	Restart time.Duration // from the crash to the next boot
}

// Passage is what happens to one leg of an exchange. The zero Passage delivers it
// once, after the link's latency.
type Passage struct {
	Drop   bool
	Delay  time.Duration   // on top of the link's latency
	Copies []time.Duration // further deliveries, each this long after the first; requests only
}

// Phase says on which side of its operation a step lies.
type Phase uint8

const (
	Before Phase = iota
	After
)

func (p Phase) String() string {
	if p == Before {
		return ":before"
	}
	return ":after"
}

// Step is a point where a process touches the world.
type Step struct {
	At    time.Duration // true time since the world's start
	Node  string
	Task  string // with its count, "callback(A)#2"
	Op    string // the operation, "InsertPaymentRecord"
	Key   string // the operation's key, where it is not the task's own
	N     int    // which occurrence of the operation in this task, from 1
	Phase Phase

	prefix uint64 // hash of "NODE/TASK/"
}

// Name returns the step's stable name, NODE/TASK#n/OPERATION[(KEY)][#k]:before|after.
func (s Step) Name() string { return s.Node + "/" + s.Task + "/" + s.Operation() + s.Phase.String() }

// Operation returns the name's part that tells the operation within its task.
func (s Step) Operation() string {
	name := s.Op
	if s.Key != "" {
		name += "(" + s.Key + ")"
	}
	if s.N > 1 {
		name += "#" + strconv.Itoa(s.N)
	}
	return name
}

// Hash returns [HashName] of the step's name, without building the name.
func (s Step) Hash() uint64 {
	h := hashString(s.prefix, s.Op)
	if s.Key != "" {
		h = hashString(hashString(hashString(h, "("), s.Key), ")")
	}
	if s.N > 1 {
		var digits [20]byte
		h = hashString(hashString(h, "#"), string(strconv.AppendInt(digits[:0], int64(s.N), 10)))
	}
	return hashString(h, s.Phase.String())
}
