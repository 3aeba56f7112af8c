package main

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
)

// usageError is a command line or an input that is not acceptable: exit 2.
type usageError = cli.UsageError

func wrongUsage(field, limit, format string, args ...any) error {
	return cli.Usage(field, limit, format, args...)
}

func printJSON(out io.Writer, v any) error { return cli.PrintJSON(out, v) }

//go:embed help
var helpTexts embed.FS

func help(name string) string { return cli.Help(helpTexts, name) }

// listOf is a list as scripts want it: empty, not null.
func listOf[T any](list []T) []T { return append([]T{}, list...) }

// orDash is what is known, - where nothing is.
func orDash[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

// rows writes a table: its head, and a line for each of all.
func rows[T any](out io.Writer, head string, all []T, line func(T) string) {
	table(out, func(w io.Writer) {
		fmt.Fprintln(w, head)
		for _, x := range all {
			fmt.Fprintln(w, line(x))
		}
	})
}

// table writes rows of tab-separated cells in columns, as wide as out is.
func table(out io.Writer, rows func(w io.Writer)) {
	var text bytes.Buffer
	rows(&text)
	t := cli.Table{Screen: cli.ScreenOf(out)}
	for line := range strings.Lines(text.String()) {
		t.Row(strings.Split(strings.TrimSuffix(line, "\n"), "\t")...)
	}
	t.Print(out)
}
