package tidy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// What code and pages say of each other, as far as a machine can check it.

// walkText calls f with every file of the repository whose name ends in one of
// the suffixes.
func walkText(t *testing.T, suffixes []string, f func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bin" || strings.HasPrefix(d.Name(), ".") && path != "." && d.Name() != ".ci"):
			return fs.SkipDir
		case d.IsDir() || !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(path, s) }):
			return nil
		}
		raw, err := os.ReadFile(path)
		f(path, string(raw))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var page = regexp.MustCompile(`[A-Za-z0-9_./-]+\.md\b`)

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// Goal: who is sent to a page finds it.
// Method: every name of a page in code, scripts, the Makefile and pages is a
// file, from the root or from where it is named.
func TestPagesThatAreCitedExist(t *testing.T) {
	n := 0
	walkText(t, []string{".go", ".md", ".sh", ".cddl", "Makefile", "README.md"}, func(path, text string) {
		for _, name := range page.FindAllString(text, -1) {
			n++
			if !exists(name) && !exists(filepath.Join(filepath.Dir(path), name)) {
				t.Errorf("%s cites %s, which is not there", path, name)
			}
		}
	})
	if n < 10 {
		t.Errorf("only %d pages cited: does the test still see them?", n)
	}
}

// misnamed is the first word of a doc comment when it names something else than
// what it stands above. A comment of doc form begins with a name: a word that
// no English sentence begins with, in lower case or with a capital inside.
// "chosen:" begins a reason instead.
func misnamed(doc *ast.CommentGroup, names ...string) string {
	words := strings.Fields(doc.Text())
	if len(words) == 0 || words[0] == "chosen:" {
		return ""
	}
	word := strings.TrimSuffix(strings.TrimRight(words[0], ":,.;"), "'s")
	if !token.IsIdentifier(word) && !token.IsKeyword(word) || slices.Contains(names, word) {
		return ""
	}
	inner := strings.IndexFunc(word[1:], unicode.IsUpper) >= 0 && strings.IndexFunc(word, unicode.IsLower) >= 0
	if inner || unicode.IsLower(rune(word[0])) {
		return word
	}
	return ""
}

// Goal: a doc comment is about what it stands above.
// Method: the first word of each, exported or not, is the declared name, or no
// name at all.
func TestDocCommentsNameWhatTheyDocument(t *testing.T) {
	fset := token.NewFileSet()
	checked := 0
	walkText(t, []string{".go"}, func(path, text string) {
		f, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		check := func(doc *ast.CommentGroup, names ...string) {
			if doc == nil {
				return
			}
			checked++
			if word := misnamed(doc, names...); word != "" {
				t.Errorf("%s: a comment on %q above %s", fset.Position(doc.Pos()), word, strings.Join(names, ", "))
			}
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(d.Doc, d.Name.Name)
			case *ast.GenDecl:
				var all []string
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						all = append(all, s.Name.Name)
						check(s.Doc, s.Name.Name)
					case *ast.ValueSpec:
						var names []string
						for _, n := range s.Names {
							names = append(names, n.Name)
						}
						all = append(all, names...)
						check(s.Doc, names...)
					}
				}
				if d.Tok != token.IMPORT {
					check(d.Doc, all...)
				}
			}
		}
	})
	if checked < 1000 {
		t.Errorf("only %d comments checked: does the test still see them?", checked)
	}
	for text, want := range map[string]string{ // any order
		"// litFor is since when it is lit": "litFor", "// LitFor gives it": "LitFor", "// litAt is it": "", "// Light is lost": "", "// chosen: why": "", "// [IHBD] eq. 1": "",
	} {
		if got := misnamed(&ast.CommentGroup{List: []*ast.Comment{{Text: text}}}, "litAt"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Goal: a stranger finds every folder in the table of rooms.
// Method: the names in a row of docs/architecture.md, as they are or below the folder of the
// row's first one, against the folders with code one or two levels below the top. Chips,
// which have a digit in their name, and commands are told of together.
func TestEveryRoomHasItsRow(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rooms, name := map[string]bool{}, regexp.MustCompile("`([a-z0-9/-]+)`")
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		names := name.FindAllStringSubmatch(line, -1)
		in, _, _ := strings.Cut(names[0][1], "/")
		for _, m := range names {
			rooms[m[1]], rooms[in+"/"+m[1]] = true, true
		}
	}
	together := regexp.MustCompile(`^hal/.*[0-9]|^cmd/oc|^tidy$|^\.$`)
	seen := map[string]bool{}
	walkText(t, []string{".go"}, func(path, _ string) {
		room := strings.Split(filepath.Dir(path), "/")
		at := strings.Join(room[:min(len(room), 2)], "/")
		if !seen[at] && !rooms[at] && !together.MatchString(at) {
			t.Errorf("%s: docs/architecture.md has no row for its folder", path)
		}
		seen[at] = true
	})
	if len(seen) < 60 {
		t.Errorf("%d folders", len(seen))
	}
}
