package wiring

import "fmt"

// Error is an input that cannot be accepted, in the caller's terms.
type Error struct {
	Field  string // the part of the input, such as links[3] or old_even[0][7]
	Limit  string // what would have been right
	Reason string
}

func (e *Error) Error() string {
	s := e.Field + ": " + e.Reason
	if e.Limit != "" {
		s += ": want " + e.Limit
	}
	return s
}

func wrong(field, limit, format string, args ...any) error {
	return &Error{field, limit, fmt.Sprintf(format, args...)}
}
