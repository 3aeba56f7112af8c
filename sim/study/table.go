package study

import (
	"encoding/csv"
	"fmt"
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
