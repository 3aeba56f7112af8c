package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// probe is added to a copy of package proto: it prints each stack once, without the frames
// of the simulator.
const probe = `package proto

import (
	"os"
	"runtime"
	"strings"
)

var probed = map[string]bool{}

// Probe prints the stack that it is called on.
func Probe(outside string) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	s := outside
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "ringlight/") && !strings.HasPrefix(f.Function, "ringlight/sim") {
			s = strings.NewReplacer("(*", "", ")", "").Replace(f.Function[strings.LastIndex(f.Function, "/")+1:]) + " " + s
		}
		if !more {
			break
		}
	}
	if s = strings.TrimSpace(s); !probed[s] {
		probed[s] = true
		os.Stderr.WriteString("way " + s + "\n")
	}
}
`

// Goal: the two ways that docs/architecture.md draws are those that are gone, and it
// counts their calls well.
// Method: ocs-sim is built with a probe where each of their stacks ends; a node of a
// fleet loses its supply; each stack of the page is among those that were seen, as it is.
func TestTheTwoWays(t *testing.T) {
	if os.Getenv("RINGLIGHT_WAYS") == "" {
		t.Skip("builds ocs-sim anew: make ways")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	replace := map[string]string{filepath.Join(root, "proto/probe.go"): write("probe.go", probe)}
	for i, at := range []struct{ file, fn, outside string }{
		{"ocs/transceiver.go", `func \(t \*Transceiver\) Select\(.*\{\n`, ""},
		{"agent/events.go", `func \(o \*outbox\) add\(.*\{\n`, ""},
		{"planner/hbd/news.go", `func \(h \*Rings\) Told\(.*\{\n`, ""},
		{"sim/fleet/station.go", `func \(st \*station\) Submit\(.*\{\n`, "port.Submit"},
		{"sim/fleet/station.go", `func \(st \*station\) Send\(.*\{\n`, "port.Send"},
	} {
		path := filepath.Join(root, at.file)
		from := path
		if replace[path] != "" {
			from = replace[path]
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		fn := regexp.MustCompile(at.fn).FindString(string(text))
		if fn == "" {
			t.Fatalf("%s has no %s", at.file, at.fn)
		}
		replace[path] = write(fmt.Sprintf("%d.go", i), strings.Replace(string(text), fn, fn+fmt.Sprintf("\tproto.Probe(%q)\n", at.outside), 1))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "ocs-sim")
	build := exec.Command("go", "build", "-overlay", write("overlay.json", string(overlay)), "-o", program, "./cmd/ocs-sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "fleet", "-nodes", "16", "-k", "3", "-tp", "16", "-hours", "0.1", "-faults", write("faults", "60s node dark 5\n"))
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packages := regexp.MustCompile(`\b(agent|ocs|planner|member|hbd)\.`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if stack, ok := strings.CutPrefix(strings.TrimSpace(line), "way "); ok {
			seen[packages.ReplaceAllString(stack, "")] = true
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	drawn := regexp.MustCompile("(\\d+) calls[^\n]*:\n\n```\n([^`]*)```").FindAllStringSubmatch(string(page), -1)
	if len(drawn) != 2 {
		t.Fatalf("the page draws %d ways, want 2", len(drawn))
	}
	for _, way := range drawn {
		calls := 0
		for stack := range strings.Lines(way[2]) {
			calls += len(strings.Fields(stack))
			if stack = packages.ReplaceAllString(strings.TrimSpace(stack), ""); !seen[stack] {
				t.Errorf("the page draws a stack that was not seen: %s", stack)
			}
		}
		if fmt.Sprint(calls) != way[1] {
			t.Errorf("the page counts %s calls and draws %d", way[1], calls)
		}
		t.Logf("%d calls\n%s", calls, way[2])
	}
	if t.Failed() {
		for stack := range seen {
			t.Log(stack)
		}
	}
}
