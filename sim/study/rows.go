package study

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

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

// tableOf writes rows by the tag table of their fields, whose columns are named
// as in JSON or by the tag column. "-" is no column, omitzero an empty cell for
// nothing. All fields are there in their order, or the named.
//
//	4   so many decimals
//	4m  the same, of thousandths: milliseconds as seconds
//	4%  the same, of a share of one in percent
func tableOf[R any](rows []R, names ...string) (t Table) {
	columns := columnsOf(reflect.TypeFor[R]())
	if len(names) > 0 {
		all := columns
		columns = nil
		for _, name := range names {
			columns = append(columns, *firstOf(all, func(c column) bool { return c.name == name }))
		}
	}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.name)
	}
	for _, row := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, c.text(reflect.ValueOf(row).FieldByIndex(c.field)))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
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
