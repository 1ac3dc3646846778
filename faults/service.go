package faults

import (
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// What the message broker and the lease service do.
const (
	BrokerLoss      Kind = "broker-loss"
	BrokerDuplicate Kind = "broker-duplicate"
	ExpiryLost      Kind = "expiry-lost"
	LeaseEarly      Kind = "lease-early"
	TwoOwners       Kind = "two-owners"
)

const (
	broker = "broker"
	leases = "leases"
)

var serviceKinds = []spec{
	{
		name: BrokerLoss, sentence: "the broker loses a message that it has taken",
		actor: broker, verb: "loses", anchor: atMessage,
		pass:        func(passage *sim.Passage, _ Perturbation) { passage.Drop = true },
		fitsMessage: isPublished,
	},
	{
		name: BrokerDuplicate, sentence: "the broker hands a message out once more",
		actor: broker, verb: "repeats-message", anchor: atMessage, params: []param{after},
		pass:        func(passage *sim.Passage, p Perturbation) { passage.Copies = append(passage.Copies, p.For) },
		fitsMessage: isPublished,
	},
	{
		name: ExpiryLost, sentence: "the end of a key is not notified",
		actor: leases, verb: "forgets", anchor: atMessage,
		pass:        func(passage *sim.Passage, _ Perturbation) { passage.Drop = true },
		fitsMessage: isExpiry,
	},
	{
		name: LeaseEarly, sentence: "a lease ends before its time",
		verb: "loses-lease", anchor: atStep, params: []param{after},
		strike: func(s *sim.Strike, p Perturbation) { s.Ends = max(p.For, time.Microsecond) },
		fits:   func(s *sim.Step) bool { return isAcquisition(s) && !s.Taken },
		rare:   true,
	},
	{
		name: TwoOwners, sentence: "a lease that another has is granted too",
		verb: "shares-lease", anchor: atStep,
		strike: func(s *sim.Strike, _ Perturbation) { s.Grant = true },
		fits:   func(s *sim.Step) bool { return isAcquisition(s) && s.Taken },
		rare:   true,
	},
}

func isAcquisition(s *sim.Step) bool {
	return s.Phase == sim.Before && strings.HasPrefix(s.Op, sim.OpAcquire)
}
