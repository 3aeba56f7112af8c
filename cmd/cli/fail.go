package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"ringlight/proto"
)

// Exit codes.
const (
	Done     = 0
	Failed   = 1 // attempted and failed, or no solution exists
	BadInput = 2 // command line or input not acceptable, nothing attempted
)

// UsageError is a command line or an input that is not acceptable.
type UsageError struct {
	Code, Field, Limit, Message string
	cause                       error
}

func (e *UsageError) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Limit != "" {
		s += ": want " + e.Limit
	}
	return s
}

func (e *UsageError) Unwrap() error { return e.cause }

// Usage makes a UsageError: what is wrong in which field, and what would do.
func Usage(field, limit, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &UsageError{"invalid", field, limit, err.Error(), errors.Unwrap(err)}
}

// AsUsage makes an error one of the command line or the input, as it is.
func AsUsage(err error) error {
	if err == nil || errors.As(err, new(*UsageError)) || errors.Is(err, flag.ErrHelp) {
		return err
	}
	return &UsageError{Code: "invalid", Message: err.Error(), cause: err}
}

// NoSolution is an answer that says there is none: exit 1, and the answer on
// stdout instead of an error.
type NoSolution struct {
	Why   string
	cause error
}

func (e *NoSolution) Error() string { return e.Why }
func (e *NoSolution) Unwrap() error { return e.cause }

// Answered is a failure, if it is one, of which the answer on stdout has told
// already.
func Answered(err error) error {
	if err == nil {
		return nil
	}
	return &NoSolution{err.Error(), err}
}

// ErrorJSON is the form that scripts rely on.
type ErrorJSON struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Limit   string `json:"limit"`
	Message string `json:"message"`
}

// fail tells how a command ended and gives the exit code. What has no such
// number, name or value was never attempted, whoever found out.
func (p *Program) fail(err error, asJSON bool, t Terminal) int {
	if err == nil {
		return Done
	}
	code := Failed
	e := ErrorJSON{Code: "failed", Message: err.Error()}
	var use *UsageError
	var wire *proto.Error
	switch {
	case errors.As(err, &use) && use.Field+use.Limit != "":
		code, e.Code, e.Field, e.Limit = BadInput, use.Code, use.Field, use.Limit
	case errors.As(err, &wire):
		e.Code, e.Field, e.Limit, e.Message = wire.Code.String(), wire.Field, wire.Limit, err.Error()
		if use != nil || wire.Code == proto.NotFound || wire.Code == proto.Invalid || wire.Code == proto.TooLarge {
			code = BadInput
		}
	case use != nil:
		code, e.Code = BadInput, use.Code
	}
	var refused interface{ Refused() (field, limit string) } // an input, of a package that is not known here
	if errors.As(err, &refused) {
		code, e.Code = BadInput, "invalid"
		e.Field, e.Limit = refused.Refused()
	}
	answered := errors.As(err, new(*NoSolution))
	if both := asJSON && !answered && ScreenOf(t.Out).Terminal; !both { // a person reads it once
		if s := ScreenOf(t.Err); s.Terminal {
			_ = Say(t.Err, "%s: %v", p.Name, err)
		} else {
			fmt.Fprintln(t.Err, p.Name+":", err) // whoever looks for it finds it in one line
		}
	}
	if asJSON && !answered {
		_ = PrintJSON(t.Out, map[string]ErrorJSON{"error": e})
	}
	return code
}

func asksJSON(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.Contains([]string{"-json", "--json", "-json=true", "--json=true"}, a)
	})
}

// PrintJSON writes one object on one line.
func PrintJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Either is the one of two words that is meant.
func Either(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// Clip keeps what a stranger wrote readable.
func Clip(s string) string {
	if len(s) > 40 {
		s = s[:40]
	}
	return strings.ToValidUTF8(s, "?")
}
