// Package faults decides what goes wrong in a run.
//
// What goes wrong is a [Plan]: a sparse list of perturbations on top of a world in
// which nothing does. Each is anchored to the stable name of a step or a message,
// so a plan can be printed, read back, replayed without the seed that drew it, and
// made smaller: taking one perturbation away leaves the others where they strike.
//
// A [Profile] says how often and how hard. A [Storm] draws a plan from a seed
// while the run goes: whether something happens at a step depends on the seed and
// the step's name alone. What it did is a plan again.
package faults
