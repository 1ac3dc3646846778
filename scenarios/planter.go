package scenarios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/tillstorm/tillstorm"

// planter builds tillstorm with defects in it.
type planter struct {
	root   string // of the sources
	folder string // for what is made
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
	name, args := "unchanged", []string{"build"}
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

// BuildWith builds tillstorm with the defect of that name, one of scenarios/defects,
// into a folder, and returns the program.
func BuildWith(ctx context.Context, name, folder string) (program string, err error) {
	p, err := newPlanter(ctx, folder)
	if err != nil {
		return "", err
	}
	d, err := readDefect(p.root, name)
	if err != nil {
		return "", err
	}
	return p.build(ctx, d)
}

// readDefect reads one of the defects that come with the sources.
func readDefect(root, name string) (*Defect, error) {
	all, err := ReadDefects(filepath.Join(root, "scenarios", "defects"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range all {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return nil, fmt.Errorf("there is no defect %q; there are %s", name, strings.Join(names, ", "))
}
