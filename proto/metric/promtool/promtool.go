package promtool

import (
	"os/exec"
	"strings"
	"testing"
)

// Judge runs promtool and fails the test with what it says, if that is
// anything but that all is well. Without one the test is skipped.
func Judge(t *testing.T, stdin string, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool (package prometheus): nobody else judged this")
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil || args[0] == "check" && args[1] == "metrics" && len(out) > 0 {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
