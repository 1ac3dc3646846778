package faults

import "github.com/tillstorm/tillstorm/sim"

// What happens to messages.
const (
	Drop       Kind = "drop"
	Duplicate  Kind = "duplicate"
	Delay      Kind = "delay"
	LateAnswer Kind = "late-answer"
	Reorder    Kind = "reorder"
	Reset      Kind = "reset"
)

const network = "network"

var messageKinds = []spec{
	{
		name: Drop, sentence: "a request or an answer is lost",
		actor: network, verb: "drops", anchor: atMessage,
		pass:        func(passage *sim.Passage, _ Perturbation) { passage.Drop = true },
		fitsMessage: isHTTP,
	},
	{
		name: Duplicate, sentence: "a request arrives once more",
		actor: network, verb: "duplicates", anchor: atMessage, params: []param{after},
		pass:        func(passage *sim.Passage, p Perturbation) { passage.Copies = append(passage.Copies, p.For) },
		fitsMessage: func(m *sim.Message) bool { return isHTTP(m) && m.Leg == sim.Request },
	},
	{
		name: Delay, sentence: "a request or a message arrives later",
		actor: network, verb: "delays", anchor: atMessage, params: []param{by},
		pass:        func(passage *sim.Passage, p Perturbation) { passage.Delay += p.By },
		fitsMessage: func(m *sim.Message) bool { return m.Leg == sim.Request },
	},
	{
		name: LateAnswer, sentence: "an answer arrives later, perhaps when nobody waits for it any more",
		actor: network, verb: "answers-late", anchor: atMessage, params: []param{by},
		pass:        func(passage *sim.Passage, p Perturbation) { passage.Delay += p.By },
		fitsMessage: func(m *sim.Message) bool { return m.Leg == sim.Answer },
	},
	{
		name: Reorder, sentence: "a message lets the next one on its way pass",
		actor: network, verb: "reorders", anchor: atMessage, params: []param{duration("within", fieldFor, 1, day)},
		pass:        func(passage *sim.Passage, p Perturbation) { passage.Hold = p.For },
		fitsMessage: isHTTP,
	},
	{
		name: Reset, sentence: "the connection is reset, and the request or the answer on it is lost",
		actor: network, verb: "resets", anchor: atMessage,
		pass:        func(passage *sim.Passage, _ Perturbation) { passage.Reset = true },
		fitsMessage: isHTTP,
	},
}

// isHTTP says whether a message is a leg of an HTTP exchange, not a broker's or a
// lease service's.
func isHTTP(m *sim.Message) bool { return !isPublished(m) && !isExpiry(m) }

func isPublished(m *sim.Message) bool { return m.Method == sim.MethodPublish }

func isExpiry(m *sim.Message) bool { return m.Method == sim.MethodExpired }
