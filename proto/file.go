package proto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"
)

// DecodeFile reads a file that a person has written: one JSON document of the
// keys that v knows, and nothing behind it. What does not fit is a FileError;
// a type that reads lists or objects itself takes the beginnings of good ones.
func DecodeFile(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		if _, err := dec.Token(); err != io.EOF {
			return atLine(data, dec.InputOffset(), errors.New("data follows the end of the JSON"))
		}
		return repeated(data)
	case err == io.EOF:
		return errors.New("it is empty")
	case err == io.ErrUnexpectedEOF:
		return atLine(data, int64(len(data)), errors.New("JSON ends unexpectedly"))
	case errors.As(err, &syntax):
		return atLine(data, syntax.Offset-1, fmt.Errorf("want JSON: %w", err))
	}
	return misfit(data, reflect.TypeOf(v).Elem(), err)
}

// repeated refuses a key that an object has twice: the decoder would take the last,
// and whoever wrote the first would never know.
func repeated(data []byte) error {
	for w := newWalk(data); w.step(); {
		if w.twice {
			return &FileError{Field: w.path(), Wrong: "the key is there twice", Line: lineAt(data, w.dec.InputOffset())}
		}
	}
	return nil
}

func atLine(data []byte, offset int64, err error) error {
	return fmt.Errorf("%w, line %d", err, lineAt(data, offset))
}

func lineAt(data []byte, offset int64) int {
	offset = min(max(offset, 0), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// FileError is a value or a key that does not fit.
type FileError struct {
	Field string // such as board.leads[2].ohm; "": the document itself
	Want  string // the kind of value in words; "" where Wrong says all
	Wrong string // what is there instead, or what is wrong
	Line  int
}

func (e *FileError) Error() string {
	text := e.Wrong
	if e.Want != "" {
		text = "want " + e.Want + ", got " + text
	}
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	return fmt.Sprintf("%s, line %d", text, e.Line)
}

// misfit says where a document that is JSON does not fit the type. The decoder
// itself knows neither the index in a list nor, of an unknown key or a value
// that reads itself, any place: so the shortest beginning of the document that
// does not fit either is looked for, and its last token is the place.
func misfit(data []byte, of reflect.Type, err error) error {
	tried := func(w *walk) error {
		dec := json.NewDecoder(bytes.NewReader(w.closed(data)))
		dec.DisallowUnknownFields()
		return dec.Decode(reflect.New(of).Interface())
	}
	tokens := 0
	for w := newWalk(data); w.step(); tokens++ {
	}
	n := 1 + sort.Search(tokens, func(i int) bool { return tried(walked(data, i+1)) != nil })
	if n > tokens { // only the default values that v had do not fit
		return err
	}
	w := walked(data, n)
	if first := tried(w); first != nil {
		err = first
	}
	e := &FileError{Wrong: err.Error()}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		e.Want, e.Wrong = wanted(kind), w.got()
	} else if name, unknown := strings.CutPrefix(e.Wrong, "json: unknown field "); unknown {
		e.Wrong = "there is no key " + name
		w.open[len(w.open)-1].key = ""
	}
	e.Field, e.Line = w.path(), lineAt(data, w.dec.InputOffset())
	return e
}

// wanted is the kind of value that fits, in words.
func wanted(e *json.UnmarshalTypeError) string {
	t := e.Type
	switch k := t.Kind(); {
	case t.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()):
		return "text"
	case t.ConvertibleTo(reflect.TypeFor[float64]()) && !strings.HasPrefix(e.Value, "number"):
		return "a number"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number within the range of floating point"
	case k >= reflect.Int && k <= reflect.Int64:
		return fmt.Sprintf("a whole number from %d to %d", int64(-1)<<(t.Bits()-1), int64(1)<<(t.Bits()-1)-1)
	case k >= reflect.Uint && k <= reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	case k == reflect.String:
		return "text"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.Slice || k == reflect.Array:
		return "a list"
	}
	return "an object"
}

// level is an object or a list that is open.
type level struct {
	list  bool
	key   string
	value bool // of an object: a value comes next, not a key
	index int
}

// fewKeys are cleared rather than made anew. chosen.
const fewKeys = 64

// walk goes through a document token by token and knows where it is.
type walk struct {
	dec  *json.Decoder
	open []level
	last json.Token

	keys  []map[string]bool // of the object that is open at each depth
	twice bool              // the last token is a key that its object had
}

func newWalk(data []byte) *walk {
	w := &walk{dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	return w
}

func walked(data []byte, tokens int) *walk {
	w := newWalk(data)
	for range tokens {
		w.step()
	}
	return w
}

// step reads a token; false behind the document.
func (w *walk) step() bool {
	t, err := w.dec.Token()
	if err != nil {
		return false
	}
	w.last = t
	if t == json.Delim('}') || t == json.Delim(']') {
		w.open = w.open[:len(w.open)-1]
		return true
	}
	if n := len(w.open); n > 0 {
		switch top := &w.open[n-1]; {
		case top.list:
			top.index++
		case top.value:
			top.value = false
		default:
			top.key, top.value = t.(string), true
			w.twice = w.keys[n-1][top.key]
			w.keys[n-1][top.key] = true
		}
	}
	if t == json.Delim('{') || t == json.Delim('[') {
		w.open = append(w.open, level{list: t == json.Delim('['), index: -1})
		if n := len(w.open); n > len(w.keys) {
			w.keys = append(w.keys, map[string]bool{})
		} else if len(w.keys[n-1]) > fewKeys {
			w.keys[n-1] = map[string]bool{} // to clear a large one takes as long each time
		} else {
			clear(w.keys[n-1])
		}
	}
	return true
}

// closed is the document up to here, ended as soon as JSON allows.
func (w *walk) closed(data []byte) []byte {
	text := append([]byte(nil), data[:w.dec.InputOffset()]...)
	for i := len(w.open) - 1; i >= 0; i-- {
		switch l := w.open[i]; {
		case l.list:
			text = append(text, ']')
		case l.value && i == len(w.open)-1:
			text = append(text, ":null}"...)
		default:
			text = append(text, '}')
		}
	}
	return text
}

// path is the key of the last token, such as board.leads[2].ohm.
func (w *walk) path() string {
	open := w.open
	if _, opens := w.last.(json.Delim); opens && len(open) > 0 {
		open = open[:len(open)-1]
	}
	at := ""
	for _, l := range open {
		if l.list {
			at += fmt.Sprintf("[%d]", l.index)
		} else if l.key != "" {
			at += "." + l.key
		}
	}
	return strings.TrimPrefix(at, ".")
}

// maxGot bounds what an error repeats of a file. chosen: a name's length.
const maxGot = 40

// got is the last token as it stands in the file.
func (w *walk) got() string {
	switch t := w.last.(type) {
	case json.Delim:
		if t == '[' {
			return "a list"
		}
		return "an object"
	case string:
		if runes := []rune(t); len(runes) > maxGot {
			t = string(runes[:maxGot]) + "..."
		}
		return fmt.Sprintf("%q", t)
	}
	return fmt.Sprint(w.last)
}
