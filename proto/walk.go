package proto

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// walker checks encoded bytes against a shape before anything is decoded: the
// library does not refuse null for a whole struct, missing keys, longer than
// shortest integers or unsorted keys, and stops at the first key it does not
// know instead of counting. It allocates only to report.
type walker struct {
	in      []byte
	pos     int
	unknown int
	maxArr  uint64 // elements of an array under an unknown key
	depth   int
	path    [MaxNesting + 1]step
	steps   int
}

type step struct {
	name  string
	index int
}

// CBOR major types, RFC 8949 sec 3.1.
const (
	majorUint = iota
	majorNegative
	majorBytes
	majorText
	majorArray
	majorMap
	majorTag
	majorSimple
)

var majorNames = [...]string{"unsigned integer", "negative integer", "byte string", "text", "array", "map", "tag", "simple value"}

const (
	simpleFalse = 20
	simpleTrue  = 21
	simpleNull  = 22
)

func (w *walker) where() string {
	var b strings.Builder
	for _, s := range w.path[:w.steps] {
		if s.name == "" {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(s.name)
	}
	return b.String()
}

func (w *walker) fail(code Code, limit, reason string) *Error {
	return &Error{Code: code, Field: w.where(), Limit: limit, Reason: reason + " at byte " + strconv.Itoa(w.pos)}
}

func (w *walker) malformed(reason string) *Error { return w.fail(Malformed, "", reason) }

// head reads the first bytes of an item; they must be the shortest form.
func (w *walker) head() (major byte, arg uint64, err *Error) {
	if w.pos >= len(w.in) {
		return 0, 0, w.malformed("truncated")
	}
	first := w.in[w.pos]
	major, info := first>>5, first&31
	switch {
	case info < 24:
		w.pos++
		return major, uint64(info), nil
	case info == 31:
		return 0, 0, w.malformed("indefinite length")
	case info > 27:
		return 0, 0, w.malformed("reserved length")
	}
	size := 1 << (info - 24)
	if len(w.in)-w.pos-1 < size {
		return 0, 0, w.malformed("truncated")
	}
	for _, b := range w.in[w.pos+1 : w.pos+1+size] {
		arg = arg<<8 | uint64(b)
	}
	shortest := [4]uint64{24, 1 << 8, 1 << 16, 1 << 32}[info-24]
	switch {
	case major == majorSimple && info == 24 && arg < 32:
		return 0, 0, w.malformed("reserved simple value")
	case major != majorSimple && arg < shortest:
		return 0, 0, w.malformed("not the shortest form of a number")
	}
	w.pos += 1 + size
	return major, arg, nil
}

func (w *walker) want(major byte) (uint64, *Error) {
	start := w.pos
	got, arg, err := w.head()
	if err != nil {
		return 0, err
	}
	if got != major {
		name := majorNames[got]
		if got == majorSimple && arg == simpleNull {
			name = "null"
		}
		w.pos = start
		return 0, w.malformed("want " + majorNames[major] + ", got " + name)
	}
	return arg, nil
}

func (w *walker) enter() *Error {
	if w.depth++; w.depth > MaxNesting {
		return w.fail(TooLarge, strconv.Itoa(MaxNesting)+" levels", "nested too deep")
	}
	return nil
}

func (w *walker) push(name string, index int) {
	w.path[w.steps] = step{name, index}
	w.steps++
}

func (w *walker) message(s *shape) *Error {
	if err := w.value(s); err != nil {
		return err
	}
	if w.pos != len(w.in) {
		return w.malformed("trailing bytes")
	}
	return nil
}

func (w *walker) value(s *shape) *Error {
	switch s.kind {
	case shapeMap:
		return w.mapOf(s)
	case shapeRecord:
		return w.record(s)
	case shapeArray:
		return w.array(s)
	case shapeUint:
		arg, err := w.want(majorUint)
		if err == nil && arg > s.max {
			err = w.fail(Malformed, "at most "+strconv.FormatUint(s.max, 10), strconv.FormatUint(arg, 10))
		}
		return err
	case shapeInt:
		return w.signed(s)
	case shapeBool:
		start := w.pos
		major, arg, err := w.head()
		if err == nil && (major != majorSimple || w.pos != start+1 || arg != simpleTrue && arg != simpleFalse) {
			w.pos = start
			err = w.malformed("want true or false")
		}
		return err
	case shapeText:
		return w.text(s.max)
	}
	return w.fixedBytes(s.max)
}

func (w *walker) signed(s *shape) *Error {
	start := w.pos
	major, arg, err := w.head()
	if err != nil {
		return err
	}
	switch {
	case major == majorUint && arg <= s.max:
	case major == majorNegative && arg <= uint64(-1-s.min):
	case major == majorUint || major == majorNegative:
		return w.fail(Malformed, strconv.FormatInt(s.min, 10)+" to "+strconv.FormatUint(s.max, 10), "out of range")
	default:
		w.pos = start
		_, err = w.want(majorUint)
	}
	return err
}

func (w *walker) text(limit uint64) *Error {
	n, err := w.want(majorText)
	switch {
	case err != nil:
		return err
	case n > limit:
		return w.fail(TooLarge, strconv.FormatUint(limit, 10)+" bytes", strconv.FormatUint(n, 10)+" bytes of text")
	case n > uint64(len(w.in)-w.pos):
		return w.malformed("truncated")
	case !utf8.Valid(w.in[w.pos : w.pos+int(n)]):
		return w.malformed("text is not UTF-8")
	}
	w.pos += int(n)
	return nil
}

func (w *walker) fixedBytes(want uint64) *Error {
	n, err := w.want(majorBytes)
	switch {
	case err != nil:
		return err
	case n != want:
		return w.fail(Malformed, strconv.FormatUint(want, 10)+" bytes", strconv.FormatUint(n, 10)+" bytes")
	case n > uint64(len(w.in)-w.pos):
		return w.malformed("truncated")
	}
	w.pos += int(n)
	return nil
}

func (w *walker) array(s *shape) *Error {
	n, err := w.want(majorArray)
	if err != nil {
		return err
	}
	if n > s.max {
		return w.fail(TooLarge, strconv.FormatUint(s.max, 10)+" elements", strconv.FormatUint(n, 10)+" elements")
	}
	if err := w.enter(); err != nil {
		return err
	}
	for i := range int(n) {
		w.push("", i)
		if err := w.value(s.elem); err != nil {
			return err
		}
		w.steps--
	}
	w.depth--
	return nil
}

func (w *walker) record(s *shape) *Error {
	n, err := w.want(majorArray)
	if err != nil {
		return err
	}
	if n != uint64(len(s.fields)) {
		return w.fail(Malformed, strconv.Itoa(len(s.fields))+" elements", strconv.FormatUint(n, 10)+" elements in "+s.name)
	}
	if err := w.enter(); err != nil {
		return err
	}
	for i := range s.fields {
		w.push(s.fields[i].name, 0)
		if err := w.value(s.fields[i].shape); err != nil {
			return err
		}
		w.steps--
	}
	w.depth--
	return nil
}

func (w *walker) mapOf(s *shape) *Error {
	pairs, err := w.want(majorMap)
	if err != nil {
		return err
	}
	if err := w.enter(); err != nil {
		return err
	}
	var last []byte
	next := 0 // fields before it are done
	for i := range pairs {
		start := w.pos
		key, err := w.want(majorUint)
		if err != nil {
			return err
		}
		if err := w.inOrder(last, w.in[start:w.pos]); err != nil {
			return err
		}
		if key > math.MaxInt64 { // the library reads keys as such
			return w.fail(TooLarge, strconv.FormatInt(math.MaxInt64, 10), "key "+strconv.FormatUint(key, 10))
		}
		last = w.in[start:w.pos]
		for next < len(s.fields) && s.fields[next].key < key {
			if err := w.absent(&s.fields[next]); err != nil {
				return err
			}
			next++
		}
		if next == len(s.fields) || s.fields[next].key != key {
			w.unknown++
			if err := w.skip(); err != nil {
				return err
			}
		} else {
			if err := w.known(&s.fields[next]); err != nil {
				return err
			}
			next++
		}
		if i == 0 && pairs > MaxPairs { // after the version: another major may have other limits
			return w.fail(TooLarge, strconv.Itoa(MaxPairs)+" pairs", strconv.FormatUint(pairs, 10)+" pairs")
		}
	}
	for ; next < len(s.fields); next++ {
		if err := w.absent(&s.fields[next]); err != nil {
			return err
		}
	}
	w.depth--
	return nil
}

func (w *walker) inOrder(last, key []byte) *Error {
	if last == nil {
		return nil
	}
	switch c := bytes.Compare(last, key); {
	case c == 0:
		return w.malformed("duplicate key")
	case c > 0:
		return w.malformed("keys are not in rising order")
	}
	return nil
}

func (w *walker) absent(f *field) *Error {
	if !f.required {
		return nil
	}
	w.push(f.name, 0)
	return w.fail(Malformed, "", "required key "+strconv.FormatUint(f.key, 10)+" is missing")
}

func (w *walker) known(f *field) *Error {
	w.push(f.name, 0)
	if f.version {
		v, err := w.want(majorUint)
		if err == nil && v != Version {
			err = w.fail(WrongVersion, strconv.Itoa(Version), "version "+strconv.FormatUint(v, 10))
		}
		if err != nil {
			return err
		}
	} else if err := w.value(f.shape); err != nil {
		return err
	}
	w.steps--
	return nil
}

// skip passes over a value under an unknown key. It must be well formed and
// canonical too, or two readers could see different messages.
func (w *walker) skip() *Error {
	start := w.pos
	major, arg, err := w.head()
	if err != nil {
		return err
	}
	switch major {
	case majorText:
		w.pos = start
		return w.text(MaxPayload)
	case majorBytes:
		if arg > uint64(len(w.in)-w.pos) {
			return w.malformed("truncated")
		}
		w.pos += int(arg)
	case majorArray, majorMap:
		return w.skipInside(major, arg)
	case majorTag:
		w.pos = start
		return w.malformed("tag")
	}
	return nil
}

func (w *walker) skipInside(major byte, n uint64) *Error {
	limit := w.maxArr
	if major == majorMap {
		limit = MaxPairs
	}
	if n > limit {
		return w.fail(TooLarge, strconv.FormatUint(limit, 10), strconv.FormatUint(n, 10)+" elements under an unknown key")
	}
	if err := w.enter(); err != nil {
		return err
	}
	var last []byte
	for range n {
		start := w.pos
		if err := w.skip(); err != nil {
			return err
		}
		if major == majorArray {
			continue
		}
		if err := w.inOrder(last, w.in[start:w.pos]); err != nil {
			return err
		}
		last = w.in[start:w.pos]
		if err := w.skip(); err != nil {
			return err
		}
	}
	w.depth--
	return nil
}
