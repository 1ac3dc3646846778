package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tillstorm/tillstorm/checker"
)

// Defect is a realistic small bug of the system, as a patch to its sources. A search
// that does not find it is no good.
type Defect struct {
	Name  string // of its file, without .patch
	Title string // what is wrong, in one sentence
	// Properties are those that may catch it; one must.
	Properties []string

	file  string
	files []*gitdiff.File
	hunks map[*gitdiff.TextFragment]int // their lines in the file
}

const (
	// defectsFolder has the defects that come with the sources.
	defectsFolder = "scenarios/defects"

	patchSuffix = ".patch"
	caughtBy    = "Caught by:"
)

// ReadDefects reads the patches of a folder, in the order of their names: all, or only
// those of some names. The error tells all that are broken; the others are returned.
func ReadDefects(folder string, only ...string) (all []*Defect, err error) {
	names, err := defectsIn(folder)
	if err != nil {
		return nil, err
	}
	var broken []error
	for _, name := range only {
		if mistake := unknownDefect(name, folder, names); mistake != "" {
			broken = append(broken, errors.New(mistake))
		}
	}
	for _, name := range names {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		d, err := readDefectFile(filepath.Join(folder, name+patchSuffix))
		if err != nil {
			broken = append(broken, err)
			continue
		}
		all = append(all, d)
	}
	return all, errors.Join(broken...)
}

// defectsIn returns the names of the defects in a folder.
func defectsIn(folder string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+patchSuffix))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no defects: they are files NAME%s", folder, patchSuffix)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), patchSuffix))
	}
	return names, nil
}

func readDefectFile(file string) (*Defect, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return ParseDefect(file, string(text))
}

// notTitle is how a patch goes on below its title.
var notTitle = regexp.MustCompile(`^(Caught by:|diff |--- )`)

// ParseDefect reads a patch file: a title, an empty line, "Caught by: PROPERTY or
// PROPERTY", and a unified diff of files in system/. Errors begin with file:line.
func ParseDefect(file, text string) (*Defect, error) {
	d := &Defect{Name: strings.TrimSuffix(filepath.Base(file), patchSuffix), file: file, hunks: map[*gitdiff.TextFragment]int{}}
	lines := strings.Split(text, "\n")
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "\r") }); at >= 0 {
		return nil, fmt.Errorf(`%s:%d: here is a carriage return: lines end in a line feed alone; sed -i 's/\r$//' %s makes them`, file, at+1, quoteForShell(file))
	}
	if d.Title = strings.TrimSpace(lines[0]); d.Title == "" || notTitle.MatchString(d.Title) {
		return nil, fmt.Errorf("%s:1: the first line must say what is wrong with the system", file)
	}
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, caughtBy) })
	if at < 0 {
		return nil, fmt.Errorf("%s:2: no line says which property must catch it, as in %q", file, caughtBy+" charge-once")
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(lines[at], caughtBy), " or ") {
		name = strings.TrimSpace(name)
		if mistake := unknownName("property", name, propertyNames()); mistake != "" {
			return nil, fmt.Errorf("%s:%d: %s", file, at+1, mistake)
		}
		d.Properties = append(d.Properties, name)
	}
	if err := d.parseDiff(text); err != nil {
		return nil, err
	}
	return d, nil
}

// diffMistake is how gitdiff tells where it understands nothing.
var diffMistake = regexp.MustCompile(`^gitdiff: line (\d+): `)

func (d *Defect) parseDiff(text string) (err error) {
	if d.files, _, err = gitdiff.Parse(strings.NewReader(text)); err != nil {
		return fmt.Errorf("%s:%s", d.file, diffMistake.ReplaceAllString(err.Error(), "$1: "))
	}
	lines := strings.Split(text, "\n")
	if len(d.files) == 0 {
		return fmt.Errorf("%s:%d: there is no diff", d.file, len(lines))
	}
	var hunks []int
	for i, line := range lines {
		if strings.HasPrefix(line, "@@ -") {
			hunks = append(hunks, i+1)
		}
	}
	for _, f := range d.files {
		f.NewName = strings.TrimPrefix(f.NewName, "b/") // plain diffs keep it
		if f.IsRename || f.IsBinary || f.IsDelete || len(f.TextFragments) == 0 || path.Clean(f.NewName) != f.NewName || !strings.HasPrefix(f.NewName, "system/") {
			name := cmp.Or(f.NewName, f.OldName)
			at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, name) })
			return fmt.Errorf("%s:%d: a defect changes or adds text files of system/, not %s", d.file, at+1, name)
		}
		for i, hunk := range f.TextFragments {
			d.hunks[hunk] = hunks[i]
		}
		hunks = hunks[len(f.TextFragments):]
	}
	return nil
}

