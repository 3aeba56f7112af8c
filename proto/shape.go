package proto

import (
	"math"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// A shape is what the wire may hold in one place, read off the struct tags
// once, so that limits, required keys and the names in errors cannot drift
// from the messages.
type shape struct {
	kind   shapeKind
	name   string  // of the message or record, for schema tests
	fields []field // of a map, by rising key; of a record, in order
	elem   *shape  // of an array
	max    uint64  // elements, bytes, or highest value
	min    int64   // lowest value
	wide   bool    // arrays of unknown keys may have MaxMembers elements
}

type shapeKind uint8

const (
	shapeMap shapeKind = iota
	shapeRecord
	shapeArray
	shapeUint
	shapeInt
	shapeBool
	shapeText
	shapeBytes
)

type field struct {
	key      uint64
	name     string // documented name
	required bool
	version  bool // must be Version
	shape    *shape
}

// shapes of the messages that may stand alone.
var shapes = func() map[reflect.Type]*shape {
	m := map[reflect.Type]*shape{}
	for _, v := range []any{Desired{}, Decision{}, Command{}, Ack{}, Event{}, Reported{},
		Presence{}, Health{}, PlannerState{}, OpRequest{}, OpReply{}, Trust{}, CertRequest{}, CertAnswer{}} {
		t := reflect.TypeOf(v)
		s := shapeOf(t, "")
		s.wide = t == reflect.TypeFor[OpReply]() || t == reflect.TypeFor[OpRequest]()
		m[t] = s
	}
	return m
}()

func shapeOf(t reflect.Type, maxTag string) *shape {
	limit := func(byDefault uint64) uint64 {
		if maxTag == "" {
			return byDefault
		}
		n, err := strconv.ParseUint(maxTag, 10, 64)
		if err != nil {
			panic("proto: max tag " + maxTag + " of " + t.String())
		}
		return n
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), maxTag)
	case reflect.Bool:
		return &shape{kind: shapeBool}
	case reflect.Uint64:
		if t == reflect.TypeFor[Session]() {
			return &shape{kind: shapeUint, max: math.MaxUint64}
		}
		return &shape{kind: shapeUint, max: limit(MaxCount)}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &shape{kind: shapeUint, max: limit(1<<t.Bits() - 1)}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		high := int64(1)<<(t.Bits()-1) - 1
		return &shape{kind: shapeInt, max: limit(uint64(high)), min: -high - 1}
	case reflect.String:
		return &shape{kind: shapeText, max: limit(MaxText)}
	case reflect.Array:
		return &shape{kind: shapeBytes, max: uint64(t.Len())}
	case reflect.Slice:
		return &shape{kind: shapeArray, elem: shapeOf(t.Elem(), ""), max: limit(MaxArray)}
	case reflect.Struct:
		return structShape(t)
	}
	panic("proto: no shape for " + t.String())
}

func structShape(t reflect.Type) *shape {
	s := &shape{name: t.Name()}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("cbor")
		if f.Name == "_" {
			if tag == ",toarray" {
				s.kind = shapeRecord
			}
			continue
		}
		out := field{name: documentedName(f.Name), shape: shapeOf(f.Type, f.Tag.Get("max")), required: true}
		if s.kind == shapeMap {
			parts := strings.Split(tag, ",")
			key, err := strconv.ParseUint(parts[0], 10, 64)
			if err != nil || !slices.Contains(parts, "keyasint") {
				panic("proto: " + t.Name() + "." + f.Name + " has no integer key")
			}
			out.key, out.required = key, !slices.Contains(parts, "omitempty")
			out.version = f.Name == "Version"
		}
		s.fields = append(s.fields, out)
	}
	if s.kind == shapeMap {
		sort.Slice(s.fields, func(i, j int) bool { return s.fields[i].key < s.fields[j].key })
		for i := 1; i < len(s.fields); i++ {
			if s.fields[i].key == s.fields[i-1].key {
				panic("proto: key used twice in " + t.Name())
			}
		}
	}
	return s
}

// documentedName turns a Go name into the schema's: TTLMillis, ttl_millis.
func documentedName(name string) string {
	if name == "GPUs" || name == "GPUsPerNode" {
		name = strings.Replace(name, "GPUs", "Gpus", 1)
	}
	upper := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	lower := func(i int) bool { return i >= 0 && i < len(name) && name[i] >= 'a' && name[i] <= 'z' }
	var b strings.Builder
	for i := range len(name) {
		if upper(i) && i > 0 && (!upper(i-1) || lower(i+1)) {
			b.WriteByte('_')
		}
		b.WriteByte(name[i])
	}
	return strings.ToLower(b.String())
}
