package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tillstorm/tillstorm/faults"
	"github.com/tillstorm/tillstorm/scenarios"
)

// printCoverage prints the grid, what is empty in it, and the estimate.
func printCoverage(w io.Writer, c *scenarios.Coverage) {
	fmt.Fprint(w, "\nfaults about an order, by the order's state (a dot: never):\n\n")
	empty, cells := printGrid(w, c)
	fmt.Fprintf(w, "\n%d of %d cells are empty.\n\nwhere no process has died, by the order's state:\n\n", empty, cells)
	for _, state := range scenarios.OrderStates {
		printUncrashed(w, state, c.Crashes[state])
	}
	fmt.Fprintf(w, "\n%d orders have %d shapes, %d of which only one order has: the next order is of a new shape with a\n"+
		"probability of %.1f%%, and the next seed has such an order with %.1f%%.\n",
		c.Orders, c.Shapes, c.Once, 100*c.NextOrder, 100*c.NextSeed)
}

func printGrid(w io.Writer, c *scenarios.Coverage) (empty, cells int) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\t%s\t\n", strings.Join(scenarios.OrderStates, "\t"))
	for _, kind := range faults.Kinds() {
		if _, armed := c.Grid[scenarios.OrderStates[0]][kind]; !armed {
			continue
		}
		fmt.Fprintf(table, "%s\t", kind)
		for _, state := range scenarios.OrderStates {
			cells++
			n := c.Grid[state][kind]
			if n == 0 {
				empty++
			}
			fmt.Fprintf(table, "%s\t", orDot(n))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
	return empty, cells
}

func orDot(n int) string {
	if n == 0 {
		return "."
	}
	return fmt.Sprint(n)
}

// printUncrashed tells the points of statements at which nothing died.
func printUncrashed(w io.Writer, state string, crashes map[string]int) {
	var never []string
	for _, at := range slices.Sorted(maps.Keys(crashes)) {
		if crashes[at] == 0 {
			never = append(never, at)
		}
	}
	fmt.Fprintf(w, "  %-9s  %d of %d: %s\n", state, len(never), len(crashes), strings.Join(never, ", "))
}
