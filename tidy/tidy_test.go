package tidy_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
)

// The rules are about the folder above.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// The rules of the house that a machine can check. Each failure names the
// place and the rule.

const module = "ringlight"

// mayImport is the import column of the architecture: what each package may
// import from this module and from outside the standard library. A trailing
// slash allows everything below.
var mayImport = map[string][]string{
	"tidy":                  {}, // tests alone
	"proto":                 {"github.com/fxamacker/cbor/v2"},
	"proto/limit":           {},        // shared by all shells
	"proto/cert":            {"proto"}, // alone knows what a certificate is judged by
	"proto/seal":            {"proto"},
	"proto/guard":           {"proto", "proto/limit", "proto/metric", "proto/seal"},
	"proto/metric":          {},
	"proto/metric/self":     {"proto/metric"},
	"proto/metric/promtool": {},
	"proto/mqtt":            {"proto", "proto/cert", "proto/limit", "proto/seal", "github.com/eclipse/paho.mqtt.golang", "github.com/eclipse/paho.mqtt.golang/packets"},
	"hal":                   {"periph.io/x/conn/v3/"},
	"hal/linux":             {"hal", "hal/pca953x", "hal/sc18is602", "periph.io/x/conn/v3", "periph.io/x/conn/v3/", "periph.io/x/host/v3", "golang.org/x/sys/unix"}, // periph's interfaces are its seam
	"hal/periph":            {"hal", "periph.io/x/conn/v3", "periph.io/x/conn/v3/"},
	"hal/record":            {"hal", "periph.io/x/conn/v3/"},
	"hal/socket":            {"hal", "proto/limit"},
	"hal/*":                 {"hal"},
	"hal/boardfile":         {"hal", "hal/sc18is602", "proto", "periph.io/x/conn/v3/physic"},
	"mzi":                   {"periph.io/x/conn/v3/physic", "mzi/detmath"},
	"mzi/detmath":           {},
	"ocs/heater":            {"hal", "hal/ad5676", "hal/ltc2688", "periph.io/x/conn/v3/physic"}, // but for sim's own, nobody else knows a DAC
	"ocs":                   {"ocs/diode", "ocs/heater", "ocs/mci", "ocs/stored", "ocs/work", "mzi", "mzi/detmath", "hal", "hal/at24", "hal/cmis", "hal/ina219", "hal/pca953x", "hal/pca9548", "hal/tmp102", "proto", "periph.io/x/conn/v3/physic"},
	"ocs/mci":               {"ocs/diode", "ocs/heater", "ocs/work", "hal", "hal/cmis", "proto", "periph.io/x/conn/v3/physic"},
	"ocs/diode":             {"hal", "hal/ad7998", "hal/ads7138", "mzi/detmath", "proto"}, // of the transceivers, nobody else knows an ADC
	"ocs/work":              {"hal"},
	"ocs/stored":            {"github.com/fxamacker/cbor/v2"},
	"ocs/circuit":           {"hal", "proto"},
	"ocs/mems":              {"ocs/circuit", "ocs/stored", "ocs/work", "hal", "hal/ad5535b", "hal/ads7138", "hal/tmp102", "mzi/detmath", "proto"},
	"ocs/box":               {"ocs/circuit", "ocs/work", "hal", "proto"},
	"ocs/selector":          {"ocs", "ocs/circuit", "hal", "proto"},
	"node":                  {"proto"},
	"agent/pm":              {"proto"},
	"agent":                 {"agent/pm", "proto/metric", "proto/metric/self", "node", "ocs", "ocs/circuit", "ocs/mems", "ocs/box", "ocs/selector", "hal", "hal/record", "hal/sonic", "proto", "proto/limit"},
	"agent/bench":           {"ocs", "ocs/diode", "ocs/heater", "hal", "hal/at24", "hal/ina219", "hal/pca953x", "hal/pca9548", "hal/tmp102", "mzi/detmath", "proto", "periph.io/x/conn/v3/physic"},
	"planner":               {"proto", "proto/metric", "planner/audit", "planner/fabric", "planner/journal", "planner/member", "planner/hbd", "planner/core", "planner/rollout", "planner/job", "planner/health", "planner/wear"},
	"planner/health":        {"proto"},
	"planner/wear":          {"planner/journal", "proto"},
	"planner/hostlist":      {},
	"planner/job":           {"proto", "planner/fabric", "planner/hostlist", "planner/journal", "planner/hbd", "planner/core", "planner/model", "planner/ring", "planner/topo"}, // asks for rings and circuits; chooses no node
	"planner/rollout":       {"proto", "planner/journal"},
	"planner/audit":         {},
	"planner/journal":       {"proto", "planner/audit"},
	"planner/member":        {"proto", "proto/metric", "planner/audit", "planner/journal"},
	"planner/hbd":           {"proto", "proto/metric", "planner/fabric", "planner/journal", "planner/member", "planner/ring", "planner/health"},
	"planner/core":          {"proto", "proto/metric", "planner/fabric", "planner/journal", "planner/member", "planner/wiring", "planner/sched", "planner/isolate", "planner/topo"},
	"planner/view/browser":  {"github.com/chromedp/"},
	"planner/jobapi":        {"planner", "planner/job", "proto", "proto/limit"}, // acts through the operators' door alone
	"planner/jobapi/client": {"planner/job", "proto", "proto/cert"},
	"planner/view":          {"planner", "planner/fabric", "planner/hbd", "planner/wear", "proto", "proto/limit"},                                                                                                                        // serves pages: no hand on anything
	"planner/gnmi":          {"hal/sonic", "planner", "planner/fabric", "planner/job", "proto", "proto/cert", "proto/limit", "proto/mqtt", "github.com/openconfig/gnmi/proto/gnmi", "google.golang.org/grpc", "google.golang.org/grpc/"}, // nobody else knows gNMI; acts through the operators' door alone
	"planner/server":        {"planner", "planner/view", "planner/jobapi", "planner/jobapi/client", "planner/fabric", "planner/hbd", "proto/metric", "proto/metric/self", "proto", "proto/cert", "proto/guard", "proto/limit", "proto/mqtt", "proto/pki", "proto/seal", "go.etcd.io/bbolt", "go.etcd.io/bbolt/errors", "github.com/mochi-mqtt/server/v2", "github.com/mochi-mqtt/server/v2/"},
	"planner/server/etcd":   {"planner", "planner/server", "proto", "proto/mqtt", "go.etcd.io/etcd/api/v3/", "go.etcd.io/etcd/client/v3", "go.uber.org/zap"}, // nobody else knows etcd
	"planner/fabric":        {"proto"},
	"planner/ring":          {"planner/fabric", "mzi/detmath", "proto"},
	"planner/wiring":        {"mzi/detmath"},
	"planner/sched":         {"planner/wiring"},
	"planner/isolate":       {"mzi/detmath"},
	"planner/topo":          {"mzi/detmath"},
	"planner/model":         {"mzi/detmath", "planner/topo", "proto"},
	"proto/pki":             {"proto", "proto/seal", "github.com/youmark/pkcs8"},
	"sim":                   {"hal", "hal/ad5535b", "hal/ad5676", "hal/ad7998", "hal/ads7138", "hal/at24", "hal/cmis", "hal/ina219", "hal/ltc2688", "hal/pca953x", "hal/tmp102", "periph.io/x/conn/v3/physic", "mzi/detmath", "sim/agenda"},
	"sim/agenda":            {},
	"sim/damage":            {},
	"sim/flow":              {"mzi/detmath", "sim/agenda"},
	"sim/script":            {},
	"sim/solo":              {"sim", "hal"},
	"sim/trace":             {"mzi/detmath"},
	"sim/workload":          {"mzi/detmath", "proto"},
	"sim/boxes":             {"hal", "hal/scpi", "hal/sonic", "hal/tl1", "ocs/circuit"},
	"sim/fleet":             {"sim", "sim/agenda", "sim/boxes", "sim/trace", "agent", "ocs", "ocs/box", "ocs/circuit", "ocs/mems", "planner", "planner/fabric", "planner/ring", "planner/topo", "hal", "hal/boardfile", "proto", "mzi/detmath", "periph.io/x/conn/v3/physic"},
	"sim/hostile":           {"github.com/fxamacker/cbor/v2", "proto", "proto/mqtt"},
	"sim/study":             {"mzi/detmath", "planner/fabric", "planner/isolate", "planner/model", "planner/topo", "planner/ring", "planner/sched", "planner/wiring", "sim/agenda", "sim/flow", "sim/trace", "sim/workload", "proto"},
	"sim/step":              {},
	"sim/freeport":          {},
	"sim/testbroker":        {"github.com/mochi-mqtt/server/v2", "github.com/mochi-mqtt/server/v2/"},
	"sim/procs":             {},
	"sim/live":              {"sim", "sim/step", "sim/agenda", "sim/fleet", "sim/solo", "sim/trace", "sim/damage", "mzi/detmath", "agent", "ocs", "ocs/circuit", "ocs/mems", "hal", "hal/socket", "planner", "planner/fabric", "planner/job", "planner/jobapi/client", "planner/server", "proto", "proto/limit", "proto/mqtt"},
	"sim/testbed":           {"hal", "planner/topo", "sim", "sim/fleet", "sim/live", "planner", "planner/fabric", "proto", "proto/mqtt", "golang.org/x/sys/unix"},
	"cmd/cli":               {"proto", "golang.org/x/sys/unix"},
	"cmd/cli/clitest":       {},
	"cmd/service":           {},
	"cmd/ocs-agent":         {"cmd/cli", "cmd/service", "agent", "agent/bench", "hal", "hal/boardfile", "hal/linux", "hal/record", "hal/scpi", "hal/socket", "hal/sonic", "hal/tl1", "mzi/detmath", "ocs", "ocs/box", "ocs/circuit", "ocs/mems", "proto", "proto/cert", "proto/guard", "proto/metric", "proto/metric/self", "proto/mqtt", "proto/seal", "sim", "sim/solo"},
	"cmd/ocs-planner":       {"cmd/cli", "cmd/service", "planner", "planner/fabric", "planner/gnmi", "planner/server", "planner/server/etcd", "proto", "proto/guard"},
	"cmd/ocs-sim":           {"cmd/cli", "golang.org/x/sys/unix", "hal", "hal/boardfile", "planner/fabric", "planner/model", "proto", "proto/guard", "proto/mqtt", "sim", "sim/"},
	"cmd/ocs-sonic":         {"cmd/cli", "proto/cert", "proto/mqtt"},
	"cmd/ocs-slurm":         {"cmd/cli", "planner/hostlist", "planner/job", "planner/jobapi/client", "proto"},
	"cmd/ocsctl":            {"cmd/cli", "planner/audit", "planner/health", "planner/job", "planner/jobapi/client", "planner/fabric", "planner/isolate", "planner/model", "planner/ring", "planner/topo", "planner/wiring", "proto", "proto/guard", "proto/mqtt", "proto/pki", "proto/seal", "golang.org/x/term"},
}

