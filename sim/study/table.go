package study

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Table is a result as rows of text, for a screen or a CSV file.
type Table struct {
	Columns []string
	Rows    [][]string
}

func (t *Table) add(cells ...any) {
	t.Rows = append(t.Rows, each(cells, func(c any) string { return fmt.Sprint(c) }))
}

// ratio prints a share of one with as many digits as a study can mean.
func ratio(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }

func decimals(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }

func percent(v float64, n int) string { return decimals(100*v, n) + " %" }

// CSV is the table as RFC 4180 text with a heading.
func (t Table) CSV() string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(t.Columns) //nolint: a strings.Builder does not fail
	w.WriteAll(t.Rows)
	return b.String()
}

// Keys are how many of the first columns tell all rows apart: what the rest is of.
func (t Table) Keys() int {
	for n := 1; n < len(t.Columns); n++ {
		seen := map[string]bool{}
		for _, r := range t.Rows {
			seen[strings.Join(r[:min(n, len(r))], "\x00")] = true
		}
		if len(seen) == len(t.Rows) {
			return n
		}
	}
	return 1
}

// Comparison is one figure of ours beside the paper's.
type Comparison struct {
	Figure string `json:"figure"`
	Ours   string `json:"ours"`
	Paper  string `json:"paper"`
	Why    string `json:"why"`
}

// Report is what every result carries beside its figures.
type Report struct {
	Title      string       `json:"-"`
	Notes      []string     `json:"notes"`      // assumptions
	Comparison []Comparison `json:"comparison"` // ours | paper | why they differ
}

// Remarks gives the report to whoever prints a result.
func (r *Report) Remarks() *Report { return r }

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

func (r *Report) compare(figure, ours, paper, why string) {
	r.Comparison = append(r.Comparison, Comparison{figure, ours, paper, why})
}

// Beside is the comparison as a table.
func (r *Report) Beside() Table {
	t := Table{Columns: []string{"figure", "ours", "paper", "why they differ"}}
	for _, c := range r.Comparison {
		t.add(c.Figure, c.Ours, c.Paper, c.Why)
	}
	return t
}

// Markdown is the table for a README.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(t.Columns)
	line(slices.Repeat([]string{"---"}, len(t.Columns)))
	for _, r := range t.Rows {
		line(r)
	}
	return b.String()
}

// rowsOf is the rows of a result. The type of a row says what there is to say
// of its figures: the tag json is their names, the tag table how a person reads
// them.
type rowsOf[R any] struct {
	Rows []R `json:"rows"`
}

// Table of the rows.
func (r *rowsOf[R]) Table() Table { return tableOf(r.Rows) }

// row is the first that is so; nil: there is none.
func (r *rowsOf[R]) row(is func(R) bool) *R { return firstOf(r.Rows, is) }

func firstOf[R any](rows []R, is func(R) bool) *R {
	if i := slices.IndexFunc(rows, is); i >= 0 {
		return &rows[i]
	}
	return nil
}

// each is what of says to every one of a list, in its order.
func each[S, T any](list []S, of func(S) T) (out []T) {
	out = slices.Grow(out, len(list)) // nil where there is none
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}

// sumOf adds up what of says to every one of a list.
func sumOf[S any, N ~int | ~int64](list []S, of func(S) N) (sum N) {
	for _, x := range list {
		sum += of(x)
	}
	return sum
}

// tableOf writes rows by the tag table of their fields, whose columns are named
// as in JSON or by the tag column. "-" is no column, omitzero an empty cell for
// nothing. All fields are there in their order, or the named.
//
//	4   so many decimals
//	4m  the same, of thousandths: milliseconds as seconds
//	4%  the same, of a share of one in percent
func tableOf[R any](rows []R, names ...string) Table {
	columns := columnsOf(reflect.TypeFor[R]())
	if len(names) > 0 {
		all := columns
		columns = each(names, func(name string) column { return *firstOf(all, func(c column) bool { return c.name == name }) })
	}
	return Table{
		Columns: each(columns, func(c column) string { return c.name }),
		Rows: each(rows, func(row R) []string {
			return each(columns, func(c column) string { return c.text(reflect.ValueOf(row).FieldByIndex(c.field)) })
		}),
	}
}

// column is a field of a row in its table.
type column struct {
	name, format string
	field        []int
	omitzero     bool
}

func columnsOf(row reflect.Type) (out []column) {
	for _, f := range reflect.VisibleFields(row) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = cmp.Or(f.Tag.Get("column"), name)
		format, omit, _ := strings.Cut(f.Tag.Get("table"), ",")
		if !f.Anonymous && name != "" && format != "-" {
			out = append(out, column{name, format, f.Index, omit == "omitzero"})
		}
	}
	return out
}

func (c column) text(v reflect.Value) string {
	if (c.omitzero || v.Kind() == reflect.Pointer) && v.IsZero() {
		return ""
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if c.format == "" {
		return fmt.Sprint(v)
	}
	figure := 0.0
	if v.CanInt() {
		figure = float64(v.Int())
	} else {
		figure = v.Float()
	}
	digits, err := strconv.Atoi(strings.TrimRight(c.format, "m%"))
	if err != nil {
		panic("study: invariant: the tag of column " + c.name + " says how many decimals")
	}
	switch {
	case strings.HasSuffix(c.format, "%"):
		return percent(figure, digits)
	case strings.HasSuffix(c.format, "m"):
		figure /= 1000
	}
	return decimals(figure, digits)
}
