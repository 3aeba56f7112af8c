package tidy_test

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// constants evaluates the constants of our packages, which depend on nothing
// but each other and the units of time.
type constants map[string]*types.Package

// units stands in for the package time. Its source cannot be found by a test that was
// built with -trimpath.
const units = `package time
type Duration int64
const (
	Nanosecond Duration = 1
	Microsecond = 1000 * Nanosecond
	Millisecond = 1000 * Microsecond
	Second = 1000 * Millisecond
	Minute = 60 * Second
	Hour = 60 * Minute
)`

func (c constants) Import(path string) (*types.Package, error) {
	dir, ours := strings.CutPrefix(path, "ringlight/")
	fset := token.NewFileSet()
	switch {
	case c[dir] != nil:
		return c[dir], nil
	case path == "time":
		f, err := parser.ParseFile(fset, "time.go", units, 0)
		if err != nil {
			return nil, err
		}
		c[dir], err = (&types.Config{}).Check(path, fset, []*ast.File{f}, nil)
		return c[dir], err
	case !ours:
		return nil, errors.New("not needed")
	}
	names, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	cfg := types.Config{Importer: c, Error: func(error) {}, IgnoreFuncBodies: true}
	pkg, _ := cfg.Check(path, fset, files, nil) // what is not needed is missing
	pkg.MarkComplete()
	c[dir] = pkg
	return pkg, nil
}

var timesRow = regexp.MustCompile("(?m)(?:^\\| .* \\| `([a-z/]+)\\.(\\w+)` \\| (.*) \\|$|(?:^|;  )([a-z/]+)\\.(\\w+) ([0-9][0-9,.a-z]*))")

// Goal: the numbers on the protocol's page are the code's.
// Method: each row of its table of times and limits, and each place in the block
// below it, names a constant, whose value is taken from the source: a time in Go's
// form, with a space before the unit or none, or a number with commas.
func TestProtocolPageHasTheCodesNumbers(t *testing.T) {
	page, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	code := constants{}
	rows := timesRow.FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		dir, name, said := row[1]+row[4], row[2]+row[5], row[3]+row[6]
		pkg, err := code.Import("ringlight/" + dir)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := pkg.Scope().Lookup(name).(*types.Const)
		if c == nil || c.Val().Kind() == constant.Unknown {
			t.Errorf("%s.%s is no constant that can be read", dir, name)
			continue
		}
		have, exact := constant.Int64Val(constant.ToInt(c.Val()))
		var want int64
		if strings.HasSuffix(c.Type().String(), "time.Duration") {
			var d time.Duration
			d, err = time.ParseDuration(strings.ReplaceAll(strings.ReplaceAll(said, " min", "m"), " ", ""))
			want = int64(d)
		} else {
			want, err = strconv.ParseInt(strings.ReplaceAll(said, ",", ""), 10, 64)
		}
		if err != nil || !exact || have != want {
			t.Errorf("docs/protocol.md: %s.%s is %s there and %s in the code (%v)", dir, name, said, c.Val(), err)
		}
	}
	if len(rows) < 115 {
		t.Errorf("only %d rows read: does the test still see the table?", len(rows))
	}
}
