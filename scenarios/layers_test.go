package scenarios

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/tillstorm/tillstorm/"

// mayImport says, for each layer, which of ours it may import. A layer may always
// import what lies below itself.
var mayImport = map[string][]string{
	"sim":           {},
	"system":        {},
	"faults":        {"sim"},
	"checker":       {"sim"},
	"scenarios":     {"sim", "system", "faults", "checker"},
	"cmd/tillstorm": {"sim", "faults", "checker", "scenarios"},
	"cmd/till":      {"system"},
}

// pure are the layers that know no real time, no real chance and no threads.
var pure = []string{"sim", "system", "faults", "checker"}

// banned are functions, and what to use in their place.
var banned = map[string]string{
	"time.Now":                  "the Clock that is handed in",
	"time.Since":                "Clock.Now and Sub",
	"time.Until":                "Clock.Now and Sub",
	"time.Sleep":                "Clock.Sleep",
	"time.After":                "Clock.Sleep",
	"time.AfterFunc":            "Loops.Go and Clock.Sleep",
	"time.NewTimer":             "Clock.Sleep",
	"time.NewTicker":            "Loops.Every",
	"time.Tick":                 "Loops.Every",
	"context.WithTimeout":       "Clock.WithTimeout",
	"context.WithTimeoutCause":  "Clock.WithTimeout",
	"context.WithCancel":        "Clock.WithTimeout: its Done channel starts goroutines in database/sql",
	"context.WithDeadline":      "Clock.WithTimeout",
	"context.WithDeadlineCause": "Clock.WithTimeout",
	"context.AfterFunc":         "Loops.Go",
	"os.Getenv":                 "a Config field",
	"os.LookupEnv":              "a Config field",
	"os.Environ":                "a Config field",
}

// bannedImports are packages, and what to use in their place.
var bannedImports = map[string]string{
	"crypto/rand": "Env.NewID",
	"math/rand":   "sim.Draw or sim.Rand",
}

// globalRand are the functions of math/rand/v2 that share a sequence nobody keyed.
var globalRand = regexp.MustCompile(`^math/rand/v2\.(Int|Uint|Float|Norm|Exp|Perm|Shuffle|N\b)`)

// bannedSQL are clocks and dice of the database's own.
var bannedSQL = regexp.MustCompile(`(?i)\bCURRENT_(TIMESTAMP|TIME|DATE)\b|\b(unixepoch|julianday|datetime|strftime|date|time)\s*\(\s*('now'|\))|\brandom(blob)?\s*\(`)

// TestLayers keeps the import directions, and keeps real time, chance and threads
// out of what must run the same way twice.
func TestLayers(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedDeps,
		Dir:  "..",
	}, "./...")
	require.NoError(t, err)
	require.NotEmpty(t, loaded)
	for _, p := range loaded {
		require.Empty(t, p.Errors, p.PkgPath)
		l := linter{p: p, layer: layerOf(p.PkgPath)}
		l.run()
		for _, finding := range l.found {
			t.Error(finding)
		}
	}
}

// TestLayersFinds proves that the lint can fail: each banned thing, in a package
// written for it, is found, and the replacement is named.
func TestLayersFinds(t *testing.T) {
	const source = `package sim
import (
	"math/rand/v2"
	"time"
	"github.com/tillstorm/tillstorm/system"
)
var counter int
var table = map[string]int{}
func f(m map[string]int) string {
	go f(nil)
	select {}
	_ = time.Now()
	_ = rand.IntN(3)
	counter++
	table["x"] = 1
	for range m {}
	_ = system.Paid
	return "SELECT CURRENT_TIMESTAMP, random()"
}`
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedDeps | packages.NeedFiles,
		Dir:  "..", Overlay: map[string][]byte{mustAbs(t, "../sim/zz_layers_probe.go"): []byte(source)},
	}, "./sim")
	require.NoError(t, err)
	l := linter{p: loaded[0], layer: "sim"}
	l.run()
	all := strings.Join(l.found, "\n")
	for _, want := range []string{"sim may not import system", "go statement", "select statement", "use the Clock", "sim.Draw",
		"counter is changed", "table is changed", "range over a map", "SQL"} {
		require.Contains(t, all, want)
	}
}

// layerOf returns the layer a package belongs to: its longest prefix in mayImport.
func layerOf(path string) string {
	path = strings.TrimPrefix(path, module)
	for layer := path; layer != ""; {
		if _, ok := mayImport[layer]; ok {
			return layer
		}
		cut := strings.LastIndexByte(layer, '/')
		if cut < 0 {
			break
		}
		layer = layer[:cut]
	}
	return path
}

