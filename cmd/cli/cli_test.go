package cli

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func testProgram() *Program {
	echo := func(name string) func(context.Context, []string, Terminal) error {
		return func(_ context.Context, args []string, t Terminal) error {
			fs := NewFlags(name)
			broker := fs.String("broker", "", "`URL` of the broker")
			asJSON := fs.Bool("json", false, "print JSON")
			words, err := Parse(fs, args, name+" is a command.\n\n  prog "+name)
			if err == nil {
				fmt.Fprintf(t.Out, "%s %v %s %v\n", name, words, *broker, *asJSON)
			}
			return err
		}
	}
	return &Program{Name: "prog", Short: "does things", Version: "v1", Commands: []Command{
		{Name: "ring", Forms: []string{"list", "show RING"}, Short: "rings", Run: echo("ring")},
		{Name: "plan ring", Short: "groups", Run: echo("plan ring")},
		{Name: "plan wiring", Short: "cross-connects", Run: echo("plan wiring")},
	}}
}

// Goal: flags may stand anywhere, a wrong word or flag names the one that was
// meant, help is found in every way of asking for it.
func TestWordsAndFlags(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"ring list", "ring [list]  false", 0},
		{"-broker X ring list", "ring [list] X false", 0},
		{"ring -broker=X list -json", "ring [list] X true", 0},
		{"-json -broker X plan ring FILE", "plan ring [FILE] X true", 0},
		{"help ring", "usage: prog ring list|show RING", 0},
		{"ring -h", "-broker URL", 0},
		{"help plan", "prog plan wiring", 0},
		{"help plan wiring", "plan wiring is a command", 0},
		{"-h", "plan ring", 0},
		{"version", "v1", 0},
		{"rng list", "did you mean ring?", 2},
		{"plan", "ring, wiring", 2},
		{"plan rnig", "did you mean ring?", 2},
		{"ring list -borker X", "did you mean -broker?", 2},
		{"-borker X ring list", "did you mean -broker?", 2},
		{"-broker", "nothing follows it", 2},
		{"completion tcsh", "bash, zsh or fish", 2},
		{"", "prog help", 2},
		{"rng -json", `{"error":{"code":"invalid","field":"command","limit":"one of`, 2},
	} {
		var out, errs bytes.Buffer
		code := testProgram().Run(context.Background(), strings.Fields(c.args), Terminal{strings.NewReader(""), &out, &errs})
		if all := out.String() + errs.String(); code != c.code || !strings.Contains(all, c.want) {
			t.Errorf("%q: exit %d, %q, want %q", c.args, code, all, c.want)
		}
	}
}

// Goal: no line of a table is wider than its screen, and no word of it is lost.
func TestTablesFit(t *testing.T) {
	long := "a sentence of many words, and-one-that-is-quite-long-but-has-no-end " + strings.Repeat("0123456789", 12)
	for _, width := range []int{80, 100, 132} {
		table := Table{Screen: Screen{Width: width}}
		table.Row("TIME", "NODE", "WHAT")
		table.Row("2026-11-22 16:24:51.123 +0000", strings.Repeat("n", 70), long)
		table.Row("now", "1", "µ short")
		var out bytes.Buffer
		if err := table.Print(&out); err != nil {
			t.Fatal(err)
		}
		last, column := "", strings.Index(out.String(), "WHAT")
		for line := range strings.Lines(out.String()) {
			if len(line) > column {
				last += line[column:]
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %q", n, width, line)
			}
		}
		squeezed := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if !strings.Contains(squeezed(last), squeezed(long)) {
			t.Errorf("words are lost:\n%s", out.String())
		}
	}
	if s := (Screen{Colour: true}); s.Paint("down") == "down" || (Screen{}).Paint("down") != "down" {
		t.Error("colour only where there are colours")
	}
}

// Goal: what completion offers is what a shell lists.
// Method: bash runs the script; without bash it is skipped.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	script := testProgram().bash()
	for _, c := range []struct{ line, want string }{
		{"prog r", "ring"},
		{"prog plan ", "ring wiring"},
		{"prog ring s", "show"},
		{"prog -broker X ring l", "list"},
		{"prog plan ring -b", "-broker"},
		{"prog completion ", "bash zsh fish"},
	} {
		words := strings.Split(c.line, " ")
		run := fmt.Sprintf("%s\nCOMP_WORDS=(%s '')\nCOMP_CWORD=%d\n_prog\necho ${COMPREPLY[@]}", script, strings.Join(words[:len(words)-1], " ")+" '"+words[len(words)-1]+"'", len(words)-1)
		out, err := exec.Command(bash, "--norc", "-c", run).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: %v %q, want %q", c.line, err, got, c.want)
		}
	}
}

// Goal: every flag of every command stands in the manual page and in what fish reads.
func TestManualHasEveryFlag(t *testing.T) {
	p := testProgram()
	man, fish := p.manual(), p.fish()
	for name := range p.flags() { // any order: each by itself
		if !strings.Contains(man, `\-`+name) || !strings.Contains(fish, "-o "+name) {
			t.Errorf("-%s is missing", name)
		}
	}
}

// Goal: what is folded fits the screen, line by line, and nothing of it is lost.
func TestFoldedFits(t *testing.T) {
	var b bytes.Buffer
	out := Folded(&b, "    ")
	text := "name  " + strings.Repeat("word ", 60) + "end\n\nshort\n"
	if n, err := fmt.Fprint(out, text); n != len(text) || err != nil {
		t.Fatal(n, err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
	}
	if strings.Join(strings.Fields(b.String()), " ") != strings.Join(strings.Fields(text), " ") || !strings.HasSuffix(b.String(), "end\n\nshort\n") {
		t.Errorf("%q", b.String())
	}
}

// Goal: help reads as it was written.
// Method: a paragraph that fits stands as it is, to the last column; one with a line too
// wide is filled anew, without words alone on a line; indented lines and examples never
// run into others.
func TestHelpIsFilled(t *testing.T) {
	full := strings.Repeat("x", 19) + " " // 20 with its end
	for _, c := range []struct{ text, want string }{
		{full[:19] + "\nyy\n", full[:19] + "\nyy\n"},
		{"aaaa bbbb cccc dddd eeee\nffff gggg", "aaaa bbbb cccc dddd\neeee ffff gggg\n"},
		{"one two three four five\n\n  {\"as\": 1}\nexample: a\nexample: b", "one two three four\nfive\n\n  {\"as\": 1}\nexample: a\nexample: b\n"},
	} {
		if got := filled(c.text, 20); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	if wide := strings.Repeat("word ", 40); filled(wide, 0) != wide+"\n" {
		t.Error("lines of any length are not")
	}
}

// Goal: a line that is indented goes on deeper than it began.
// Method: one of 12 spaces behind an indent of 9, one of none.
func TestFoldedGoesOnDeeper(t *testing.T) {
	var b bytes.Buffer
	word := strings.Repeat("word ", 20)
	fmt.Fprintf(Folded(&b, strings.Repeat(" ", 9)), "%s%s\n%s\n", strings.Repeat(" ", 12), word, word)
	var depth []int
	for line := range strings.Lines(b.String()) {
		depth = append(depth, len(line)-len(strings.TrimLeft(line, " ")))
	}
	if fmt.Sprint(depth) != "[12 14 0 9]" {
		t.Errorf("%v\n%s", depth, b.String())
	}
}
