package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// usageError is a command line or an input that is not acceptable: exit 2.
type usageError struct {
	Code, Field, Limit, Message string
}

func (e *usageError) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Limit != "" {
		s += ": want " + e.Limit
	}
	return s
}

func wrongUsage(field, limit, format string, args ...any) error {
	return &usageError{"invalid", field, limit, fmt.Sprintf(format, args...)}
}

// errorJSON is the form that scripts rely on.
type errorJSON struct {
	Code    string `json:"code"`
	Field   string `json:"field"`
	Limit   string `json:"limit"`
	Message string `json:"message"`
}

// fail reports how a command ended and gives its exit code.
func fail(err error, args []string, out, errs io.Writer) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	code := 1
	e := errorJSON{Code: "failed", Message: err.Error()}
	var use *usageError
	var fab *fabric.Error
	var wire *proto.Error
	switch {
	case errors.As(err, &use):
		code = 2
		e = errorJSON{use.Code, use.Field, use.Limit, err.Error()}
	case errors.As(err, &fab):
		code = 2
		e = errorJSON{"invalid", fab.Field, fab.Limit, err.Error()}
	case errors.As(err, &wire):
		e = errorJSON{wire.Code.String(), wire.Field, wire.Limit, err.Error()}
	}
	fmt.Fprintln(errs, "ocsctl:", err)
	if answered := new(noSolution); errors.As(err, &answered) {
		return code
	}
	if slices.Contains(args, "-json") || slices.Contains(args, "--json") {
		printJSON(out, map[string]errorJSON{"error": e})
	}
	return code
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table writes rows of tab-separated cells in columns.
func table(out io.Writer, rows func(w io.Writer)) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	rows(w)
	return w.Flush()
}

// parse reads flags that may stand before, between and after the words of a
// command, and gives the words.
func parse(fs *flag.FlagSet, args []string) ([]string, error) {
	fs.SetOutput(io.Discard)
	var words []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, wrongUsage("", "", "%v", err)
		}
		if fs.NArg() == 0 {
			return words, nil
		}
		words = append(words, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// help prints what a command is for when -h was given.
func help(out io.Writer, fs *flag.FlagSet, err error, text string) error {
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, text+"\n")
		fs.SetOutput(out)
		fs.PrintDefaults()
	}
	return err
}
