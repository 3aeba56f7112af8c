package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/planner"
	"ringlight/planner/fabric"
)

// A store that went through an export is the same store; a line changed, lost or added
// is noticed, a later format refused, a store that is there left alone.
func TestStoreThroughAnExport(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s, err := openBolt(at("a.db"))
	if err != nil {
		t.Fatal(err)
	}
	start, err := planner.Start(nil, fabric.Default(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(append(start.First, planner.Record{Key: "term", Value: []byte("41")})); err != nil {
		t.Fatal(err)
	}
	if _, err := ExportStore(t.Context(), File(at("a.db")), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("exported from under a planner: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	head, err := ExportStore(t.Context(), File(at("a.db")), &out)
	if err != nil || head.Term != 41 || head.Records != 3 || head.Fabric != "f1" {
		t.Fatal(head, err)
	}
	text := out.String()
	lines := strings.SplitAfter(text, "\n")
	for name, bad := range map[string]string{ // any order: independent
		"empty": "", "no head": strings.Join(lines[1:], ""), "lost": strings.Join(lines[:3], ""),
		"changed": strings.Replace(text, lines[3], strings.Replace(lines[3], `"value":"N`, `"value":"M`, 1), 1),
		"twice":   text + lines[3], "later": strings.Replace(text, `"ringlight_store":2`, `"ringlight_store":3`, 1),
		"more": strings.Replace(text, `"key":`, `"colour":1,"key":`, 1), "other": strings.Replace(text, "f1", "f2", 1)[:40],
	} {
		if _, err := ImportStore(t.Context(), strings.NewReader(bad), File(at("bad.db"))); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	got, err := ImportStore(t.Context(), strings.NewReader(text), File(at("b.db")))
	if err != nil || got != head {
		t.Fatal(got, err)
	}
	if _, err := ImportStore(t.Context(), strings.NewReader(text), File(at("b.db"))); err == nil {
		t.Error("a store that is there was written over")
	}
	if again, err := CheckStore(t.Context(), File(at("b.db"))); err != nil || again != head {
		t.Error(again, err)
	}
	if copied, err := CopyStore(t.Context(), File(at("b.db")), File(at("c.db"))); err != nil || copied != head {
		t.Error(copied, err)
	}
	if again, err := CheckStore(t.Context(), File(at("c.db"))); err != nil || again != head {
		t.Error(again, err)
	}
	if _, err := CheckStore(t.Context(), File(at("nowhere.db"))); err == nil {
		t.Error("a store that is not there was made")
	}
}
