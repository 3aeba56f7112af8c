package proto

import (
	"fmt"
	"reflect"
)

// Plain is a message, or a part of one, in values that encoding/json writes:
// objects with the names of schema.cddl, codes as words, digests in hex, and
// null for a power that was never measured.
func Plain(v any) any { return plain(reflect.ValueOf(v)) }

func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	}
	if p, ok := v.Interface().(MilliDBm); ok {
		if p == NoPower {
			return nil
		}
		return int32(p)
	}
	if s, ok := v.Interface().(fmt.Stringer); ok && v.Kind() != reflect.Struct {
		return s.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name != "_" {
				out[documentedName(f.Name)] = plain(v.Field(i))
			}
		}
		return out
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	}
	return v.Interface()
}
