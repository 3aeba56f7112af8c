package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
)

func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // one that is accepted by mistake would run for ever
	defer cancel()
	code = program().Run(ctx, args, cli.Terminal{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "planner.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Goal: a file says what flags say, flags override it, and what is printed is a file
// of the same meaning; every key is documented.
func TestConfigurationReadsBack(t *testing.T) {
	name := file(t, `{"state":"a.db","http":"127.0.0.1:9464","log_level":"warn","log_format":"json"}`)
	code, out, errs := command(t, "config", "-config", name, "-state", "b.db", "-insecure")
	var c Config
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != 0 {
		t.Fatal(code, errs, err)
	}
	want := defaults()
	want.State, want.HTTP, want.LogLevel, want.LogFormat, want.Insecure, want.Listen = "b.db", "127.0.0.1:9464", "warn", "json", true, "127.0.0.1:18830"
	if c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	if code, again, _ := command(t, "config", "-config", file(t, out)); code != 0 || again != out {
		t.Errorf("exit %d, %s became %s", code, out, again)
	}
	_, doc, _ := command(t, "config", "-doc")
	for _, k := range cli.Keys(defaults()) {
		if k.Text == "" || !strings.Contains(doc, k.Key+" ") {
			t.Errorf("%s is not documented", k.Key)
		}
	}
}

func TestBadConfigurations(t *testing.T) {
	for text, says := range map[string]string{
		`{"stat":"a.db"}`:               `there is no key "stat"`,
		`{"log_level":"loud"}`:          "log_level",
		`{"log_format":"xml"}`:          "text or json",
		`{"state":""}`:                  "state",
		"{\n\"insecure\": 3}":           "line 2",
		`{"broker":"mqtt://192.0.2.1"}`: "insecure",
		`{"http":"192.0.2.1:80"}`:       "http",
		`{}{}`:                          "data follows",
		strings.Repeat(" ", maxConfig) + `{"state":""}`: "at most 65536 bytes",
	} {
		for _, verb := range []string{"config", "run"} {
			if code, out, errs := command(t, verb, "-config", file(t, text)); code != 2 || !strings.Contains(errs, says) || out != "" {
				t.Errorf("%s %s: exit %d, %q, want %q", verb, cli.Clip(text), code, errs, says)
			}
		}
	}
}

// Goal: a running planner takes its level from the file at SIGHUP, and goes on.
func TestHangupReadsTheLevel(t *testing.T) {
	name := file(t, `{"fabric_file":"`+file(t, string(fabric.Default().Encode()))+`","listen":"127.0.0.1:0","http":"127.0.0.1:0","gnmi":"127.0.0.1:0","log_level":"info","state":"`+filepath.Join(t.TempDir(), "p.db")+`"}`)
	lines, ended := make(chan string, 100), make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		ended <- program().Run(ctx, []string{"run", "-config", name}, cli.Terminal{In: strings.NewReader(""), Out: io.Discard, Err: toLines(lines)})
	}()
	wait := func(text string) {
		t.Helper()
		for limit := time.After(10 * time.Second); ; {
			select {
			case line := <-lines:
				if strings.Contains(line, text) {
					return
				}
			case <-limit:
				t.Fatalf("no %q", text)
			}
		}
	}
	wait("planner started")
	if err := os.WriteFile(name, []byte(`{"log_level":"error","state":"other.db"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	wait(`"configuration read again" log_level=error`)
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d", code)
	}
}

type toLines chan string

func (c toLines) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
	default:
	}
	return len(p), nil
}
