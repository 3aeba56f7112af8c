package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Terminal is what a command may touch.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
}

// Command is a row of the table.
type Command struct {
	Name  string   // its words: plan ring
	Forms []string // what may follow, each a way to use it: list, show RING; none: nothing
	Short string   // one line
	Group string   // under which the overview lists it; "": under the one before
	// Run reads its own arguments. It gives its flags to Parse before anything
	// else, and returns what that returns.
	Run func(ctx context.Context, args []string, t Terminal) error
}

// Program is a command of the shell with all that it can do.
type Program struct {
	Name, Short string
	Version     string
	Commands    []Command
	Nouns       map[string]string // first words of several commands that the overview lists as one, and what they are about
	About       string            // what else its user has to know: environment, files
}

// Main runs what the shell asked for, until it is done or interrupted.
func (p *Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(p.Run(ctx, os.Args[1:], Terminal{os.Stdin, os.Stdout, os.Stderr}))
}

// Run runs one command line and gives the exit code.
func (p *Program) Run(ctx context.Context, args []string, t Terminal) int {
	if slices.Contains(args, "-wide") || slices.Contains(args, "--wide") {
		t.Out = wide{t.Out}
	}
	out := &paper{Writer: t.Out}
	err := p.dispatch(ctx, args, Terminal{t.In, out, t.Err})
	err = cmp.Or(err, out.err)
	if help, ok := errors.AsType[*helpText](err); ok {
		fmt.Fprint(t.Out, help.text(p, ScreenOf(t.Out).Width))
		return Done
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errInterrupted
	}
	return p.fail(err, asksJSON(args), t)
}

var errInterrupted = errors.New("interrupted; what was under way is not finished")

// own are the commands that every program has.
func (p *Program) own() []Command {
	return []Command{
		{Name: "help", Group: p.ownGroup(), Forms: []string{"[COMMAND]"}, Short: "explain a command", Run: p.help},
		{Name: "completion", Forms: []string{"bash", "zsh", "fish"}, Short: "print what makes a shell complete commands and flags", Run: p.completion},
		{Name: "man", Short: "print the manual page", Run: p.man},
		{Name: "version", Short: "print the version", Run: func(_ context.Context, args []string, t Terminal) error {
			if _, err := ParseNone(NewFlags("version"), args, "Prints the version that the build was given."); err != nil {
				return err
			}
			_, err := fmt.Fprintln(t.Out, p.Version)
			return err
		}},
	}
}

// ownGroup is what its own commands stand under where the others stand in groups.
func (p *Program) ownGroup() string {
	return Either(slices.ContainsFunc(p.Commands, func(c Command) bool { return c.Group != "" }), "This program", "")
}

func (p *Program) all() []Command { return append(slices.Clone(p.Commands), p.own()...) }

func (p *Program) dispatch(ctx context.Context, args []string, t Terminal) error {
	if len(args) > 0 && isHelp(args[0]) {
		return p.overview(t.Out)
	}
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		var err error
		if args, err = p.wordsFirst(args); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		_ = p.overview(t.Err) // the error tells
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return Usage("command", "one of those that "+p.Name+" help lists", "none is given")
	}
	c, rest := p.find(args)
	if c == nil {
		return p.unknown(args)
	}
	return c.Run(ctx, rest, t)
}

// find takes the command whose name is the longest beginning of the words, which
// flags may part.
func (p *Program) find(args []string) (c *Command, rest []string) {
	all := p.all()
	for i := range all {
		name := strings.Fields(all[i].Name)
		if len(args) >= len(name) && slices.Equal(args[:len(name)], name) && (c == nil || len(name) > len(strings.Fields(c.Name))) {
			c, rest = &all[i], args[len(name):]
		}
	}
	return c, rest
}

// wordsFirst puts flags that stand before the command behind it.
func (p *Program) wordsFirst(args []string) ([]string, error) {
	flags := p.flags()
	var front []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		f := flags[name]
		if f == nil {
			return nil, unknownFlag(name, flags)
		}
		n := 1
		if !hasValue && !IsBool(f) {
			n = 2
		}
		if len(args) < n {
			return nil, Usage("-"+name, "a value", "nothing follows it")
		}
		front, args = append(front, args[:n]...), args[n:]
	}
	words := 0
	for words < len(args) && !strings.HasPrefix(args[words], "-") {
		words++
	}
	return slices.Concat(args[:words], front, args[words:]), nil
}

// flags are those of all commands, by name.
func (p *Program) flags() map[string]*flag.Flag {
	out := map[string]*flag.Flag{}
	for _, c := range p.all() {
		if h := c.describe(); h != nil {
			h.flags.VisitAll(func(f *flag.Flag) { out[f.Name] = f })
		}
	}
	return out
}

