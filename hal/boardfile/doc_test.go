package boardfile

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
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
	said, seen := comments(), map[reflect.Type]string{}
	var object func(t reflect.Type, path string)
	object = func(t reflect.Type, path string) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, optional, _ := strings.Cut(f.Tag.Get("json"), ",")
			doc := said[t.Name()+"."+f.Name]
			if doc == "" {
				panic("no doc: " + name)
			}
			form, of := formOf(f.Type)
			switch {
			case form == "string":
				form = ""
			case seen[of] != "":
				form = strings.Replace(form, "object", "objects like `"+seen[of]+"`", 1) + "; "
				if !strings.HasPrefix(form, "list") {
					form = strings.TrimPrefix(form, "objects ")
				}
			default:
				form += "; "
			}
			mark := ""
			if optional != "" {
				mark = "?"
			}
			at := path + name
			if t == reflect.TypeFor[File]() && of != nil {
				fmt.Fprintf(&b, "\n### `%s%s`\n\n%s.\n\n", name, mark, strings.ToUpper(doc[:1])+doc[1:])
				object(of, "")
				continue
			}
			fmt.Fprintf(&b, "- `%s%s`: %s%s\n", at, mark, form, doc)
			if of != nil && seen[of] == "" {
				seen[of] = at
				object(of, at+".")
			}
		}
	}
	fmt.Fprint(&b, "\nA key with `?` may be left out. A value is a string where nothing else is said; units are in the names. The keys from `buses` on are lists of\nobjects, but for `mirrors`, which is one.\n\n")
	object(reflect.TypeFor[File](), "")
	fmt.Fprint(&b, "\n### Parts\n\n| part | role | bus, fastest | mode, addresses |\n| --- | --- | --- | --- |\n")
	for _, p := range hal.Parts() {
		d := p.Data()
		bus, more := "I2C", fmt.Sprintf("%#02x-%02x", d.FirstAddr, d.LastAddr)
		if d.Bus == hal.SPI {
			bus, more = "SPI", fmt.Sprint("mode ", d.SPIMode)
		}
		fmt.Fprintf(&b, "| %s | %v | %s %v | %s |\n", "`"+strings.Join(append([]string{d.Name}, d.Also...), "`, `")+"`", d.Role, bus, d.MaxClock, more)
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