// neverImport overrides the column: physics is never shared, and a simulator
// that uses the driver's own formulas proves nothing.
var neverImport = map[string][]string{
	"sim":        {"mzi", "ocs", "node"},
	"hal/socket": {"proto"},
}

// testsOnly are packages that no package but its tests may import.
var testsOnly = []string{"cmd/cli/clitest", "sim/script", "planner/view/browser", "proto/metric/promtool"}

// pure packages hold decisions: no goroutine, clock, file, log or chance.
var pure = []string{
	"proto", "proto/metric", "proto/seal", "hal", "hal/*", "mzi", "mzi/detmath", "ocs", "ocs/*", "node", "agent", "agent/bench", "agent/pm",
	"planner", "planner/audit", "planner/journal", "planner/member", "planner/hbd", "planner/core", "planner/rollout", "planner/job", "planner/hostlist", "planner/health", "planner/wear",
	"planner/fabric", "planner/ring", "planner/wiring", "planner/sched", "planner/isolate", "planner/topo", "planner/model",
	"sim", "sim/agenda", "sim/flow", "sim/trace", "sim/workload", "sim/fleet", "sim/study",
}

// impureFiles are the files of a pure package that may touch the world.
var impureFiles = map[string]*regexp.Regexp{
	"agent": regexp.MustCompile(`^run[a-z_]*\.go$`),
}

