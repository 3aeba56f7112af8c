package tidy_test

import (
	"cmp"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// How large rooms and types may be: what is new is paid for by what goes.

// linesFile has the most lines of Go, tests aside, that each room may have, and all
// together. A room is a folder, or a folder in one.
const linesFile = ".ci/lines.txt"

// linesRound is what -update rounds a room up to. chosen: a small change does not touch
// the file, and two of them do not meet in it.
const linesRound = 50

func roomOf(path string) string {
	dirs := strings.Split(filepath.ToSlash(filepath.Dir(path)), "/")
	return strings.Join(dirs[:min(2, len(dirs))], "/")
}

// Goal: the house grows in no room unnoticed, and not at all as a whole.
// Method: lines of every file of Go that is no test, by room, against the file; -update
// writes the rooms anew. The sum is a ceiling that only a person moves.
func TestRoomsKeepTheirSize(t *testing.T) {
	is, sum := map[string]int{}, 0
	walkText(t, []string{".go"}, func(path, text string) {
		if !strings.HasSuffix(path, "_test.go") {
			n := strings.Count(text, "\n")
			is[roomOf(path)] += n
			sum += n
		}
	})
	raw, err := os.ReadFile(linesFile)
	if err != nil {
		t.Fatal(err)
	}
	head, may, ceiling := "", map[string]int{}, 0
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if len(words) != 2 || strings.HasPrefix(line, "#") {
			head += line
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatalf("%s: %q: want lines and a room", linesFile, line)
		}
		if words[1] == "sum" {
			ceiling = n
		} else {
			may[words[1]] = n
		}
	}
	if *update {
		for room, n := range is {
			is[room] = (n + linesRound - 1) / linesRound * linesRound
		}
		text := fmt.Sprintf("%s%7d sum\n", head, ceiling)
		for _, room := range slices.SortedFunc(maps.Keys(is), func(a, b string) int { return cmp.Or(cmp.Compare(is[b], is[a]), cmp.Compare(a, b)) }) {
			text += fmt.Sprintf("%7d %s\n", is[room], room)
		}
		if err := os.WriteFile(linesFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		may = is
	}
	for _, room := range slices.Sorted(maps.Keys(is)) {
		if is[room] > may[room] {
			t.Errorf("%s has %d lines, %s allows %d: take as many out, or write the file anew (go test ./tidy -run RoomsKeepTheirSize -update) and say in the commit why the room may grow, and which becomes smaller", room, is[room], linesFile, may[room])
		}
	}
	for _, room := range slices.Sorted(maps.Keys(may)) {
		if _, there := is[room]; !there {
			t.Errorf("%s: there is no room %s", linesFile, room)
		}
	}
	if sum > ceiling {
		t.Errorf("%d lines of Go in all, %s allows %d: something has to go before this comes", sum, linesFile, ceiling)
	}
}

// maxReach is the most that one can do with a type: its methods, those of what it
// embeds, and the functions of its package that take it first.
const maxReach = 60

// Goal: embedding and functions do not hide that a type is several things.
// Method: the methods of each type of a package as the compiler sees them, and the
// package's functions whose first parameter it is.
func TestTypesHaveNoMorePartsThanTheyShow(t *testing.T) {
	for _, p := range load(t) {
		if p.typeErr != nil {
			continue
		}
		first := map[types.Object]int{}
		scope := p.types.Scope()
		for _, name := range scope.Names() {
			fn, ok := scope.Lookup(name).(*types.Func)
			if !ok || fn.Signature().Params().Len() == 0 {
				continue
			}
			of := fn.Signature().Params().At(0).Type()
			if ptr, ok := of.(*types.Pointer); ok {
				of = ptr.Elem()
			}
			if named, ok := of.(*types.Named); ok {
				first[named.Obj()]++
			}
		}
		for _, name := range scope.Names() {
			obj, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || obj.IsAlias() || types.IsInterface(obj.Type()) {
				continue
			}
			n := types.NewMethodSet(types.NewPointer(obj.Type())).Len() + first[obj]
			if n > maxReach {
				t.Errorf("%s.%s: %d methods and functions that take it first, %d at most; what are its parts?", p.relative, name, n, maxReach)
			}
		}
	}
}
