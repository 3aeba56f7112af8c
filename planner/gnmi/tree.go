package gnmi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	pb "github.com/openconfig/gnmi/proto/gnmi"
)

// entry is what changes together: an item of a list, or a container, with its leaves. It
// is never changed, but replaced.
type entry struct {
	kind   kinds
	device string // switch-3, "" of the fabric
	key    string // no other has it
	path   []*pb.PathElem
	leaves []leaf
	at     int64 // nanoseconds since 1970
}

type leaf struct {
	path  []*pb.PathElem // below the entry
	value any            // string, bool, int64 and uint64 of 32 bits, wide, decimal or list
}

// decimal is a decimal64 with so many digits behind its point.
type decimal struct {
	n      int64
	digits int
}

func (d decimal) String() string {
	sign, n := "", d.n
	if n < 0 {
		sign, n = "-", -n
	}
	unit := int64(1)
	for range d.digits {
		unit *= 10
	}
	return fmt.Sprintf("%s%d.%0*d", sign, n/unit, d.digits, n%unit)
}

// list is a leaf-list of numbers, with commas between: so it can be compared.
type list string

func listOf[T ~uint32](of []T) list {
	words := make([]string, len(of))
	for i, n := range of {
		words[i] = strconv.FormatUint(uint64(n), 10)
	}
	return list(strings.Join(words, ","))
}

func (l list) numbers() (out []uint64) {
	for word := range strings.SplitSeq(string(l), ",") {
		if n, err := strconv.ParseUint(word, 10, 64); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// elems are the elements of a path such as a/b[k=v]/c; each text is read once.
func elems(path string) []*pb.PathElem {
	if known, ok := readElems.Load(path); ok {
		return known.([]*pb.PathElem)
	}
	var out []*pb.PathElem
	for name := range strings.SplitSeq(path, "/") {
		out = append(out, &pb.PathElem{Name: name})
	}
	readElems.Store(path, out)
	return out
}

var readElems sync.Map // of the constants of this package

// item is an element with its key.
func item(name, key, value string) *pb.PathElem {
	return &pb.PathElem{Name: name, Key: map[string]string{key: value}}
}

// newEntry begins an entry at a path, the last element of which may have a key.
func newEntry(kind kinds, key string, at int64, path ...[]*pb.PathElem) *entry {
	return &entry{kind: kind, key: key, at: at, path: slices.Concat(path...)}
}

func (e *entry) set(path string, value any) *entry {
	e.leaves = append(e.leaves, leaf{elems(path), value})
	return e
}

// setIf sets what is not known otherwise.
func (e *entry) setIf(known bool, path string, value any) *entry {
	if known {
		e.set(path, value)
	}
	return e
}

func (e *entry) find(path []*pb.PathElem) (any, bool) {
	for i := range e.leaves {
		if samePath(e.leaves[i].path, path) {
			return e.leaves[i].value, true
		}
	}
	return nil, false
}

// samePath compares elements without keys.
func samePath(a, b []*pb.PathElem) bool {
	return slices.EqualFunc(a, b, func(x, y *pb.PathElem) bool {
		return x == y || x.GetName() == y.GetName() && maps.Equal(x.GetKey(), y.GetKey())
	})
}

// diff are the leaves of e that its forerunner had not or otherwise, and the paths that only
// that had.
func (e *entry) diff(was *entry) (set []leaf, gone [][]*pb.PathElem) {
	for _, l := range e.leaves {
		if v, ok := was.find(l.path); !ok || v != l.value {
			set = append(set, l)
		}
	}
	for _, l := range was.leaves {
		if _, ok := e.find(l.path); !ok {
			gone = append(gone, l.path)
		}
	}
	return set, gone
}

// covers says whether a path, which may have * and lack keys, covers another, or a part of
// it where that is shorter.
func covers(query, path []*pb.PathElem) bool {
	for i := range min(len(query), len(path)) {
		q, p := query[i], path[i]
		if q.GetName() != "*" && q.GetName() != p.GetName() {
			return false
		}
		for k, v := range q.GetKey() { // any order: all
			if v != "*" && v != p.GetKey()[k] {
				return false
			}
		}
	}
	return true
}

// wants says whether a path covers a leaf of an entry; covers(query, e.path) is known.
func wants(query []*pb.PathElem, e *entry, below []*pb.PathElem) bool {
	n := len(query) - len(e.path)
	return n <= 0 || n <= len(below) && covers(query[len(e.path):], below)
}

// typed is a value on its way.
func typed(v any, as pb.Encoding) *pb.TypedValue {
	if as == pb.Encoding_JSON || as == pb.Encoding_JSON_IETF {
		raw, _ := json.Marshal(plain(v, as)) // such values always encode
		return jsonValue(raw, as)
	}
	switch v := v.(type) {
	case string:
		return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: v}}
	case bool:
		return &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: v}}
	case int64:
		return &pb.TypedValue{Value: &pb.TypedValue_IntVal{IntVal: v}}
	case wide:
		return typed(uint64(v), as)
	case uint64:
		return &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: v}}
	case decimal:
		f, _ := strconv.ParseFloat(v.String(), 64)
		return &pb.TypedValue{Value: &pb.TypedValue_DoubleVal{DoubleVal: f}}
	case list:
		all := &pb.ScalarArray{}
		for _, n := range v.numbers() {
			all.Element = append(all.Element, typed(n, as))
		}
		return &pb.TypedValue{Value: &pb.TypedValue_LeaflistVal{LeaflistVal: all}}
	}
	panic(fmt.Sprintf("gnmi: a leaf of %T", v))
}