// notPure are packages matched by a pattern in pure that are shells.
var notPure = []string{"hal/linux", "hal/periph", "hal/socket"}

// belowAgent must never be linked into the agent's binary.
var belowAgent = []string{"planner", "sim/fleet", "sim/live", "go.etcd.io/bbolt", "go.etcd.io/etcd/client/v3", "google.golang.org/grpc", "github.com/mochi-mqtt/server/v2"}

// exactFloats are the packages whose floats must have the same bits on every
// machine.
var exactFloats = []string{"mzi", "mzi/detmath", "sim", "sim/trace", "sim/workload", "sim/fleet", "sim/study", "ocs", "ocs/diode", "ocs/mems", "planner/wear"}

var mathAllowed = map[string][]string{
	"":            {"Sqrt", "Abs", "Floor", "FMA"},
	"mzi/detmath": {"Sqrt", "Abs", "Floor", "FMA", "Float64bits", "Float64frombits", "IsNaN", "IsInf", "Inf", "NaN"},
}

type listed struct {
	Dir, ImportPath, Name, Export string
	Imports, Deps                 []string
	GoFiles                       []string
	TestGoFiles, XTestGoFiles     []string
	Standard                      bool
	relative                      string
	fset                          *token.FileSet
	files                         map[string]*ast.File
	info                          *types.Info
	types                         *types.Package
	typeErr                       error
}

