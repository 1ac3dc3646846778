package sim

import (
	"runtime/debug"
	"strings"
)

// panicStack returns, for a recovered panic, the names of the functions that were
// running outside the kernel. Files, addresses and arguments are left out, so that
// the text is the same in every run.
func panicStack() string {
	var kept []string
	for line := range strings.Lines(string(debug.Stack())) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "\t"), strings.HasPrefix(line, "goroutine "), strings.HasPrefix(line, "panic("), strings.HasPrefix(line, "runtime/debug."):
			continue
		case strings.Contains(line, "tillstorm/sim."):
			if len(kept) > 0 {
				return strings.Join(kept, "\n")
			}
			continue
		}
		if i := strings.LastIndexByte(line, '('); i > 0 {
			line = line[:i]
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}
