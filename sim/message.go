package sim

import (
	"fmt"
	"net/http"
	"time"
)

// Leg says which way a message of an exchange goes.
type Leg string

const (
	Request Leg = "request"
	Answer  Leg = "answer"
)

// The methods of messages that are not HTTP's.
const (
	MethodPublish = "PUBLISH" // a broker's
	MethodExpired = "EXPIRED" // the end of a key of a lease service
)

// Message is one leg of an HTTP exchange.
type Message struct {
	// Exchange is the exchange's stable name, KIND(KEY)#n: the n-th request of its
	// kind about that key, whoever sent it, in the order of sending.
	Exchange string `json:"exchange"`
	// At is the true time at which it was sent.
	At     time.Duration `json:"-"`
	Leg    Leg           `json:"leg"`
	Kind   string        `json:"kind"`
	Key    string        `json:"key,omitempty"`
	From   string        `json:"from"` // node
	To     string        `json:"to"`   // node or host name
	Method string        `json:"method,omitempty"`
	Path   string        `json:"path,omitempty"`   // with the query
	Status int           `json:"status,omitempty"` // of an answer
	Body   []byte        `json:"body,omitempty"`
	// Header must not be changed.
	Header http.Header `json:"-"`
}

// Name returns the message's stable name: the exchange's, with ":answer" for its
// second leg.
func (m *Message) Name() string {
	if m.Leg == Answer {
		return m.Exchange + ":answer"
	}
	return m.Exchange
}

// Hash returns [HashName] of the message's name.
func (m *Message) Hash() uint64 {
	h := hashString(fnvOffset, m.Exchange)
	if m.Leg == Answer {
		h = hashString(h, ":answer")
	}
	return h
}

func (m *Message) addTo(h uint64) uint64 {
	h = hashStrings(h, m.Exchange, string(m.Leg), m.Kind, m.Key, m.From, m.To, m.Method, m.Path)
	h = hashUint(hashUint(h, uint64(m.Status)), uint64(len(m.Body)))
	for _, b := range m.Body {
		h = (h ^ uint64(b)) * fnvPrime
	}
	return h
}

// String returns the message as "buyer > shop POST /orders {...}".
func (m *Message) String() string {
	if m.Leg == Answer {
		return fmt.Sprintf("%s > %s %d %s", m.From, m.To, m.Status, m.Body)
	}
	return fmt.Sprintf("%s > %s %s %s %s", m.From, m.To, m.Method, m.Path, m.Body)
}
