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

// Read takes a whole trace, a JSON array of records, and checks each: every field
// there and no other, times that never go back, and an end only for a fault that
// has started. Servers are numbered in order of appearance.
func Read(r io.Reader) (*Trace, error) {
	t := &Trace{}
	if err := t.read(json.NewDecoder(r)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("trace: record %d: %w", len(t.Events), err)
	}
	if len(t.Events) == 0 {
		return nil, errors.New("trace: no records")
	}
	return t, nil
}

func (t *Trace) read(dec *json.Decoder) error {
	number, open := map[string]int{}, map[Event]int{}
	if err := delim(dec, '['); err != nil {
		return err
	}
	for dec.More() {
		if len(t.Events) >= MaxRecords {
			return fmt.Errorf("more than %d records", MaxRecords)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		e, server, err := parse(raw)
		if err != nil {
			return err
		}
		if e.At < t.Span {
			return fmt.Errorf("event_time %v is before that of the record before, %v", e.At, t.Span)
		}
		n, known := number[server]
		if !known {
			n = len(number)
			number[server] = n
		}
		e.Server, t.Span = n, e.At
		switch of := (Event{Server: n, Fault: e.Fault}); {
		case e.Start:
			open[of]++
		case open[of] == 0:
			return fmt.Errorf("fault_end of %q on server %q, which has no such fault", e.Fault.Desc, server)
		default:
			open[of]--
		}
		t.Events = append(t.Events, e)
	}
	if err := delim(dec, ']'); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("something follows the closing bracket")
	}
	t.Servers = max(Servers, len(number))
	return nil
}

func delim(dec *json.Decoder, want json.Delim) error {
	tok, err := dec.Token()
	if err == nil && tok != want {
		err = fmt.Errorf("got %v, want %v: a trace is a JSON array of records", tok, want)
	}
	return err
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

func parse(raw []byte) (e Event, server string, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	var w wireRecord
	if err := dec.Decode(&w); err != nil {
		return e, "", err
	}
	if w.Fault == nil {
		return e, "", errors.New("fault_type: missing")
	}
	if w.Time == nil {
		return e, "", errors.New("event_time: missing")
	}
	for _, f := range []struct {
		name string
		text *string
	}{{"node_id", w.Node}, {"event_type", w.Type}, {"fault_type.Level", w.Fault.Level},
		{"fault_type.Class", w.Fault.Class}, {"fault_type.Desc", w.Fault.Desc}} {
		if f.text == nil || *f.text == "" {
			return e, "", fmt.Errorf("%s: missing", f.name)
		}
		if len(*f.text) > maxText {
			return e, "", fmt.Errorf("%s: %d bytes, at most %d", f.name, len(*f.text), maxText)
		}
	}
	if e.At, err = parseDays(w.Time.String()); err != nil {
		return e, "", fmt.Errorf("event_time: %w", err)
	}
	if e.Start = *w.Type == "fault_start"; !e.Start && *w.Type != "fault_end" {
		return e, "", fmt.Errorf("event_type %q: want fault_start or fault_end", *w.Type)
	}
	e.Fault = Fault{*w.Fault.Level, *w.Fault.Class, *w.Fault.Desc}
	return e, *w.Node, nil
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
