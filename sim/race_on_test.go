//go:build race

package sim_test

// roomForRace is what the race detector itself keeps, in MiB.
const roomForRace = 64