// describe asks a command what it takes, as -h does.
func (c *Command) describe() *helpText {
	var h *helpText
	err := c.Run(context.Background(), []string{"-h"}, Terminal{strings.NewReader(""), io.Discard, io.Discard})
	if !errors.As(err, &h) {
		return nil
	}
	h.command = c
	return h
}

// unknown says what might have been meant. A noun may be two words, as pki trust.
func (p *Program) unknown(args []string) error {
	var names []string
	for _, c := range p.all() {
		names = append(names, strings.Fields(c.Name)[0])
	}
	noun, rest, verbs := "", args, []string(nil)
	for len(rest) > 0 {
		next := p.verbs(strings.TrimSpace(noun + " " + rest[0]))
		if len(next) == 0 {
			break
		}
		noun, rest, verbs = strings.TrimSpace(noun+" "+rest[0]), rest[1:], next
	}
	switch limit := strings.Join(verbs, ", "); {
	case noun == "":
		return Usage("command", "one of those that "+p.Name+" help lists", "there is no %q%s", Clip(args[0]), Meant(args[0], names))
	case len(rest) > 0 && isHelp(rest[0]):
		return p.nounHelp(noun)
	case len(rest) == 0 || strings.HasPrefix(rest[0], "-"):
		return Usage(noun, limit, "what of it?")
	default:
		return Usage(noun, limit, "there is no %q%s", Clip(rest[0]), Meant(rest[0], verbs))
	}
}

func (p *Program) help(ctx context.Context, args []string, t Terminal) error {
	words, err := Parse(NewFlags("help"), args, "Explains a command, as -h behind it does.")
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return p.overview(t.Out)
	}
	c, rest := p.find(words)
	if c == nil || len(rest) > 0 && !slices.ContainsFunc(c.Forms, func(f string) bool { return strings.HasPrefix(f, rest[0]) }) {
		return p.unknown(append(words, "-h"))
	}
	return c.Run(ctx, []string{"-h"}, t)
}

// overview lists the commands.
func (p *Program) overview(out io.Writer) error {
	s := ScreenOf(out)
	fmt.Fprintf(out, "%s %s\n", p.Name, Wrap(p.Short, s.Width-len(p.Name)-1, ""))
	list, all, told := Table{Screen: s}, p.all(), map[string]bool{}
	for i := range all {
		c := &all[i]
		if c.Group != "" || i == 0 {
			list.Row("")
		}
		if c.Group != "" {
			list.Row(c.Group)
		}
		noun, _, _ := strings.Cut(c.Name, " ")
		switch what := p.Nouns[noun]; {
		case what == "":
			list.Row("  "+c.Name, c.Short)
		case !told[noun]:
			told[noun] = true
			list.Row("  "+noun, what+": "+strings.Join(p.verbs(noun), ", "))
		}
	}
	if err := list.Print(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s COMMAND -h explains one. Flags may stand anywhere.\nExit: 0 done; 1 attempted and failed, or no solution exists;\n      2 command line or input not acceptable, nothing attempted.\n", p.Name)
	return err
}

// verbs are what may follow a noun.
func (p *Program) verbs(noun string) (out []string) {
	for _, c := range p.all() {
		if verb, ok := strings.CutPrefix(c.Name, noun+" "); ok {
			out = append(out, verb)
		}
	}
	return out
}

// nounHelp lists what there is of a noun.
func (p *Program) nounHelp(noun string) error {
	text := ""
	for _, c := range p.all() {
		if strings.HasPrefix(c.Name, noun+" ") {
			text += "  " + p.Name + " " + c.synopsis() + "\n      " + c.Short + "\n"
		}
	}
	return &helpText{flags: NewFlags(noun), Text: strings.TrimSuffix(text, "\n"), command: &Command{Name: noun, Forms: []string{"..."}}}
}

// synopsis is how a command is used.
func (c *Command) synopsis() string {
	return strings.TrimSpace(c.Name + " " + strings.Join(c.Forms, "|"))
}

// Meant says which names, three at most, are nearest to what was typed, "" when
// none is near.
func Meant(typed string, names []string) string {
	best, near := 2, []string(nil)
	if len(typed) < 4 {
		best = 1
	}
	for _, n := range names {
		switch d := distance(typed, n); {
		case d < best || d == best && len(near) == 0:
			best, near = d, []string{n}
		case d == best && len(near) < 3 && !slices.Contains(near, n):
			near = append(near, n)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// distance counts the letters to add, drop, change or swap with the next.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

func isHelp(s string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, s) }

// IsBool says whether a flag stands without a value.
func IsBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

func unknownFlag(name string, known map[string]*flag.Flag) error {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(known)) {
		names = append(names, "-"+n)
	}
	return Usage("", "", "flag provided but not defined: -%s%s", Clip(name), cmp.Or(Meant("-"+name, names), "; -h lists them"))
}
