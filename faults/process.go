package faults

import "github.com/tillstorm/tillstorm/sim"

// What happens to processes and their tasks.
const (
	Crash       Kind = "crash"
	CrashLoop   Kind = "crash-loop"
	SlowRestart Kind = "slow-restart"
	Pause       Kind = "pause"
	Stall       Kind = "stall"
)

var restarts = duration("restarts", fieldFor, 0, day)

var processKinds = []spec{
	{
		name: Crash, sentence: "the process dies at a step and boots again later",
		verb: "crashes", anchor: atStep, params: []param{restarts},
		strike: crash,
	},
	{
		name: CrashLoop, sentence: "the process dies at a step, and again while it recovers, so many times more",
		verb: "crash-loops", anchor: atStep, params: []param{restarts, times},
		strike: crash,
	},
	{
		name: SlowRestart, sentence: "the process dies at a step and stays away for minutes",
		verb: "stays-down", anchor: atStep, params: []param{forLong},
		strike: crash,
	},
	{
		name: Pause, sentence: "the whole process stands still at a step, as in a stop of the world, and then goes on",
		verb: "pauses", anchor: atStep, params: []param{forLong},
		strike: func(s *sim.Strike, p Perturbation) { s.Pause += p.For },
	},
	{
		name: Stall, sentence: "one task is held up at a step",
		verb: "stalls", anchor: atStep, params: []param{forLong},
		strike: func(s *sim.Strike, p Perturbation) { s.Stall += p.For },
	},
}

func crash(s *sim.Strike, p Perturbation) { s.Crash, s.Restart = true, p.For }

// loop is a crash loop under way on a node.
type loop struct {
	p         Perturbation
	left      int64 // deaths still to come
	countdown uint64
}

// recoverySteps is how far a process in a crash loop gets before it dies again.
const recoverySteps = 40

func newLoop(p Perturbation) *loop {
	l := &loop{p: p, left: p.N}
	l.wind()
	return l
}

// wind draws how many steps the next life has.
func (l *loop) wind() {
	l.countdown = 1 + sim.Draw(uint64(l.left), "crash loop", sim.HashName(l.p.At))%recoverySteps
}

// dies says whether the process dies again at this step, its next.
func (l *loop) dies() bool {
	if l.left == 0 {
		return false
	}
	if l.countdown--; l.countdown > 0 {
		return false
	}
	l.left--
	l.wind()
	return true
}
