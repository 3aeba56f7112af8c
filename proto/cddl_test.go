package proto

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// cddl is a schema in the part of RFC 8610 that schema.cddl uses. It shares
// nothing with the shapes that the decoder goes by.
type cddl struct {
	tokens []string
	rules  map[string]*cddlType
}

type cddlType struct {
	kind    string // alt, enum, range, size, ref, array, map
	name    string
	of      []*cddlType
	low     int64
	top     uint64
	entries []cddlEntry
}

type cddlEntry struct {
	low, top int // occurrences, top -1: any number
	key      *cddlType
	literal  uint64
	value    *cddlType
}

var (
	cddlComment = regexp.MustCompile(`;.*`)
	cddlToken   = regexp.MustCompile(`\.\.|\.size|=>|&\(|-?\d+|[A-Za-z][\w-]*|[=/:,?*\[\]{}()]`)
)

func readCDDL(t *testing.T) *cddl {
	t.Helper()
	text, err := os.ReadFile("schema.cddl")
	if err != nil {
		t.Fatal(err)
	}
	bare := cddlComment.ReplaceAllString(string(text), "")
	if rest := strings.TrimSpace(cddlToken.ReplaceAllString(bare, "")); rest != "" {
		t.Fatalf("schema.cddl: cannot read %q", rest)
	}
	s := &cddl{tokens: cddlToken.FindAllString(bare, -1), rules: map[string]*cddlType{}}
	for len(s.tokens) > 0 {
		name := s.next()
		s.eat("=")
		s.rules[name] = s.choice()
	}
	return s
}

func (s *cddl) peek(n int) string {
	if n < len(s.tokens) {
		return s.tokens[n]
	}
	return ""
}

func (s *cddl) next() string {
	x := s.peek(0)
	s.tokens = s.tokens[1:]
	return x
}

func (s *cddl) eat(want string) {
	if got := s.next(); got != want {
		panic("schema.cddl: want " + want + ", got " + got)
	}
}

func (s *cddl) maybe(want string) bool {
	found := s.peek(0) == want
	if found {
		s.next()
	}
	return found
}

func (s *cddl) low() int64 {
	n, err := strconv.ParseInt(s.next(), 10, 64)
	if err != nil {
		panic("schema.cddl: " + err.Error())
	}
	return n
}

func (s *cddl) top() uint64 {
	n, err := strconv.ParseUint(s.next(), 10, 64)
	if err != nil {
		panic("schema.cddl: " + err.Error())
	}
	return n
}

func (s *cddl) choice() *cddlType {
	all := []*cddlType{s.sized()}
	for s.maybe("/") {
		all = append(all, s.sized())
	}
	return &cddlType{kind: "alt", of: all}
}

func (s *cddl) sized() *cddlType {
	a := s.atom()
	if !s.maybe(".size") {
		return a
	}
	size := &cddlType{kind: "size", of: []*cddlType{a}}
	if s.maybe("(") {
		size.low = s.low()
		s.eat("..")
		size.top = s.top()
		s.eat(")")
	} else {
		size.top = s.top()
		size.low = int64(size.top)
	}
	return size
}

func (s *cddl) atom() *cddlType {
	switch x := s.peek(0); {
	case s.maybe("&("):
		e := &cddlType{kind: "enum"}
		for !s.maybe(")") {
			s.next()
			s.eat(":")
			n := s.top()
			e.of = append(e.of, &cddlType{kind: "range", low: int64(n), top: n})
			s.maybe(",")
		}
		return e
	case s.maybe("["):
		return &cddlType{kind: "array", entries: s.group("]")}
	case s.maybe("{"):
		return &cddlType{kind: "map", entries: s.group("}")}
	case x[0] == '-' || x[0] >= '0' && x[0] <= '9':
		r := &cddlType{kind: "range", low: s.low()}
		if r.top = uint64(r.low); s.maybe("..") {
			r.top = s.top()
		}
		return r
	}
	return &cddlType{kind: "ref", name: s.next()}
}

func (s *cddl) group(end string) (list []cddlEntry) {
	for !s.maybe(end) {
		e := cddlEntry{low: 1, top: 1}
		switch {
		case s.maybe("?"):
			e.low = 0
		case s.maybe("*"):
			e.low, e.top = 0, -1
		case s.peek(1) == "*":
			e.low = int(s.low())
			s.next()
			e.top = int(s.top())
		}
		if s.peek(1) == ":" {
			e.literal, _ = strconv.ParseUint(s.next(), 10, 64) // of a record it is a name
			s.next()
			e.value = s.choice()
		} else if e.value = s.choice(); s.maybe("=>") {
			e.key, e.value = e.value, s.choice()
		}
		list = append(list, e)
		s.maybe(",")
	}
	return list
}

