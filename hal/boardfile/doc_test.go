package boardfile

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ringlight/hal"
)

var update = flag.Bool("update", false, "write the tables of docs/board-file.md anew")

const page = "../../docs/board-file.md"

// Goal: the reference is what the program reads: every key of every object, and every
// part with its clock, mode and addresses.
// Method: the tables of the page are made of the comments and tags of the source and of
// the table of parts.
func TestReferenceIsTheProgram(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), "<!-- tables -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !ok2 {
		t.Fatal("the page has no place for tables")
	}
	want := before + "<!-- tables -->\n" + tables() + "<!-- end -->\n" + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(raw) {
		t.Error("docs/board-file.md is not what the program reads: go test ./hal/boardfile -run Reference -update")
	}
}

// comments are what stands beside each field in the source.
func comments() map[string]string {
	said := map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), "file.go", nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					said[spec.Name.Name+"."+name.Name] = strings.TrimSpace(field.Comment.Text())
				}
			}
		}
		return false
	})
	return said
}

func tables() string {
	var b strings.Builder
	said := comments()
	var seen []reflect.Type
	var object func(t reflect.Type, title string)
	object = func(t reflect.Type, title string) {
		if slices.Contains(seen, t) {
			return
		}
		seen = append(seen, t)
		fmt.Fprintf(&b, "\n### %s\n\n| key | form | |\n| --- | --- | --- |\n", title)
		type inner struct {
			t     reflect.Type
			title string
		}
		var next []inner
		for i := range t.NumField() {
			f := t.Field(i)
			name, optional, _ := strings.Cut(f.Tag.Get("json"), ",")
			form, of := formOf(f.Type)
			if u := f.Tag.Get("unit"); u != "" {
				form += ", " + u
			}
			if optional != "" {
				form += ", optional"
			}
			doc := said[t.Name()+"."+f.Name]
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, form, doc)
			if doc == "" {
				panic("no doc: " + name)
			}
			if of != nil {
				next = append(next, inner{of, name})
			}
		}
		for _, n := range next {
			object(n.t, "`"+n.title+"`")
		}
	}
	object(reflect.TypeFor[File](), "The file")
	fmt.Fprint(&b, "\n### Parts\n\n| part | role | bus | fastest clock | SPI mode | addresses |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, p := range hal.Parts() {
		d := p.Data()
		bus, mode, addrs := "I2C", "", fmt.Sprintf("%#02x to %#02x", d.FirstAddr, d.LastAddr)
		if d.Bus == hal.SPI {
			bus, mode, addrs = "SPI", fmt.Sprint(d.SPIMode), ""
		}
		fmt.Fprintf(&b, "| %s | %v | %s | %v | %s | %s |\n", "`"+strings.Join(append([]string{d.Name}, d.Also...), "`, `")+"`", d.Role, bus, d.MaxClock, mode, addrs)
	}
	return b.String()
}

// formOf says what a value looks like, and of which object it is one or many.
func formOf(t reflect.Type) (string, reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		return formOf(t.Elem())
	case reflect.Struct:
		return "object", t
	case reflect.Slice:
		form, of := formOf(t.Elem())
		return "list of " + form, of
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "true or false", nil
	}
	if t == reflect.TypeFor[Addr]() {
		return "address", nil
	}
	return "integer", nil
}
