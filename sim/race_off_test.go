//go:build !race

package sim_test

const roomForRace = 0