var (
	loadOnce sync.Once
	loaded   []*listed
	exports  map[string]string
	loadErr  error
)

// load lists the module's packages with the compiler's export data of all
// they import, and type-checks each from its own files.
func load(t *testing.T) []*listed {
	t.Helper()
	loadOnce.Do(func() {
		cmd := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Name,Export,Imports,Deps,GoFiles,TestGoFiles,XTestGoFiles,Standard", "./...")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			loadErr = err
			return
		}
		exports = map[string]string{}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			p := new(listed)
			if err := dec.Decode(p); err == io.EOF {
				break
			} else if err != nil {
				loadErr = err
				return
			}
			exports[p.ImportPath] = p.Export
			if p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/") {
				p.relative = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
				if p.relative != "" {
					loaded = append(loaded, p)
				}
			}
		}
		for _, p := range loaded {
			p.check()
		}
	})
	if loadErr != nil {
		t.Fatal(loadErr)
	}
	return loaded
}

func (p *listed) check() {
	p.fset = token.NewFileSet()
	p.files = map[string]*ast.File{}
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(p.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			p.typeErr = err
			return
		}
		p.files[name] = f
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if e := exports[path]; e != "" {
			return os.Open(e)
		}
		return nil, fmt.Errorf("no export data for %s", path)
	})}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	p.types, p.typeErr = conf.Check(p.ImportPath, p.fset, files, p.info)
}

func (p *listed) at(n ast.Node) string {
	pos := p.fset.Position(n.Pos())
	return fmt.Sprintf("%s/%s:%d", p.relative, filepath.Base(pos.Filename), pos.Line)
}