func jsonValue(raw []byte, as pb.Encoding) *pb.TypedValue {
	if as == pb.Encoding_JSON {
		return &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: raw}}
	}
	return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: raw}}
}

// wide are the leaves whose type has 64 bits: RFC 7951 writes them as strings.
type wide uint64

// plain is a value as JSON has it; of IETF as RFC 7951 does.
func plain(v any, as pb.Encoding) any {
	switch v := v.(type) {
	case decimal:
		if as == pb.Encoding_JSON_IETF {
			return v.String()
		}
		return json.Number(v.String())
	case wide:
		if as == pb.Encoding_JSON_IETF {
			return strconv.FormatUint(uint64(v), 10)
		}
		return uint64(v)
	case list:
		return append([]uint64{}, v.numbers()...)
	}
	return v
}

// document is the JSON of what a path without * and with all keys leads to, out of the
// entries that have it; nil: they have nothing of it.
func document(query []*pb.PathElem, found []*entry, keep func(*entry, leaf) bool, as pb.Encoding) any {
	var top any
	_, at, _ := find(query)
	for _, e := range found {
		for _, l := range e.leaves {
			if !keep(e, l) {
				continue
			}
			path := slices.Concat(e.path, l.path)[len(query):]
			if len(path) == 0 {
				return plain(l.value, as)
			}
			if top == nil {
				top = map[string]any{}
			}
			place(top.(map[string]any), at, path, plain(l.value, as), as)
		}
	}
	if in, ok := top.(map[string]any); ok && len(query) > 0 {
		for k, v := range query[len(query)-1].GetKey() { // any order: there is one
			if as == pb.Encoding_JSON_IETF {
				k = at.module + ":" + k
			}
			in[k] = v
		}
	}
	return top
}

// place puts a value into a document.
func place(in map[string]any, at *schema, path []*pb.PathElem, value any, as pb.Encoding) {
	for i, p := range path {
		name := p.GetName()
		at = at.child(name)
		if as == pb.Encoding_JSON_IETF && (i == 0 || at.augments) {
			name = at.module + ":" + name
		}
		if i == len(path)-1 {
			in[name] = value
			return
		}
		if len(p.GetKey()) == 0 {
			next, ok := in[name].(map[string]any)
			if !ok {
				next = map[string]any{}
				in[name] = next
			}
			in = next
			continue
		}
		list, _ := in[name].(*rows)
		if list == nil {
			list = &rows{by: map[string]map[string]any{}}
			in[name] = list
		}
		in = list.of(p.GetKey())
	}
}

// rows are the items of a list in a document, in the order in which they came.
type rows struct {
	all []map[string]any
	by  map[string]map[string]any
}

func (r *rows) of(key map[string]string) map[string]any {
	text := fmt.Sprint(key)
	if r.by[text] == nil {
		row := map[string]any{}
		for k, v := range key { // any order: there is one
			row[k] = v
		}
		r.by[text], r.all = row, append(r.all, row)
	}
	return r.by[text]
}

// MarshalJSON gives keys the type that their leaf has in the state.
func (r *rows) MarshalJSON() ([]byte, error) {
	for _, row := range r.all {
		if state, ok := row["state"].(map[string]any); ok {
			for k := range row {
				if v, ok := state[k]; ok {
					row[k] = v
				}
			}
		}
	}
	return json.Marshal(r.all)
}
