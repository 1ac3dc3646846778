package faults

import "github.com/tillstorm/tillstorm/sim"

// What happens to databases.
const (
	Busy       Kind = "busy"
	SQLError   Kind = "sql-error"
	LostCommit Kind = "lost-commit"
	Slow       Kind = "slow"
	Full       Kind = "full"
)

var databaseKinds = []spec{
	{
		name: Busy, sentence: "another program has the database's lock for as long as a statement waits for it",
		verb: "finds-locked", anchor: atStep,
		strike: func(s *sim.Strike, _ Perturbation) { s.SQL = sim.SQLBusy },
		fits:   func(s *sim.Step) bool { return s.SQL != "" && s.Waits && s.Phase == sim.Before },
	},
	{
		name: SQLError, sentence: "a statement fails with an I/O error, and nothing of it is done",
		verb: "fails", anchor: atStep,
		strike: func(s *sim.Strike, _ Perturbation) { s.SQL = sim.SQLError },
		fits:   func(s *sim.Step) bool { return s.SQL != "" && s.SQL != sim.SQLRollback && s.Phase == sim.Before },
	},
	{
		name: LostCommit, sentence: "the connection is lost at a commit: before it, nothing was committed; after it, all was",
		verb: "loses-connection", anchor: atStep,
		strike: func(s *sim.Strike, _ Perturbation) { s.SQL = sim.SQLLost },
		fits:   func(s *sim.Step) bool { return s.SQL == sim.SQLCommit || s.SQL == sim.SQLWrite && s.Waits },
	},
	{
		name: Slow, sentence: "every statement of a database takes longer",
		actor: "database", verb: "slows", anchor: atDatabase, params: []param{by, from, forLong},
		strike: func(s *sim.Strike, p Perturbation) { s.Stall += p.By },
		fits:   func(s *sim.Step) bool { return s.SQL != "" && s.Phase == sim.Before },
	},
	{
		name: Full, sentence: "a database's disk is full: nothing more is written",
		actor: "database", verb: "fills", anchor: atDatabase, params: []param{from, forLong},
		strike: func(s *sim.Strike, _ Perturbation) { s.SQL = sim.SQLFull },
		fits:   func(s *sim.Step) bool { return s.SQL == sim.SQLWrite && s.Phase == sim.Before },
	},
}
