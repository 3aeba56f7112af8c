package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Limits of a trace file; chosen: a hundred times the public trace, so that a
// wrong file is refused before it fills the memory.
const (
	MaxRecords = 120_000
	maxText    = 256 // bytes of an id or a description
)

// Day is the unit of time of the public trace.
const Day = 24 * time.Hour

// dayDigits is the precision of a time in the file: a ten thousandth of a day
// is 8.64 s, and nine digits are still exact in nanoseconds.
const dayDigits = 9

// Fault says what broke, in the words of the public trace.
type Fault struct {
	Level string // "Hardware Failure", "Software Failure", "Other Failure"
	Class string // "GPU", "NIC", ...
	Desc  string
}

// Record is one line of a trace: a fault of a server starts or ends.
type Record struct {
	At     time.Duration
	Server string
	Start  bool
	Fault  Fault
}

// Reader takes the records of a trace one by one from a JSON array and checks
// each: every field there and no other, times that never go back, and an end
// only for a fault that has started.
type Reader struct {
	dec  *json.Decoder
	n    int
	last time.Duration
	open map[openFault]int
	done bool
	err  error
}

type openFault struct {
	server string
	fault  Fault
}

// NewReader reads a trace from r.
func NewReader(r io.Reader) *Reader {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return &Reader{dec: dec, open: map[openFault]int{}}
}

// Next returns the next record, or io.EOF after the last. An error stays.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	rec, err := r.next()
	if err != nil {
		if !errors.Is(err, io.EOF) || !r.done {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			err = fmt.Errorf("trace: record %d: %w", r.n, err)
		}
		r.err = err
		return Record{}, err
	}
	r.n++
	return rec, nil
}

func (r *Reader) next() (Record, error) {
	if r.n == 0 {
		if err := r.delim('['); err != nil {
			return Record{}, err
		}
	}
	if !r.dec.More() {
		if err := r.delim(']'); err != nil {
			return Record{}, err
		}
		if _, err := r.dec.Token(); err != io.EOF {
			return Record{}, errors.New("something follows the closing bracket")
		}
		r.done = true
		return Record{}, io.EOF
	}
	if r.n >= MaxRecords {
		return Record{}, fmt.Errorf("more than %d records", MaxRecords)
	}
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		return Record{}, err
	}
	rec, err := parse(raw)
	if err != nil {
		return Record{}, err
	}
	if rec.At < r.last {
		return Record{}, fmt.Errorf("event_time %v is before that of the record before, %v", rec.At, r.last)
	}
	r.last = rec.At
	key := openFault{rec.Server, rec.Fault}
	switch {
	case rec.Start:
		r.open[key]++
	case r.open[key] == 0:
		return Record{}, fmt.Errorf("fault_end of %q on server %q, which has no such fault", rec.Fault.Desc, rec.Server)
	case r.open[key] == 1:
		delete(r.open, key)
	default:
		r.open[key]--
	}
	return rec, nil
}

func (r *Reader) delim(want json.Delim) error {
	tok, err := r.dec.Token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("got %v, want %v: a trace is a JSON array of records", tok, want)
	}
	return nil
}

type wireRecord struct {
	Node  *string      `json:"node_id"`
	Time  *json.Number `json:"event_time"`
	Type  *string      `json:"event_type"`
	Fault *struct {
		Level *string
		Class *string
		Desc  *string
	} `json:"fault_type"`
}

func parse(raw []byte) (Record, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	var w wireRecord
	if err := dec.Decode(&w); err != nil {
		return Record{}, err
	}
	if w.Fault == nil {
		return Record{}, errors.New("fault_type: missing")
	}
	if w.Time == nil {
		return Record{}, errors.New("event_time: missing")
	}
	for _, f := range []struct {
		name string
		text *string
	}{{"node_id", w.Node}, {"event_type", w.Type}, {"fault_type.Level", w.Fault.Level},
		{"fault_type.Class", w.Fault.Class}, {"fault_type.Desc", w.Fault.Desc}} {
		if f.text == nil || *f.text == "" {
			return Record{}, fmt.Errorf("%s: missing", f.name)
		}
		if len(*f.text) > maxText {
			return Record{}, fmt.Errorf("%s: %d bytes, at most %d", f.name, len(*f.text), maxText)
		}
	}
	at, err := parseDays(w.Time.String())
	if err != nil {
		return Record{}, fmt.Errorf("event_time: %w", err)
	}
	rec := Record{At: at, Server: *w.Node, Fault: Fault{*w.Fault.Level, *w.Fault.Class, *w.Fault.Desc}}
	switch *w.Type {
	case "fault_start":
		rec.Start = true
	case "fault_end":
	default:
		return Record{}, fmt.Errorf("event_type %q: want fault_start or fault_end", *w.Type)
	}
	return rec, nil
}

// maxDays keeps a time far from the end of a Duration; chosen: ten years.
const maxDays = 3660

// parseDays turns a decimal number of days into a duration without going
// through a float, so that equal texts are equal times.
func parseDays(s string) (time.Duration, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if len(frac) > dayDigits {
		return 0, fmt.Errorf("%q: more than %d decimals", s, dayDigits)
	}
	days, err := digits(whole)
	if err != nil {
		return 0, fmt.Errorf("%q: want a plain decimal number of days, not negative", s)
	}
	if days >= maxDays {
		return 0, fmt.Errorf("%q: %d days or more", s, maxDays)
	}
	part, err := digits(frac + strings.Repeat("0", dayDigits-len(frac)))
	if err != nil {
		return 0, fmt.Errorf("%q: want a plain decimal number of days", s)
	}
	// A nano-day is 86.4 us: 86,400 ns.
	return time.Duration(days)*Day + time.Duration(part)*(Day/1_000_000_000), nil
}

func digits(s string) (int64, error) {
	if s == "" || len(s) > dayDigits {
		return 0, errors.New("not a number")
	}
	var n int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, errors.New("not a number")
		}
		n = 10*n + int64(c-'0')
	}
	return n, nil
}
