package proto

import (
	"reflect"
	"strings"
	"unicode"
)

// Printable takes out of all texts of what v points to whatever is no character on a
// screen: a reason may hold lines that look like somebody else's, or what moves and
// hides text in a terminal. A Part, which is a piece of a file, stays as it is.
func Printable(v any) { printable(reflect.ValueOf(v)) }

func printable(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			printable(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			printable(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			printable(v.Index(i))
		}
	case reflect.String:
		if s := v.String(); v.CanSet() && v.Type() != reflect.TypeFor[Part]() && strings.ContainsFunc(s, hidden) {
			v.SetString(strings.Map(func(r rune) rune {
				switch {
				case unicode.IsSpace(r):
					return ' '
				case hidden(r):
					return unicode.ReplacementChar
				}
				return r
			}, s))
		}
	}
}

// hidden: controls, new lines among them, and what turns the direction of a text.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