func matches(pattern, rel string) bool {
	if pattern == rel {
		return true
	}
	base, ok := strings.CutSuffix(pattern, "/*")
	return ok && strings.HasPrefix(rel, base+"/")
}

func isPure(rel string) bool {
	return !slices.Contains(notPure, rel) && slices.ContainsFunc(pure, func(p string) bool { return matches(p, rel) })
}

func allowed(rel, imp string) bool {
	list, ok := mayImport[rel]
	if !ok {
		if strings.HasPrefix(rel, "hal/") {
			list, ok = mayImport["hal/*"], true
		}
	}
	short := strings.TrimPrefix(imp, module+"/")
	for _, a := range list {
		if a == short || strings.HasSuffix(a, "/") && strings.HasPrefix(short, a) {
			return true
		}
	}
	return false
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	for _, p := range load(t) {
		_, known := mayImport[p.relative]
		if !known && !strings.HasPrefix(p.relative, "hal/") {
			t.Errorf("%s: no row in the import column", p.relative)
			continue
		}
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if first != module && !strings.Contains(first, ".") {
				continue // standard library
			}
			short := strings.TrimPrefix(imp, module+"/")
			if !allowed(p.relative, imp) || slices.Contains(neverImport[p.relative], short) || slices.Contains(testsOnly, short) {
				t.Errorf("%s imports %s", p.relative, short)
			}
		}
	}
}

func TestAgentStaysSmall(t *testing.T) {
	for _, p := range load(t) {
		if p.relative != "cmd/ocs-agent" {
			continue
		}
		for _, dep := range p.Deps {
			short := strings.TrimPrefix(dep, module+"/")
			for _, bad := range belowAgent {
				if short == bad || strings.HasPrefix(short, bad+"/") {
					t.Errorf("cmd/ocs-agent links %s", short)
				}
			}
		}
	}
}

var impureImports = []string{"os", "log", "log/slog", "net", "io/ioutil", "math/rand", "math/rand/v2", "crypto/rand", "sync", "sync/atomic", "context", "os/exec", "syscall"}

var clockFuncs = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestPurePackagesArePure(t *testing.T) {
	for _, p := range load(t) {
		if !isPure(p.relative) {
			continue
		}
		if p.typeErr != nil {
			t.Errorf("%s: %v", p.relative, p.typeErr)
			continue
		}
		for name, f := range p.files {
			if re := impureFiles[p.relative]; re != nil && re.MatchString(name) {
				continue
			}
			for _, imp := range f.Imports {
				if path := strings.Trim(imp.Path.Value, `"`); slices.Contains(impureImports, path) && !(p.relative == "proto" && path == "sync") {
					t.Errorf("%s: a pure package imports %s", p.at(imp), path)
				}
			}
			comments := lineComments(p.fset, f)
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: goroutine in a pure package", p.at(n))
				case *ast.SelectStmt:
					t.Errorf("%s: select in a pure package", p.at(n))
				case *ast.SelectorExpr:
					if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clockFuncs, n.Sel.Name) {
						t.Errorf("%s: time.%s in a pure package", p.at(n), n.Sel.Name)
					}
				case *ast.RangeStmt:
					tv := p.info.Types[n.X]
					if tv.Type == nil {
						break
					}
					if _, isMap := tv.Type.Underlying().(*types.Map); !isMap {
						break
					}
					line := p.fset.Position(n.Pos()).Line
					if !strings.Contains(comments[line], "any order") && !strings.Contains(comments[line-1], "any order") {
						t.Errorf(`%s: range over a map; sort the keys, or say "any order" and why beside it`, p.at(n))
					}
				}
				return true
			})
		}
	}
}

func lineComments(fset *token.FileSet, f *ast.File) map[int]string {
	m := map[int]string{}
	for _, g := range f.Comments {
		for _, c := range g.List {
			m[fset.Position(c.Pos()).Line] += c.Text
		}
	}
	return m
}

