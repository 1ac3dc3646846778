package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

const modulePath = "github.com/tillstorm/tillstorm"

// planter builds tillstorm with defects in it, and runs what it has built.
type planter struct {
	root   string // of the sources
	folder string // for what is made
}

// withPlanter lends a planter with a folder of its own, which is gone afterwards.
func withPlanter(ctx context.Context, use func(*planter) error) error {
	folder, err := os.MkdirTemp("", "tillstorm-planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	p, err := newPlanter(ctx, folder)
	if err != nil {
		return err
	}
	return use(p)
}

// newPlanter finds the sources: those of the module that the working folder is in.
func newPlanter(ctx context.Context, folder string) (*planter, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return nil, fmt.Errorf("a defect is planted in the sources of the system, which must be there: run it in a clone of %s (%w)", modulePath, err)
	}
	return &planter{strings.TrimSpace(string(out)), folder}, nil
}

// build builds tillstorm with a defect, or unchanged if that is nil, and returns the
// program. Go's build cache keeps what the defect does not touch.
func (p *planter) build(ctx context.Context, d *Defect) (program string, err error) {
	name, args := "unchanged", []string{"build", "-ldflags=-w"} // nobody debugs it, and linking is half as long
	if d != nil {
		name = d.Name
		folder, err := os.MkdirTemp(p.folder, name+"-")
		if err != nil {
			return "", err
		}
		overlay, err := d.Plant(p.root, folder)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	program = filepath.Join(p.folder, "tillstorm-"+name)
	c := exec.CommandContext(ctx, "go", append(args, "-o", program, "./cmd/tillstorm")...)
	c.Dir = p.root
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the system does not build with %s: %w\n%s", name, err, out)
	}
	return program, nil
}

// reportOf runs a program that was built, a sweep or a run with --json, and returns its
// report.
func reportOf(ctx context.Context, program string, args ...string) (*Report, error) {
	c := exec.CommandContext(ctx, program, append(args, "--json")...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	r := &Report{}
	if json.Unmarshal(out, r) != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(args[:min(3, len(args))], " "), err, lastLine(stderr.String()))
	}
	return r, nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// inParallel calls f for the numbers below n, as many at once as there are workers (zero:
// one for each processor).
func inParallel(workers, n int, f func(i int)) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}

// BuildWith builds tillstorm with a defect, one of scenarios/defects or that of a patch
// file, into a folder, and returns the program.
func BuildWith(ctx context.Context, defect, folder string) (program string, err error) {
	p, err := newPlanter(ctx, folder)
	if err != nil {
		return "", err
	}
	d, err := readDefect(p.root, defect)
	if err != nil {
		return "", err
	}
	return p.build(ctx, d)
}

// readDefect reads one of the defects that come with the sources, or a patch file.
func readDefect(root, defect string) (*Defect, error) {
	if isFile(defect) {
		return readDefectFile(defect)
	}
	folder := filepath.Join(root, filepath.FromSlash(defectsFolder))
	names, err := defectsIn(folder)
	if err != nil {
		return nil, err
	}
	if mistake := unknownDefect(defect, defectsFolder, names); mistake != "" {
		return nil, errors.New(mistake)
	}
	return readDefectFile(filepath.Join(folder, defect+patchSuffix))
}

// isFile tells the file of a defect from the name of one.
func isFile(defect string) bool {
	return strings.HasSuffix(defect, patchSuffix) || strings.ContainsRune(defect, filepath.Separator)
}