// holds tells whether a value is of a type.
func (s *cddl) holds(t *cddlType, v any) bool {
	switch t.kind {
	case "alt", "enum":
		for _, a := range t.of {
			if s.holds(a, v) {
				return true
			}
		}
		return false
	case "range":
		switch n := v.(type) {
		case uint64:
			return n <= t.top && (t.low < 0 || n >= uint64(t.low))
		case int64:
			return n >= t.low // no range here ends below 0
		}
		return false
	case "size":
		if n, ok := v.(uint64); ok && t.of[0].name == "uint" {
			return t.top >= 8 || n < 1<<(8*t.top)
		}
		n := -1
		switch x := v.(type) {
		case string:
			n = len(x)
		case []byte:
			n = len(x)
		}
		return n >= int(t.low) && n <= int(t.top) && s.holds(t.of[0], v)
	case "array":
		return s.holdsArray(t, v)
	case "map":
		return s.holdsMap(t, v)
	}
	if rule := s.rules[t.name]; rule != nil {
		return s.holds(rule, v)
	}
	return isPrimitive(t.name, v)
}

func isPrimitive(name string, v any) bool {
	found := ""
	switch v.(type) {
	case uint64:
		found = "uint"
	case int64:
		found = "nint"
	case string:
		found = "tstr"
	case []byte:
		found = "bstr"
	case bool:
		found = "bool"
	case float64:
		found = "float"
	case nil: // the library's undefined too
		found = "null"
	}
	return found == name
}

func (s *cddl) holdsArray(t *cddlType, v any) bool {
	list, ok := v.([]any)
	if !ok {
		return false
	}
	if e := t.entries[0]; len(t.entries) == 1 {
		ok = len(list) >= e.low && len(list) <= e.top
		for _, x := range list {
			ok = ok && s.holds(e.value, x)
		}
		return ok
	}
	ok = len(list) == len(t.entries)
	for i := 0; ok && i < len(list); i++ {
		ok = s.holds(t.entries[i].value, list[i])
	}
	return ok
}

func (s *cddl) holdsMap(t *cddlType, v any) bool {
	pairs, ok := v.(map[any]any)
	if !ok {
		return false
	}
	known := map[any]bool{}
	for _, e := range t.entries {
		if e.key != nil {
			n := 0
			for k, x := range pairs { // any order: all have to hold
				if known[k] {
					continue
				}
				if !s.holds(e.key, k) || !s.holds(e.value, x) {
					return false
				}
				n++
			}
			return e.top < 0 || n <= e.top
		}
		x, there := pairs[e.literal]
		if known[e.literal] = true; there && !s.holds(e.value, x) || !there && e.low > 0 {
			return false
		}
	}
	return len(pairs) == len(known)
}

// Goal: who checks himself against the vectors by the schema alone finds no
// difference but the rules between fields.
// Method: what is accepted is of its rule; what is refused for its form is no
// deterministic CBOR or not of its rule.
func TestVectorsAgreeWithTheSchema(t *testing.T) {
	schema := readCDDL(t)
	form, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxArrayElements: MaxMembers, MaxMapPairs: MaxPairs, MaxNestedLevels: MaxNesting}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	list := twins(t)
	for _, g := range goldens() {
		list = append(list, vector{message: reflect.TypeOf(g.msg).Name(), name: g.name, payload: mustEncode(t, g.msg)})
	}
	counts := map[Code]int{}
	for _, v := range list {
		var value any
		ok := len(v.payload) <= MaxPayload && form.Unmarshal(v.payload, &value) == nil
		if ok {
			again, err := encMode.(cbor.EncMode).Marshal(value)
			ok = err == nil && string(again) == string(v.payload) && schema.holds(&cddlType{kind: "ref", name: strings.ReplaceAll(documentedName(v.message), "_", "-")}, value)
		}
		counts[v.code]++
		if v.code != Invalid && ok != (v.code == OK) {
			t.Errorf("%s %s: the schema says %t, a reader %s", v.message, v.name, ok, v.code)
		}
	}
	if counts[OK] < 30 || counts[Malformed] < 30 {
		t.Errorf("only %v compared", counts)
	}
}