func TestFloatsHaveTheSameBitsEverywhere(t *testing.T) {
	for _, p := range load(t) {
		if !slices.Contains(exactFloats, p.relative) || p.typeErr != nil {
			continue
		}
		ok := mathAllowed[""]
		if own := mathAllowed[p.relative]; own != nil {
			ok = own
		}
		fused := func(e ast.Expr) bool {
			for {
				paren, is := e.(*ast.ParenExpr)
				if !is {
					break
				}
				e = paren.X
			}
			b, is := e.(*ast.BinaryExpr)
			return is && b.Op == token.MUL && isFloat(p.info.Types[e]) && p.info.Types[e].Value == nil
		}
		for _, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					pkg, is := n.X.(*ast.Ident)
					if !is || pkg.Name != "math" {
						break
					}
					if _, isFunc := p.info.Uses[n.Sel].(*types.Func); isFunc && !slices.Contains(ok, n.Sel.Name) {
						t.Errorf("%s: math.%s has other last bits on other machines", p.at(n), n.Sel.Name)
					}
				case *ast.BinaryExpr:
					if (n.Op == token.ADD || n.Op == token.SUB) && (fused(n.X) || fused(n.Y)) {
						t.Errorf("%s: a product that may be fused with the sum: write float64(a*b)", p.at(n))
					}
				case *ast.AssignStmt:
					if (n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN) && fused(n.Rhs[0]) {
						t.Errorf("%s: a product that may be fused with the sum: write float64(a*b)", p.at(n))
					}
				}
				return true
			})
		}
	}
}

func isFloat(tv types.TypeAndValue) bool {
	if tv.Type == nil {
		return false
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
}

const (
	maxFileLines = 450 // about 400, with some mercy
	maxFuncLines = 90  // about 70, with some mercy
)

func TestFilesAndFunctionsAreReadable(t *testing.T) {
	badNames := []string{"util", "utils", "common", "types", "manager", "helpers", "misc"}
	for _, p := range load(t) {
		if slices.Contains(badNames, p.Name) {
			t.Errorf("%s: a package is named for what it is", p.relative)
		}
		if p.Name != "main" && !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s: no doc.go", p.relative)
		}
		for name, f := range p.files {
			if n := p.fset.Position(f.End()).Line; n > maxFileLines {
				t.Errorf("%s/%s: %d lines; is it still one room?", p.relative, name, n)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if n := p.fset.Position(fn.End()).Line - p.fset.Position(fn.Pos()).Line; n > maxFuncLines {
					t.Errorf("%s: %s has %d lines", p.at(fn), fn.Name.Name, n)
				}
			}
		}
	}
}

// maxMethods of one type: beyond it, it is several things.
const maxMethods = 60

func TestTypesAreOneThing(t *testing.T) {
	for _, p := range load(t) {
		methods := map[string]int{}
		for _, f := range p.files { // any order: a sum
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
					methods[strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")]++
				}
			}
		}
		for name, n := range methods {
			if n > maxMethods {
				t.Errorf("%s: %s has %d methods; what are its parts?", p.relative, name, n)
			}
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, p := range load(t) {
		if p.relative == "sim/procs" {
			continue // it waits for processes, which know no other clock
		}
		fset := token.NewFileSet()
		for _, name := range append(append([]string{}, p.TestGoFiles...), p.XTestGoFiles...) {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
						t.Errorf("%s/%s:%d: a test sleeps", p.relative, name, fset.Position(n.Pos()).Line)
					}
				}
				return true
			})
		}
	}
}

// The top level is fixed by the customer, with planner added, docs for pages, bridge for
// what is a module of its own, and tidy for these rules.
func TestTopLevel(t *testing.T) {
	want := []string{"agent", "cmd", "hal", "mzi", "node", "ocs", "planner", "proto", "sim"}
	may := []string{"bridge", "docs", "tidy"}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" && !slices.Contains(may, e.Name()) {
			got = append(got, e.Name())
		}
	}
	sort.Strings(got)
	if !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
}
