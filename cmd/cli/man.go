package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

func (p *Program) man(_ context.Context, args []string, t Terminal) error {
	if _, err := ParseNone(NewFlags("man"), args, fmt.Sprintf("Prints the manual page of %[1]s, made of what -h says.\n\n  %[1]s man | man -l -\n", p.Name)); err != nil {
		return err
	}
	_, err := fmt.Fprint(t.Out, p.manual())
	return err
}

// roff keeps what is text from being read as a request or an escape.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// asItStands is text whose lines are not filled.
func asItStands(text string) string {
	out := ".nf\n"
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		out += roff(line) + "\n"
	}
	return out + ".fi\n"
}

// manual is the page: every command with its text and its flags.
func (p *Program) manual() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"Ringlight %s\" \"Ringlight\"\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(p.Name)), roff(p.Version), roff(p.Name), roff(strings.TrimSuffix(p.Short, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I command\n[\\fIwords\\fR] [\\fIflags\\fR]\n.SH DESCRIPTION\nFlags may stand before, between and after the words of a command.\n", roff(p.Name))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range p.all() {
		fmt.Fprintf(&b, ".SS %s\n%s.\n", roff(c.synopsis()), roff(c.Short))
		h := c.describe()
		if h == nil {
			continue
		}
		b.WriteString(".PP\n" + asItStands(h.Text))
		h.flags.VisitAll(func(f *flag.Flag) {
			form, what := flagForm(f)
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(form), roff(strings.ReplaceAll(what, "\n", " ")))
		})
	}
	if p.About != "" {
		b.WriteString(".SH ENVIRONMENT AND FILES\n" + asItStands(p.About))
	}
	b.WriteString(".SH EXIT STATUS\n.TP\n0\ndone\n.TP\n1\nattempted and failed, or no solution exists\n.TP\n2\ncommand line or input not acceptable, nothing attempted\n")
	return b.String()
}