func propertyNames() []string {
	var names []string
	for _, p := range checker.Properties() {
		names = append(names, p.Name)
	}
	return names
}

// Property returns the names of the properties that may catch the defect, as in its
// file.
func (d *Defect) Property() string { return strings.Join(d.Properties, " or ") }

// Plant writes the files of the defect, as they are with it, into a folder, beside what
// "go build -overlay" takes, whose name it returns. The sources under root are not
// touched.
func (d *Defect) Plant(root, folder string) (overlay string, err error) {
	replace := map[string]string{}
	for i, f := range d.files {
		name, planted, err := d.patched(root, f)
		if err != nil {
			return "", err
		}
		replace[name] = filepath.Join(folder, fmt.Sprintf("%d-%s", i, filepath.Base(name)))
		if err := os.WriteFile(replace[name], planted, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// CheckDefects tells all of some defects that do not apply to the sources: those of the
// clone that the working folder is in.
func CheckDefects(ctx context.Context, defects []*Defect) error {
	p, err := newPlanter(ctx, "")
	if err != nil {
		return err
	}
	var broken []error
	for _, d := range defects {
		broken = append(broken, d.applies(p.root))
	}
	return errors.Join(broken...)
}

func (d *Defect) applies(root string) error {
	for _, f := range d.files {
		if _, _, err := d.patched(root, f); err != nil {
			return err
		}
	}
	return nil
}

// patched returns a source file as it is after the patch, and its name.
func (d *Defect) patched(root string, f *gitdiff.File) (name string, planted []byte, err error) {
	name = filepath.Join(root, filepath.FromSlash(f.NewName))
	source, err := os.ReadFile(name)
	switch {
	case f.IsNew && err == nil:
		return "", nil, d.misfit(f, f.TextFragments[0], fs.ErrExist)
	case err != nil && !(f.IsNew && errors.Is(err, fs.ErrNotExist)):
		return "", nil, d.misfit(f, f.TextFragments[0], err)
	}
	lines := strings.SplitAfter(string(source), "\n")
	for _, hunk := range f.TextFragments {
		if err := locate(lines, hunk); err != nil {
			return "", nil, d.misfit(f, hunk, err)
		}
	}
	var out bytes.Buffer
	if err := gitdiff.Apply(&out, bytes.NewReader(source), f); err != nil {
		return "", nil, d.misfit(f, f.TextFragments[0], err)
	}
	return name, out.Bytes(), nil
}

func (d *Defect) misfit(f *gitdiff.File, hunk *gitdiff.TextFragment, why error) error {
	return fmt.Errorf("%s:%d: it does not apply to %s: %w", d.file, d.hunks[hunk], f.NewName, why)
}

// locate corrects where a fragment of a patch is to go, since lines above it may have come
// or gone: it fits at one place, or the nearest of several.
func locate(source []string, hunk *gitdiff.TextFragment) error {
	if hunk.OldLines == 0 {
		return nil // a new file
	}
	var old []string
	for _, line := range hunk.Lines {
		if line.Old() {
			old = append(old, line.Line)
		}
	}
	wanted, best := int(hunk.OldPosition)-1, -1
	for at := 0; at+len(old) <= len(source); at++ {
		if slices.Equal(source[at:at+len(old)], old) && (best < 0 || distance(at, wanted) < distance(best, wanted)) {
			best = at
		}
	}
	if best < 0 {
		return fmt.Errorf("the lines from %d on, beginning with %q, are not there any more", hunk.OldPosition, strings.TrimSpace(old[0]))
	}
	hunk.OldPosition = int64(best) + 1
	return nil
}

func distance(a, b int) int { return max(a-b, b-a) }
