package main

import (
	"strings"
	"testing"

	"ringlight/cmd/cli/clitest"
)

// Goal: help of every command fits 80 columns, and so do lists of keys.
func TestHelpFitsAScreen(t *testing.T) {
	lines := [][]string{{"-h"}, {"help"}, {"config", "-doc"}}
	for _, c := range program().Commands {
		lines = append(lines, append(strings.Fields(c.Name), "-h"))
	}
	for _, args := range lines {
		_, out, _ := command(t, args...)
		clitest.Fits(t, strings.Join(args, " "), out)
	}
}
