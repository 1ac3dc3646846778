package scenarios

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Proof runs incidents against the defects under which they must fail: one that passes
// under its defect guards against nothing.
type Proof struct {
	Incidents []*Incident
	Workers   int // defects at once; by default one for each processor
	// Progress, if set, is told of each file, from one goroutine at a time.
	Progress func(ProvenFile)
}

// ProofReport is what became of a proof. Its JSON is the contract with CI.
type ProofReport struct {
	Files  []ProvenFile `json:"files"`
	Proven int          `json:"proven"`
	Total  int          `json:"total"`
	// Unnamed are the files that name no defect.
	Unnamed []string `json:"unnamed"`
	WallNs  int64    `json:"wall_ns"`
}

// ProvenFile is one file under one defect.
type ProvenFile struct {
	File     string   `json:"file"`
	Defect   string   `json:"defect"`
	Property string   `json:"property"` // that must break
	Broken   bool     `json:"broken"`   // it did
	Also     []string `json:"also"`     // the others that broke, or in its place the verdict
	Message  string   `json:"message"`  // how it broke
	Error    string   `json:"error,omitempty"`
}

// String tells it in one line.
func (f ProvenFile) String() string {
	text := fmt.Sprintf("%s: with %s", f.File, f.Defect)
	switch {
	case f.Error != "":
		return text + ": " + f.Error
	case f.Broken:
		return text + " breaks " + f.Property
	case len(f.Also) > 0:
		return text + " does not break " + f.Property + ", but " + strings.Join(f.Also, ", ")
	}
	return text + " passes, and should break " + f.Property
}

// Verdict is broken if a file did not break as it must.
func (r *ProofReport) Verdict() Verdict {
	if r.Proven < r.Total {
		return Broken
	}
	return Pass
}

// Run plants each defect once and runs the files that name it. An error is about the
// harness; one of a defect's own is told with its files.
func (p Proof) Run(ctx context.Context) (*ProofReport, error) {
	began := time.Now()
	r := &ProofReport{Files: []ProvenFile{}, Unnamed: []string{}}
	err := withPlanter(ctx, func(plant *planter) error {
		p.proveAll(ctx, plant, r)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.Files, func(a, b ProvenFile) int {
		return cmp.Or(strings.Compare(a.File, b.File), strings.Compare(a.Defect, b.Defect))
	})
	r.WallNs = time.Since(began).Nanoseconds()
	return r, nil
}

func (p Proof) proveAll(ctx context.Context, plant *planter, r *ProofReport) {
	defects := p.defects(r)
	var mu sync.Mutex
	inParallel(p.Workers, len(defects), func(i int) {
		proven := p.prove(ctx, plant, defects[i])
		mu.Lock()
		defer mu.Unlock()
		for _, f := range proven {
			r.add(f)
			if p.Progress != nil {
				p.Progress(f)
			}
		}
	})
}

func (r *ProofReport) add(f ProvenFile) {
	r.Files = append(r.Files, f)
	r.Total++
	if f.Broken {
		r.Proven++
	}
}

// defects returns the defects that the files name.
func (p Proof) defects(r *ProofReport) (names []string) {
	for _, x := range p.Incidents {
		if len(x.MustFail) == 0 {
			r.Unnamed = append(r.Unnamed, x.Name)
		}
		for _, m := range x.MustFail {
			names = append(names, m.Defect)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// prove runs the files that name a defect in a build that has it.
func (p Proof) prove(ctx context.Context, plant *planter, defect string) (proven []ProvenFile) {
	for _, x := range p.Incidents {
		for _, m := range x.MustFail {
			if m.Defect == defect {
				proven = append(proven, ProvenFile{File: x.Name, Defect: defect, Property: m.Property, Also: []string{}})
			}
		}
	}
	report, err := p.runPlanted(ctx, plant, defect, proven)
	for i := range proven {
		if err != nil {
			proven[i].Error = err.Error()
			continue
		}
		proven[i].judge(report)
	}
	return proven
}

func (p Proof) runPlanted(ctx context.Context, plant *planter, defect string, files []ProvenFile) (*Report, error) {
	d, err := readDefect(plant.root, defect)
	if err != nil {
		return nil, err
	}
	program, err := plant.build(ctx, d)
	if err != nil {
		return nil, err
	}
	defer os.Remove(program)
	args := []string{"run"}
	for _, f := range files {
		args = append(args, f.File)
	}
	return reportOf(ctx, program, args...)
}

// judge looks for the named property among what broke in the file.
func (f *ProvenFile) judge(r *Report) {
	for _, failure := range r.Failures {
		switch {
		case failure.File != f.File:
		case failure.Property == f.Property:
			if !f.Broken {
				f.Broken, f.Message = true, failure.Message
			}
		case !slices.Contains(f.Also, failure.Property):
			f.Also = append(f.Also, failure.Property)
		}
	}
}

// CheckDefects refuses an incident that must fail under a defect which is not there. It
// looks in scenarios/defects of the clone that the working folder is in; where there is
// none, nothing is said.
func (x *Incident) CheckDefects() error {
	known := defectNames()
	for _, m := range x.MustFail {
		if len(known) > 0 && !slices.Contains(known, m.Defect) {
			return fmt.Errorf("%s:%w", x.Name, m.place.errorf("%s", unknownDefect(m.Defect, defectsFolder, known)))
		}
	}
	return nil
}

// defectNames returns the defects that there are.
func defectNames() (names []string) {
	folder, err := os.Getwd()
	if err != nil {
		return nil
	}
	for ; ; folder = filepath.Dir(folder) {
		files, err := fs.Glob(os.DirFS(folder), defectsFolder+"/*"+patchSuffix)
		if err == nil && len(files) > 0 {
			for _, file := range files {
				names = append(names, strings.TrimSuffix(filepath.Base(file), patchSuffix))
			}
			return names
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}
