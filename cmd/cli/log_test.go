package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Goal: a configuration read again changes the level alone, says so, and names
// what waits; one that is not acceptable changes nothing.
func TestReloadChangesTheLevel(t *testing.T) {
	type inner struct {
		B []string `json:"b"`
	}
	type config struct {
		Level string `json:"log_level"`
		A     int    `json:"a"`
		In    inner  `json:"in"`
	}
	var out bytes.Buffer
	l := NewLog(&out, "warn", "json")
	said := func() string {
		defer out.Reset()
		return out.String()
	}
	l.Info("hidden")
	now := config{Level: "warn"}
	l.reload(now, func() (any, string, error) {
		return config{Level: "debug", A: 1, In: inner{[]string{"x"}}}, "debug", nil
	})
	l.Debug("shown")
	if got := said(); strings.Contains(got, "hidden") || !strings.Contains(got, `"msg":"shown"`) || !strings.Contains(got, `"log_level":"debug"`) || !strings.Contains(got, `"keys":"a in.b"`) {
		t.Error(got)
	}
	l.reload(now, func() (any, string, error) { return now, "", errors.New("line 3") })
	l.Debug("shown")
	if got := said(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "line 3") {
		t.Error(got)
	}
	l.reload(now, func() (any, string, error) { return config{Level: "error"}, "error", nil })
	l.Warn("hidden")
	if got := said(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "configuration read again") || strings.Contains(got, "waits") {
		t.Error(got)
	}
}
