package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tillstorm/tillstorm/faults"
)

// Hunt plants each of some defects and sweeps until it is caught: so the search shows
// what it finds. Each sweep is a process of its own, which was built with the defect.
type Hunt struct {
	Defects []*Defect
	Seeds   Seeds // they are split into HuntRanges ranges
	Profile faults.Profile
	Workers int // processes at once; by default one for each processor
	// Progress, if set, is told what was found, from one goroutine at a time.
	Progress func(HuntedDefect)
}

// HuntRanges is how many disjoint ranges of seeds look for each defect: one could have
// luck.
const HuntRanges = 5

// blatant is a defect that the search must catch within blatantSeeds: if it doesn't, the
// search is broken, and what it does not catch means nothing.
const (
	blatant      = "ack-before-commit"
	blatantSeeds = 5
)

// HuntReport is what became of a hunt. Its JSON is the contract with CI.
type HuntReport struct {
	Defects []HuntedDefect `json:"defects"`
	Caught  int            `json:"caught"`
	Total   int            `json:"total"`
	Seeds   string         `json:"seeds"`
	Profile string         `json:"profile"`
	// Control is the sweep of the unchanged system over the seeds that caught something.
	Control HuntControl `json:"control"`
	WallNs  int64       `json:"wall_ns"`
}

// HuntedDefect is what became of one defect.
type HuntedDefect struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Property string `json:"property"` // that must catch it
	Caught   bool   `json:"caught"`
	CaughtBy string `json:"caught_by"` // "" if nothing has
	// SeedsToCatch is the median over the ranges. Where one did not catch it, all its
	// seeds count.
	SeedsToCatch int `json:"seeds_to_catch"`
	// Ranges is the number of seeds that each range took; 0 where it did not catch it.
	Ranges []int `json:"ranges"`
	// Seed is the first seed of the first range that caught it.
	Seed uint64 `json:"seed,omitempty"`
	// Strategies are those of the seeds that caught it, each once, in the order of the ranges.
	Strategies []string `json:"strategies"`
	// Error says why the defect could not be hunted: its patch does not apply, or does not
	// build, or a sweep did not end as sweeps do.
	Error string `json:"error,omitempty"`
	// Strays are the properties other than the named that it broke where no named one was.
	Strays []string `json:"strays"`
}

// String tells it in one line.
func (d HuntedDefect) String() string { return strings.Join(d.Row(), "  ") }

// Row tells it as the cells of a table: name, what caught it, seeds to catch, those of
// each range, strategies.
func (d HuntedDefect) Row() []string {
	switch {
	case d.Error != "":
		return []string{d.Name, "ERROR", d.Error}
	case !d.Caught && len(d.Strays) > 0:
		return []string{d.Name, "NOT CAUGHT", "by " + d.Property + ", only by " + strings.Join(d.Strays, ", ")}
	case !d.Caught:
		return []string{d.Name, "NOT CAUGHT"}
	}
	var each []string
	for _, n := range d.Ranges {
		each = append(each, cmp.Or(strings.TrimPrefix(strconv.Itoa(n), "0"), "-"))
	}
	return []string{d.Name, d.CaughtBy, strconv.Itoa(d.SeedsToCatch), strings.Join(each, " "), strings.Join(d.Strategies, " ")}
}

// HuntControl is what became of the unchanged system.
type HuntControl struct {
	Seeds  int  `json:"seeds"`
	Passed bool `json:"passed"`
	// Blatant is the number of seeds that the blatant defect took; 0 if it was not caught.
	Blatant int `json:"blatant"`
}

// Verdict is broken if a defect got away or the control failed.
func (r *HuntReport) Verdict() Verdict {
	if r.Caught < r.Total || r.IsVoid() {
		return Broken
	}
	return Pass
}

// IsVoid says that the control failed, so that the report means nothing.
func (r *HuntReport) IsVoid() bool { return !r.Control.Passed || r.Control.Blatant == 0 }

// Run hunts the defects. An error is about the harness; one of a defect's own is told
// with it.
func (h Hunt) Run(ctx context.Context) (*HuntReport, error) {
	began := time.Now()
	r := &HuntReport{Total: len(h.Defects), Seeds: h.Seeds.String(), Profile: h.Profile.Name, Defects: make([]HuntedDefect, len(h.Defects))}
	if err := withPlanter(ctx, func(p *planter) error { return h.run(ctx, p, r) }); err != nil {
		return nil, err
	}
	r.WallNs = time.Since(began).Nanoseconds()
	return r, nil
}