// linter looks at one package.
type linter struct {
	p     *packages.Package
	layer string
	found []string
}

func (l *linter) add(at token.Pos, format string, args ...any) {
	l.found = append(l.found, fmt.Sprintf("%s: %s", l.p.Fset.Position(at), fmt.Sprintf(format, args...)))
}

func (l *linter) run() {
	allowed, known := mayImport[l.layer]
	if !known {
		l.found = append(l.found, fmt.Sprintf("%s is a layer that nobody has declared", l.p.PkgPath))
	}
	for _, file := range l.p.Syntax {
		l.imports(file, allowed)
		if isPure(l.layer) {
			explained := l.explanations(file)
			ast.Inspect(file, func(n ast.Node) bool { l.node(n, explained); return true })
		}
	}
}

func isPure(layer string) bool {
	for _, p := range pure {
		if layer == p {
			return true
		}
	}
	return false
}

func (l *linter) imports(file *ast.File, allowed []string) {
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if instead, ok := bannedImports[path]; ok && isPure(l.layer) {
			l.add(spec.Pos(), "%s is banned in %s, use %s", path, l.layer, instead)
		}
		if !strings.HasPrefix(path, module) {
			continue
		}
		other := layerOf(path)
		ok := other == l.layer
		for _, a := range allowed {
			ok = ok || other == a
		}
		if !ok {
			l.add(spec.Pos(), "%s may not import %s", l.layer, other)
		}
	}
}

// orderFree marks a range over a map whose order nobody can see.
const orderFree = "order-free:"

// explanations returns the lines that are marked as free of order.
func (l *linter) explanations(file *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.Contains(c.Text, orderFree) {
				line := l.p.Fset.Position(c.Pos()).Line
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}

func (l *linter) node(n ast.Node, explained map[int]bool) {
	switch n := n.(type) {
	case *ast.GoStmt:
		l.add(n.Pos(), "a go statement is banned in %s, use Loops.Go", l.layer)
	case *ast.SelectStmt:
		l.add(n.Pos(), "a select statement is banned in %s, use Clock and Loops", l.layer)
	case *ast.SelectorExpr:
		l.selector(n)
	case *ast.RangeStmt:
		if _, isMap := l.p.TypesInfo.TypeOf(n.X).Underlying().(*types.Map); isMap && !explained[l.p.Fset.Position(n.Pos()).Line] {
			l.add(n.Pos(), "a range over a map has no order: sort the keys, or say why nobody sees it in a comment %q", orderFree)
		}
	case *ast.AssignStmt:
		for _, target := range n.Lhs {
			l.target(target)
		}
	case *ast.IncDecStmt:
		l.target(n.X)
	case *ast.BasicLit:
		if n.Kind == token.STRING && l.layer == "system" || n.Kind == token.STRING && strings.Contains(n.Value, "SELECT") {
			if bad := bannedSQL.FindString(n.Value); bad != "" {
				l.add(n.Pos(), "%q is banned in SQL, use db_now_ms() or a number from outside", bad)
			}
		}
	}
}

func (l *linter) selector(n *ast.SelectorExpr) {
	object := l.p.TypesInfo.Uses[n.Sel]
	if object == nil || object.Pkg() == nil || object.Parent() != object.Pkg().Scope() {
		return
	}
	name := object.Pkg().Path() + "." + object.Name()
	if instead, ok := banned[name]; ok {
		l.add(n.Pos(), "%s is banned in %s, use %s", name, l.layer, instead)
	}
	if _, isFunc := object.(*types.Func); isFunc && globalRand.MatchString(name) {
		l.add(n.Pos(), "%s is banned in %s, use sim.Draw or sim.Rand", name, l.layer)
	}
}

// target finds a change of a package-level variable, or of what it holds.
func (l *linter) target(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
			continue
		case *ast.SelectorExpr:
			e = x.X
			continue
		case *ast.StarExpr:
			e = x.X
			continue
		case *ast.Ident:
			v, ok := l.p.TypesInfo.Uses[x].(*types.Var)
			if ok && v.Parent() == l.p.Types.Scope() {
				l.add(x.Pos(), "the package-level variable %s is changed: worlds run side by side", x.Name)
			}
		}
		return
	}
}

func mustAbs(t *testing.T, path string) string {
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}
