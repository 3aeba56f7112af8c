package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Screen is what is written to.
type Screen struct {
	Terminal bool
	Width    int // columns; 0: lines of any length
	Colour   bool
}

// narrow is the width where nobody says another.
const narrow = 80

// ScreenOf looks at what is written to: a terminal has its own width if that is
// more than 80 columns, and colours unless NO_COLOR is set.
func ScreenOf(out io.Writer) Screen {
	switch w := out.(type) {
	case wide:
		s := ScreenOf(w.Writer)
		s.Width = 0
		return s
	case *paper:
		return ScreenOf(w.Writer)
	}
	s := Screen{Width: narrow}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > narrow {
		s.Width = n
	}
	f, ok := out.(*os.File)
	if !ok {
		return s
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return s
	}
	s.Terminal, s.Width = true, max(narrow, int(size.Col))
	s.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// wide is written to in lines of any length.
type wide struct{ io.Writer }

// paper is what a command prints on. It keeps the first error and takes nothing more,
// so that who prints need not look.
type paper struct {
	io.Writer
	err error
}

func (p *paper) Write(text []byte) (n int, err error) {
	if p.err == nil {
		n, p.err = p.Writer.Write(text)
	}
	return n, p.err
}

// IsTerminal reports whether a person looks at it.
func IsTerminal(out io.Writer) bool { return ScreenOf(out).Terminal }

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// colours of words that say how something is.
var colours = map[string]string{
	"in_service": green, "tuned": green, "service": green, "OK": green, "realised": green,
	"degraded": yellow, "forming": yellow, "Warning": yellow, "host_down": yellow, "drained": yellow, "waiting": yellow, "short": yellow, "no": yellow,
	"down": red, "Critical": red, "failed": red, "isolated": red, "dark": red, "no planner contact": red, "no planner": red,
}

// Paint colours a word that says how something is, where there are colours.
func (s Screen) Paint(word string) string {
	if c := colours[word]; s.Colour && c != "" {
		return c + word + plain
	}
	return word
}

// Table is rows of cells in columns. What does not fit the screen goes on in the
// next line, in the last column; the first Row may be its head.
type Table struct {
	Screen Screen
	// Keys are the first columns, which say what a row is of, where all others are
	// figures: those that do not fit stand below in a table of their own, behind
	// the keys again. 0: cells are wrapped.
	Keys int
	rows [][]string
}

// Row adds one. All have the same number of cells.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Print writes the rows.
func (t *Table) Print(out io.Writer) error {
	width := widths(t.rows)
	if len(width) == 0 {
		return nil
	}
	if t.Keys > 0 && t.Screen.Width > 0 && at(width, len(width))-2 > t.Screen.Width {
		return t.parts(out)
	}
	t.squeeze(width)
	var b strings.Builder
	for _, r := range t.rows {
		b.WriteString(t.lines(r, width))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// widths are those of the columns.
func widths(rows [][]string) (width []int) {
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	return width
}

// parts prints a table of figures in as many as it takes, words of the head below
// each other.
func (t *Table) parts(out io.Writer) error {
	width := widths(t.rows[1:])
	for i, c := range t.rows[0] {
		for _, word := range strings.Fields(c) {
			width[i] = max(width[i], utf8.RuneCountInString(word))
		}
		width[i] = min(width[i], t.Screen.Width/2)
	}
	keys := min(t.Keys, len(width))
	for keys > 1 && at(width, keys) > t.Screen.Width*3/4 {
		keys--
	}
	var b strings.Builder
	for from := keys; from < len(width); {
		if from > keys {
			b.WriteByte('\n')
		}
		to := from + 1
		for to < len(width) && at(width, keys)+at(width[from:], to-from)+width[to] <= t.Screen.Width {
			to++
		}
		part := slices.Concat(width[:keys], width[from:to])
		for _, r := range t.rows {
			b.WriteString(t.lines(slices.Concat(r[:keys], r[from:to]), part))
		}
		from = to
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// lines are a row: as many as its longest cell has in its column.
func (t *Table) lines(row []string, width []int) string {
	cells, high := make([][]string, len(row)), 1
	for i, c := range row {
		if t.Screen.Width > 0 {
			c = wrap(c, width[i], "")
		}
		cells[i] = strings.Split(c, "\n")
		high = max(high, len(cells[i]))
	}
	var b strings.Builder
	for n := range high {
		line, ends := "", 0
		for i := range cells {
			if n < len(cells[i]) && cells[i][n] != "" {
				line += strings.Repeat(" ", at(width, i)-ends) + t.Screen.Paint(cells[i][n])
				ends = at(width, i) + utf8.RuneCountInString(cells[i][n])
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// at is where a column begins.
func at(width []int, column int) (x int) {
	for _, w := range width[:column] {
		x += w + 2
	}
	return x
}

// squeeze narrows columns until the row fits: first the last one, as far as it
// stays readable, then the widest.
func (t *Table) squeeze(width []int) {
	const readable, least = 32, 16
	last := len(width) - 1
	if t.Screen.Width == 0 {
		return
	}
	for over := at(width, last) + width[last] - t.Screen.Width; over > 0; over-- {
		narrowed := last
		if width[last] <= readable {
			for i := range width {
				if width[i] > width[narrowed] {
					narrowed = i
				}
			}
		}
		if width[narrowed] <= least {
			return
		}
		width[narrowed]--
	}
}

// Folded is written to line by line; those that do not fit the screen go on behind
// an indent.
func Folded(out io.Writer, indent string) io.Writer {
	return folded{out, ScreenOf(out).Width, indent}
}

type folded struct {
	out    io.Writer
	width  int
	indent string
}

func (f folded) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		end := line[len(strings.TrimRight(line, "\n")):]
		if f.width > 0 {
			indent := f.indent
			if own := len(line) - len(strings.TrimLeft(line, " ")); own >= len(indent) && own < f.width/2 {
				indent = strings.Repeat(" ", own+2)
			}
			line = Wrap(strings.TrimSuffix(line, end), f.width-len(indent), indent) + end
		}
		if _, err := io.WriteString(f.out, line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// Say writes a line that goes on, indented, where it does not fit the screen.
func Say(out io.Writer, format string, args ...any) error {
	width := ScreenOf(out).Width
	if width > 0 {
		width -= 2
	}
	_, err := fmt.Fprintln(out, Wrap(fmt.Sprintf(format, args...), width, "  "))
	return err
}

// Wrap breaks text into lines of a width at most, beside the indent of the further
// ones. Words that are longer are broken.
func Wrap(text string, width int, indent string) string {
	if width <= 0 {
		return text
	}
	return wrap(text, max(width, 16), indent)
}

func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := 0
	for i, word := range strings.SplitAfter(text, " ") {
		bare := strings.TrimRight(word, " ")
		if n := utf8.RuneCountInString(bare); i > 0 && line+n > width && line > 0 {
			b.WriteString("\n" + indent)
			line = 0
		}
		for line == 0 && utf8.RuneCountInString(bare) > width {
			cut := cutAt(bare, width)
			b.WriteString(bare[:cut] + "\n" + indent)
			bare, word = bare[cut:], word[cut:]
		}
		b.WriteString(word)
		line += utf8.RuneCountInString(word)
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// cutAt is where a long word is broken: behind a comma where there is one.
func cutAt(word string, width int) int {
	end, runes := len(word), 0
	for i := range word {
		if runes == width {
			end = i
			break
		}
		runes++
	}
	if comma := strings.LastIndexByte(word[:end], ','); comma > 0 {
		return comma + 1
	}
	return end
}
