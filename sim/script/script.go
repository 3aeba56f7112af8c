package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the scripts in testdata expect")

// A fresh function begins a case: it returns what carries out one command,
// given as its words, and says what came of it in whole lines.
type fresh = func(t *testing.T) func(words []string) string

// Run plays each file that matches pattern as a subtest.
func Run(t *testing.T, pattern string, begin fresh) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts match %s: %v", pattern, err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text, wrong := play(t, string(raw), begin)
			if *update {
				wrong, err = nil, os.WriteFile(f, []byte(text), 0o644)
			}
			for _, w := range wrong {
				t.Error(w)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// play gives a script as it should be, and where it is wrong.
func play(t *testing.T, text string, begin fresh) (right string, wrong []string) {
	var out strings.Builder
	do, title := begin(t), ""
	for _, block := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		commands, want, found := strings.Cut(block, "\n----")
		if !found {
			do, title = begin(t), block
		}
		got := ""
		for _, line := range strings.Split(commands, "\n") {
			code, _, _ := strings.Cut(line, "#")
			words := strings.Fields(code)
			switch {
			case len(words) > 0 && found:
				got += do(words)
			case len(words) > 0:
				wrong = append(wrong, "commands without a line of dashes:\n"+block)
			}
		}
		if !found {
			out.WriteString(block + "\n\n")
			continue
		}
		if want = strings.TrimPrefix(want, "\n"); strings.TrimSuffix(got, "\n") != want {
			wrong = append(wrong, fmt.Sprintf("%s\n%s\n---- got\n%s---- want\n%s", title, commands, got, want))
		}
		out.WriteString(commands + "\n----\n" + got + "\n")
	}
	return strings.TrimSuffix(out.String(), "\n"), wrong
}
