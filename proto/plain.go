package proto

import (
	"fmt"
	"reflect"
	"strings"
)

// Plain is a message for people's scripts: keys as the schema has them, in the
// units that names of JSON have (_us, _ms, _mdbm), codes by name, what was never
// measured as nil.
func Plain(msg any) any { return plain(reflect.ValueOf(msg)) }

func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Name == "_" || f.Name == "Version" {
				continue
			}
			name := documentedName(f.Name)
			if base, is := strings.CutSuffix(name, "_micros"); is {
				name = base + "_us"
			} else if base, is := strings.CutSuffix(name, "_millis"); is {
				name = base + "_ms"
			} else if f.Type == reflect.TypeFor[MilliDBm]() {
				name += "_mdbm"
			}
			out[name] = plain(v.Field(i))
		}
		return out
	}
	switch x := v.Interface().(type) {
	case MilliDBm:
		if x == NoPower {
			return nil
		}
		return int32(x)
	case fmt.Stringer:
		if v.Kind() == reflect.Array && v.IsZero() {
			return "" // no digest
		}
		return x.String()
	}
	return v.Interface()
}
