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

// Links is what Faults may say of the network itself, apart from single messages.
type Links interface {
	// Way is asked when something is about to go from one node to another.
	Way(from, to string, at time.Duration) Way
}

// Strike is what happens to a task at a step: first it is stalled, then its process
// stands still, then it crashes; if it lives, its operation may fail. The zero
// Strike does nothing.
type Strike struct {
	Stall   time.Duration
	Pause   time.Duration // the whole process stands still, as in a stop of the world
	Crash   bool
	Restart time.Duration // from the crash to the next boot
	SQL     SQLFault      // of an SQL operation: it fails
	// Of a lease's acquisition, before it: it is granted although another has it;
	// or it ends this long after it began, whatever was agreed.
	Grant bool
	Ends  time.Duration
}

// SQLFault is how an SQL operation fails.
type SQLFault string

const (
	SQLBusy  SQLFault = "busy"  // another program has the lock for as long as the busy timeout; before the operation, where it Waits
	SQLError SQLFault = "error" // an I/O error; before the operation, of which nothing is done
	SQLFull  SQLFault = "full"  // the disk is full; before a write, of which nothing is done
	SQLLost  SQLFault = "lost"  // the connection is lost; before the operation nothing of it is done, after it all is
)

// Passage is what happens to one leg of an exchange. The zero Passage delivers it
// once, after the link's latency.
type Passage struct {
	Drop   bool
	Reset  bool            // it is lost, and the client sees its connection reset
	Delay  time.Duration   // on top of the link's latency
	Hold   time.Duration   // it lets the next message of its way pass, but waits no longer than this
	Copies []time.Duration // further deliveries, each this long after the first; requests only
	To     string          // the node of a host where it arrives, if that is up; requests only
}

// Way is the state of the network from one node to another. The zero Way is fine.
type Way struct {
	Cut  bool          // nothing arrives
	Slow time.Duration // everything takes so much longer
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

	// Of an SQL operation:
	Database string
	SQL      SQLKind
	Waits    bool // for a lock, if another connection holds one

	Taken  bool // of a lease's acquisition: another owner has it
	Leased bool // the task holds a lease

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

// SQLKind is what kind of SQL operation a step belongs to.
type SQLKind string

const (
	SQLRead     SQLKind = "read"
	SQLWrite    SQLKind = "write"
	SQLBegin    SQLKind = "begin"
	SQLCommit   SQLKind = "commit"
	SQLRollback SQLKind = "rollback"
)
