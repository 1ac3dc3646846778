package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/checker"
	"github.com/tillstorm/tillstorm/sim"
)

// explainAll tells why a run did not pass.
func explainAll(r *Result) []SeedFailure {
	var told []SeedFailure
	for _, f := range r.Failures {
		told = append(told, r.Case.failure(Broken, f.Property, f.Fingerprint(), f.Error(), Explain(r, f)))
	}
	switch r.Verdict {
	case Unknown:
		for _, property := range slices.Compact(r.Undecided) {
			told = append(told, r.Case.fails(Unknown, property, "the linearizability check ran out of its budget"))
		}
	case Stale:
		told = append(told, r.Case.fails(Stale, string(Stale), strings.Join(r.Staleness(), "; ")))
	}
	return told
}

// Staleness tells what never came to pass, or came too late, one thing for each line of
// the file.
func (r *Result) Staleness() (told []string) {
	for _, m := range r.Missed {
		told = append(told, m.tell(r.Case.File, r.Trace))
	}
	for _, p := range r.Unreached {
		told = append(told, "it never came to "+p.String())
	}
	return told
}

// fails tells of a run without a broken property that did not pass either.
func (c *Case) fails(v Verdict, property, message string) SeedFailure {
	return c.failure(v, property, string(v), message, fmt.Sprintf("%s is %s: %s\n\n%s", c.Title(), v, message, c.reproduceText()))
}

func (c *Case) failure(v Verdict, property, fingerprint, message, text string) SeedFailure {
	return SeedFailure{
		Seed: c.Seed, File: c.File, Verdict: v, Property: property, Message: message, Fingerprint: fingerprint,
		Repro: c.commands()[0], Text: text,
	}
}

// Explain tells a failure to somebody who has ten minutes: what broke, what it
// costs, what happened just before, what had gone wrong by then, and how to see it
// again.
func Explain(r *Result, f checker.Failure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n  %s\n  at stake: %s\n", r.Case.Title(), headline(f), f.Message, f.Stake)
	if first, ok := firstOf(r, f); ok {
		fmt.Fprintf(&b, "  first: %s, at %s: %s\n", first.Property, r.Trace.Clock(r.Trace.Records[first.Seq-1].At), first.Message)
	}
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n  %s:\n    %s\n", title, strings.Join(lines, "\n    "))
		}
	}
	shown := recordsThatMatter(r, f, 6)
	section("what happened ("+placeOf(r.Trace, f)+")", tellAll(r.Trace, shown))
	section("what the service said of it", logsThatMatter(r, f))
	section("what had gone wrong by then", faultsThatMatter(r, f, shown, 6))
	fmt.Fprintf(&b, "\n%s", r.Case.reproduceText())
	return b.String()
}

// headline tells what is broken: a property, or what a file expects.
func headline(f checker.Failure) string {
	if f.Property == checker.Expected {
		return "it comes to something else than the file expects"
	}
	return f.Property + " is broken: " + f.Sentence
}

// placeOf names the record at which the property broke, or where what showed at the end
// last changed.
func placeOf(trace *sim.Trace, f checker.Failure) string {
	r, end := &trace.Records[f.Seq-1], len(trace.Records)
	place := fmt.Sprintf("record %d, %s/%s, %s", r.Seq, r.Node, r.Task, trace.Clock(r.At))
	switch {
	case !f.AtEnd:
		return "broken at " + place
	case f.Seq == end:
		return "found at the end of the run, " + trace.Clock(r.At)
	}
	return "found at the end of the run, as it is since " + place
}

// Title tells which run it is.
func (c *Case) Title() string {
	switch {
	case c.File == "":
		return fmt.Sprintf("seed %d", c.Seed)
	case c.Vary:
		return fmt.Sprintf("%s, seed %d", c.File, c.Seed)
	}
	return c.File
}

// commands are the lines to paste that show the run again.
func (c *Case) commands() []string {
	const replay = "go run ./cmd/tillstorm replay "
	if c.File == "" {
		line := fmt.Sprintf(replay+"--seed %d --profile %s", c.Seed, c.Profile.Name) + c.flags("--")
		if c.Defect != "" {
			return []string{line + " --defect " + quoteForShell(c.Defect)}
		}
		return []string{line, fmt.Sprintf("go test ./scenarios -run '^TestSweep$' -seed %d -profile %s", c.Seed, c.Profile.Name) + c.flags("-")}
	}
	line := replay + quoteForShell(c.File)
	if c.Defect != "" {
		line += " --defect " + quoteForShell(c.Defect)
	}
	if c.Vary {
		line += fmt.Sprintf(" --seed %d", c.Seed)
	}
	for _, p := range c.Added {
		line += " --fault " + quoteForShell(p.String())
	}
	return []string{line}
}

// flags are what a command needs besides to run a drawn case as it was.
func (c *Case) flags(dash string) (text string) {
	if s := c.Profile.Strategy.Name; s != "" {
		text += " " + dash + "strategy " + s
	}
	if c.Journal != sim.MemDB {
		text += " " + dash + "journal " + c.Journal.String()
	}
	return text
}

// quoteForShell makes one word of a text, for a POSIX shell.
func quoteForShell(text string) string {
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !isPlain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// isPlain says whether a shell takes a character for itself.
func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,:@%+", r)
}

// reproduceText ends every failure: the lines to paste.
func (c *Case) reproduceText() string {
	lines := c.commands()
	text := "  reproduce with"
	if len(lines) > 1 {
		text += " either of"
	}
	return text + ":\n    " + strings.Join(lines, "\n    ") + "\n"
}