func (h Hunt) run(ctx context.Context, p *planter, r *HuntReport) (err error) {
	if r.Control.Blatant, err = h.huntBlatant(ctx, p); err != nil {
		return err
	}
	var mu sync.Mutex
	inParallel(h.Workers, len(h.Defects), func(i int) {
		r.Defects[i] = h.hunt(ctx, p, h.Defects[i])
		mu.Lock()
		defer mu.Unlock()
		if h.Progress != nil && ctx.Err() == nil {
			h.Progress(r.Defects[i])
		}
	})
	for _, d := range r.Defects {
		if d.Caught {
			r.Caught++
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return h.control(ctx, p, r)
}

// ranges are the disjoint parts of the seeds.
func (h Hunt) ranges() []Seeds {
	size := uint64(max(1, h.Seeds.Count()/HuntRanges))
	var parts []Seeds
	for first := h.Seeds.First; first+size-1 <= h.Seeds.Last && len(parts) < HuntRanges; first += size {
		parts = append(parts, Seeds{first, first + size - 1})
	}
	return parts
}

// hunt sweeps with one defect, range by range.
func (h Hunt) hunt(ctx context.Context, p *planter, d *Defect) HuntedDefect {
	found := HuntedDefect{Name: d.Name, Title: d.Title, Property: d.Property(), Strays: []string{}, Ranges: []int{}, Strategies: []string{}}
	program, err := p.build(ctx, d)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	defer os.Remove(program)
	var took []int
	for _, seeds := range h.ranges() {
		n, err := h.catch(ctx, program, d, seeds, &found)
		if err != nil {
			found.Error = err.Error()
			return found
		}
		found.Ranges = append(found.Ranges, n)
		if n == 0 {
			n = seeds.Count()
		}
		took = append(took, n)
	}
	slices.Sort(took)
	found.SeedsToCatch = took[len(took)/2]
	return found
}

// maxStrays is how many seeds of a range may break other properties than those named
// before the range is given up.
const maxStrays = 20

// catch sweeps the seeds until the defect is caught by a property that it names. It
// returns how many seeds that took, 0 if none did.
func (h Hunt) catch(ctx context.Context, program string, d *Defect, seeds Seeds, found *HuntedDefect) (int, error) {
	for rest, strays := seeds, 0; rest.First <= rest.Last && strays < maxStrays; strays++ {
		r, err := h.sweep(ctx, program, rest, "--max-failures", "1", "--workers", "1")
		if err != nil {
			return 0, err
		}
		if r.Broken == 0 {
			return 0, nil
		}
		for _, f := range r.Failures {
			if slices.Contains(d.Properties, f.Property) {
				if !found.Caught {
					found.Caught, found.CaughtBy, found.Seed = true, f.Property, f.Seed
				}
				if s := h.Profile.StrategyOf(f.Seed).Name; !slices.Contains(found.Strategies, s) {
					found.Strategies = append(found.Strategies, s)
				}
				return int(f.Seed-seeds.First) + 1, nil
			}
			if !slices.Contains(found.Strays, f.Property) {
				found.Strays = append(found.Strays, f.Property)
			}
		}
		rest.First = r.Failures[0].Seed + 1
	}
	return 0, nil
}

// sweep runs a program's sweep and returns its report.
func (h Hunt) sweep(ctx context.Context, program string, seeds Seeds, flags ...string) (*Report, error) {
	args := append([]string{"sweep", "--seeds", seeds.String(), "--profile", h.Profile.Name}, flags...)
	if h.Profile.Strategy.Name != "" {
		args = append(args, "--strategy", h.Profile.Strategy.Name)
	}
	return reportOf(ctx, program, args...)
}

// huntBlatant returns how many seeds the blatant defect takes, 0 if it gets away.
func (h Hunt) huntBlatant(ctx context.Context, p *planter) (int, error) {
	d, err := readDefect(p.root, blatant)
	if err != nil {
		return 0, fmt.Errorf("the control: %w", err)
	}
	h.Seeds.Last = min(h.Seeds.Last, h.Seeds.First+blatantSeeds-1)
	program, err := p.build(ctx, d)
	if err != nil {
		return 0, fmt.Errorf("the control: %w", err)
	}
	defer os.Remove(program)
	return h.catch(ctx, program, d, h.Seeds, &HuntedDefect{})
}

// control sweeps the unchanged system over the seeds that the defects took.
func (h Hunt) control(ctx context.Context, p *planter, r *HuntReport) error {
	program, err := p.build(ctx, nil)
	if err != nil {
		return fmt.Errorf("the control: %w", err)
	}
	r.Control.Passed = true
	for i, seeds := range h.ranges() {
		most := 0
		for _, d := range r.Defects {
			if len(d.Ranges) > i && d.Ranges[i] > 0 {
				most = max(most, d.Ranges[i])
			}
		}
		if most == 0 {
			continue
		}
		seeds.Last = seeds.First + uint64(most) - 1
		swept, err := h.sweep(ctx, program, seeds)
		if err != nil {
			return fmt.Errorf("the control: %w", err)
		}
		r.Control.Seeds += swept.Seeds
		r.Control.Passed = r.Control.Passed && swept.Passed == swept.Seeds
	}
	return nil
}
