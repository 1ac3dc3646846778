package scenarios

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
}

const (
	patchSuffix = ".patch"
	caughtBy    = "Caught by:"
)

// ReadDefects reads the patches of a folder, in the order of their names.
func ReadDefects(folder string) ([]*Defect, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+patchSuffix))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no defects: they are files NAME%s", folder, patchSuffix)
	}
	var all []*Defect
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d, err := ParseDefect(file, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// ParseDefect reads a patch file: a title, an empty line, "Caught by: PROPERTY or
// PROPERTY", and a unified diff of files in system/. Errors begin with file:line.
func ParseDefect(file, text string) (*Defect, error) {
	d := &Defect{Name: strings.TrimSuffix(filepath.Base(file), patchSuffix), file: file}
	lines := strings.Split(text, "\n")
	if d.Title = strings.TrimSpace(lines[0]); d.Title == "" {
		return nil, fmt.Errorf("%s:1: the first line must say what is wrong with the system", file)
	}
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, caughtBy) })
	if at < 0 {
		return nil, fmt.Errorf("%s:2: no line says which property must catch it, as in %q", file, caughtBy+" charge-once")
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(lines[at], caughtBy), " or ") {
		name = strings.TrimSpace(name)
		if !slices.Contains(propertyNames(), name) {
			return nil, fmt.Errorf("%s:%d: unknown property %q; there are %s", file, at+1, name, strings.Join(propertyNames(), ", "))
		}
		d.Properties = append(d.Properties, name)
	}
	var err error
	if d.files, _, err = gitdiff.Parse(strings.NewReader(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(d.files) == 0 {
		return nil, fmt.Errorf("%s:%d: there is no diff", file, len(lines))
	}
	for _, f := range d.files {
		f.NewName = strings.TrimPrefix(f.NewName, "b/") // plain diffs keep it
		if f.IsRename || f.IsBinary || f.IsDelete || !strings.HasPrefix(f.NewName, "system/") {
			return nil, fmt.Errorf("%s: a defect changes or adds text files of system/, not %s", file, cmp.Or(f.NewName, f.OldName))
		}
	}
	return d, nil
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
		name := filepath.Join(root, filepath.FromSlash(f.NewName))
		planted, err := patched(name, f)
		if err != nil {
			return "", fmt.Errorf("%s does not apply to %s: %w", d.file, f.NewName, err)
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

// patched returns a source file as it is after the patch.
func patched(name string, f *gitdiff.File) ([]byte, error) {
	source, err := os.ReadFile(name)
	if err != nil && !(f.IsNew && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	if f.IsNew && err == nil {
		return nil, fs.ErrExist
	}
	if err := locate(strings.SplitAfter(string(source), "\n"), f.TextFragments); err != nil {
		return nil, err
	}
	var planted bytes.Buffer
	err = gitdiff.Apply(&planted, bytes.NewReader(source), f)
	return planted.Bytes(), err
}

// locate corrects where the fragments of a patch are to go, since lines above them may
// have come or gone: each fits at one place, or the nearest of several.
func locate(source []string, fragments []*gitdiff.TextFragment) error {
	for _, f := range fragments {
		if f.OldLines == 0 {
			continue // a new file
		}
		var old []string
		for _, line := range f.Lines {
			if line.Old() {
				old = append(old, line.Line)
			}
		}
		wanted, best := int(f.OldPosition)-1, -1
		for at := 0; at+len(old) <= len(source); at++ {
			if slices.Equal(source[at:at+len(old)], old) && (best < 0 || distance(at, wanted) < distance(best, wanted)) {
				best = at
			}
		}
		if best < 0 {
			return fmt.Errorf("the lines from %d on, beginning with %q, are not there any more", f.OldPosition, strings.TrimSpace(old[0]))
		}
		f.OldPosition = int64(best) + 1
	}
	return nil
}

func distance(a, b int) int { return max(a-b, b-a) }
