// Package scenarios puts the whole order and payment system into a world, storms
// it, and judges what became of the money.
//
// [Run] is the procedure: set-up, storm, heal, settle, check. A [Case] is what a
// run is made of; a seed draws one. [Sweep] runs many seeds side by side.
package scenarios
