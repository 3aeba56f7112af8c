package tidy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// offered are exported names for programs that are not here, with what they are for.
// Constants are left out of the rule: they come in sets, of a chip or an enumeration,
// and so are types that an exported one mentions.
var offered = map[string]string{
	"hal/linux.Register":   "periph's registries, for drivers of others",
	"hal/record.I2C":       "recordings as periph's playbacks",
	"hal/record.Played":    "and back",
	"hal/record.SPI":       "recordings as periph's playbacks",
	"hal/record.PlayedSPI": "and back",
	"ocs/diode.Add":        "an ADC from any package",
}

// exported is what a file tells of exported names: those that it declares, those that its
// exported declarations mention, and those of other packages of ours that it uses.
type exported struct{ declared, mentioned, used map[string]bool }

func (e *exported) read(dir string, f *ast.File, names map[string]string) {
	imports := map[string]string{}
	for _, i := range f.Imports {
		if path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/"); ours {
			name := names[path]
			if i.Name != nil {
				name = i.Name.Name
			}
			imports[name] = path
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				e.used[imports[x.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	mention := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				e.mentioned[dir+"."+id.Name] = true
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				e.declared[dir+"."+d.Name.Name] = true
			}
			if d.Name.IsExported() {
				mention(d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						e.declared[dir+"."+s.Name.Name] = true
						mention(s.Type)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() && d.Tok == token.VAR {
							e.declared[dir+"."+name.Name] = true
						}
					}
					if s.Type != nil {
						mention(s.Type)
					}
				}
			}
		}
	}
}

// Goal: a package shows what others need of it, and no more.
// Method: every file, tests and the modules in bridge too; a function, variable or type
// that no other package names, and no exported declaration mentions, is nobody's.
func TestExportedNamesAreUsedOutside(t *testing.T) {
	files, names := map[string]*ast.File{}, map[string]string{}
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || path != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if files[path] = f; err == nil && !strings.HasSuffix(f.Name.Name, "_test") {
			names[filepath.ToSlash(filepath.Dir(path))] = f.Name.Name
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	e := exported{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	tests := exported{map[string]bool{}, map[string]bool{}, e.used}
	for path, f := range files { // any order: sets
		if strings.HasSuffix(path, "_test.go") || f.Name.Name == "main" { // which nobody imports
			tests.read(filepath.ToSlash(filepath.Dir(path)), f, names)
		} else {
			e.read(filepath.ToSlash(filepath.Dir(path)), f, names)
		}
	}
	if len(e.declared) < 1000 {
		t.Fatalf("%d exported names seen", len(e.declared))
	}
	for name := range e.declared { // any order: each is by itself
		if !e.used[name] && !e.mentioned[name] && offered[name] == "" && !strings.HasPrefix(name, "proto/mqtt/nowebsocket.") {
			t.Errorf("%s: no other package uses it: write it small, or say in offered who does", name)
		}
	}
	for name := range offered { // any order: each is by itself
		if !e.declared[name] || e.used[name] {
			t.Errorf("offered: %s is used, or not there", name)
		}
	}
}
