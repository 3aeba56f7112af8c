package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Goal: help of every command fits 80 columns, and so do lists of keys.
func TestHelpFitsAScreen(t *testing.T) {
	lines := [][]string{{"-h"}, {"help"}, {"config", "-doc"}}
	for _, c := range program().Commands {
		lines = append(lines, append(strings.Fields(c.Name), "-h"))
	}
	for _, args := range lines {
		_, out, _ := command(t, args...)
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%v: %d columns: %q", args, n, line)
			}
		}
	}
}
