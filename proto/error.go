package proto

import (
	"errors"
	"fmt"
	"strings"
)

// Error says why a message was refused, in the terms of an Ack or a Reply.
type Error struct {
	Code   Code
	Field  string // path by documented names, such as rings[0].left[2].peer; empty: the message as a whole
	Limit  string // what would have been accepted, where that can be said in a few words
	Reason string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Code.Words())
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Limit != "" {
		b.WriteString(" (limit: " + e.Limit + ")")
	}
	return b.String()
}

// Is makes errors.Is(err, &Error{Code: Stale}) ask for the code alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Field == "" && t.Limit == "" && t.Reason == ""
}

// AsError returns err as an *Error: itself when it is one, else Malformed with
// its text. It is nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Malformed, Reason: Clip(err.Error())}
}

// Refuse fills the answer's code and its explanation.
func (a *Ack) Refuse(err error) {
	if e := AsError(err); e != nil {
		a.Code, a.Field, a.Limit, a.Reason = e.Code, Clip(e.Field), Clip(e.Limit), Clip(e.Reason)
	}
}

// Words is why it refuses, as a sentence.
func (a *Ack) Words() string {
	return Clip((&Error{Code: a.Code, Field: a.Field, Limit: a.Limit, Reason: a.Reason}).Error())
}

// Refuse fills the answer's code and its explanation.
func (r *OpReply) Refuse(err error) {
	if e := AsError(err); e != nil {
		r.Code, r.Field, r.Limit, r.Reason = e.Code, Clip(e.Field), Clip(e.Limit), Clip(e.Reason)
	}
}

// Wrong refuses a field by what is wrong in it.
func Wrong(field, limit, format string, args ...any) *Error {
	return &Error{Code: Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
}
