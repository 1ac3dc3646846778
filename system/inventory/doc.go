// Package inventory is the stock service: how much of each SKU can still be sold, is promised to an order, or is sold.
//
// What it promises: no unit is promised twice, none gets lost, whatever is repeated, late or out of order. Every movement
// is one row of the journal, unique per (order, movement), committed together with the stock it moves; a repeat finds its
// row and moves nothing. Stock changes by conditional updates alone, and a CHECK keeps every count from going negative.
//
// A release always leaves its row, even if nothing was frozen: a freeze that comes after it, late from the network, is
// refused, and can't keep stock for an order that is dead.
package inventory
