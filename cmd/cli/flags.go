package cli

import (
	"cmp"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// helpText is asked for: what a command takes. It is no failure.
type helpText struct {
	Text    string // what the command is for, with examples
	flags   *flag.FlagSet
	command *Command // nil: not known
}

func (h *helpText) Error() string { return flag.ErrHelp.Error() }

// Is makes a helpText what package flag calls it.
func (h *helpText) Is(err error) bool { return err == flag.ErrHelp }

// Help is the text of a command, what it is for and examples, of a program's folder help.
func Help(texts embed.FS, name string) string {
	text, err := texts.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic("cli: invariant: every command has a help: " + err.Error())
	}
	return string(text)
}

// NewFlags makes a flag set for Parse.
func NewFlags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	return fs
}

// Parse reads flags that may stand before, between and after the words of a
// command, and gives the words. With -h it returns a helpText with the text.
func Parse(fs *flag.FlagSet, args []string, text string) (words []string, err error) {
	for {
		switch err := fs.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			return nil, &helpText{Text: text, flags: fs}
		case err != nil:
			return nil, badFlag(fs, err)
		case fs.NArg() == 0:
			return words, nil
		}
		words = append(words, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// Fill gives flags that were not typed what the environment says of them, RINGLIGHT_
// and the flag's name, - being _, else what is stored; neither: they stay.
func Fill(fs *flag.FlagSet, stored map[string]string) error {
	typed := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { typed[f.Name] = true })
	var errs []error
	for name, value := range stored { // any order: each flag by itself
		value = cmp.Or(os.Getenv("RINGLIGHT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))), value)
		if f := fs.Lookup(name); f != nil && !typed[name] && value != "" {
			errs = append(errs, f.Value.Set(value))
		}
	}
	return errors.Join(errs...)
}

// ParseNone reads flags where no word may stand.
func ParseNone(fs *flag.FlagSet, args []string, text string) (none []string, err error) {
	words, err := Parse(fs, args, text)
	if err == nil && len(words) > 0 {
		err = Usage(fs.Name(), "no further word", "%q", Clip(strings.Join(words, " ")))
	}
	return nil, err
}

// badFlag adds to a flag that is not known the one that is near.
func badFlag(fs *flag.FlagSet, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return Usage("", "", "%v", err)
	}
	known := map[string]*flag.Flag{}
	fs.VisitAll(func(f *flag.Flag) { known[f.Name] = f })
	return unknownFlag(name, known)
}

// text is the help in its printed form.
func (h *helpText) text(p *Program, width int) string {
	var b strings.Builder
	if h.command == nil { // which of them it was, its flag set says best
		for _, c := range p.all() {
			if c.Name == h.flags.Name() {
				h.command = &c
			}
		}
	}
	if h.command != nil {
		fmt.Fprintf(&b, "usage: %s\n", Wrap(p.Name+" "+h.command.synopsis(), width-9, "         "))
		if h.command.Short != "" {
			fmt.Fprintf(&b, "  %s\n", Wrap(h.command.Short, width-2, "  "))
		}
		b.WriteByte('\n')
	}
	b.WriteString(filled(h.Text, width))
	list := Table{Screen: Screen{Width: width}}
	h.flags.VisitAll(func(f *flag.Flag) {
		name, what := flagForm(f)
		list.Row("  "+name, what)
	})
	if len(list.rows) > 0 {
		b.WriteString("\nFlags:\n")
		_ = list.Print(&b) // a Builder takes all
	}
	return b.String()
}

// filled is text that fits a width: as it stands where it does, a paragraph with a
// line that does not filled anew. Indented lines and examples are lines of their own.
func filled(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	flush := func() {
		fits := func(line string) bool { return width <= 0 || utf8.RuneCountInString(line) <= width }
		if !slices.ContainsFunc(paragraph, func(l string) bool { return !fits(l) }) {
			b.WriteString(strings.Join(append(paragraph, ""), "\n"))
		} else {
			b.WriteString(Wrap(strings.Join(paragraph, " "), width, "") + "\n")
		}
		paragraph = nil
	}
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimSuffix(line, "\n")
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		example := strings.HasPrefix(line, "example:")
		if line != "" && indent == "" && !example {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		if utf8.RuneCountInString(line) > width {
			line = Wrap(line, max(0, width-len(indent)-4), indent+"    ")
		}
		b.WriteString(line + "\n")
	}
	flush()
	return b.String()
}

// flagForm is a flag with its value's name, and what it is for.
func flagForm(f *flag.Flag) (form, what string) {
	value, what := flag.UnquoteUsage(f)
	form = "-" + f.Name
	if value != "" {
		form += " " + value
	}
	if def := f.DefValue; def != "" && def != "false" && def != "0" && def != "0s" && !strings.Contains(what, "default") {
		what += " (default " + def + ")"
	}
	return form, what
}
