package clitest

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Fits fails where a line is wider than 80 columns.
func Fits(t testing.TB, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%s: %d columns: %q", what, n, line)
		}
	}
}
