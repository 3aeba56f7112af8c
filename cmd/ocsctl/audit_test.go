package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/planner/audit"
)

// Goal: verify says whether a chain is whole, in words, as JSON and as an exit code,
// and what is no chain or no head is not acceptable. Method: a file, one that somebody
// changed, heads that were kept elsewhere.
func TestAuditVerify(t *testing.T) {
	var c audit.Chain
	var head audit.Head
	for _, who := range []string{"f1/op/alice", "f1/op/bob", "f1/op/alice"} {
		_, head, _ = c.Add(audit.Record{AtMillis: 1_700_000_000_000, Kind: audit.Act, Who: who, Sealed: true, What: "drain node 7"})
	}
	text, _ := c.Page(0, 1<<20)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	erased := file("erased", "")
	whole, changed := file("whole", text), file("changed", strings.Replace(text, "bob", "eve", 1))
	lines := strings.SplitAfter(text, "\n")
	cut := file("cut", lines[0]+lines[1]+(audit.Head{Seq: 2, Hash: audit.Hash(strings.TrimSpace(lines[1]))}).Line()+"\n")
	for _, x := range []struct {
		args string
		code int
		want string
	}{
		{"audit verify " + whole, 0, head.String()},
		{"audit verify -known " + head.String() + " " + whole, 0, "3 records"},
		{"audit verify -json " + whole, 0, `"whole":true,"records":3`},
		{"audit verify " + changed, 1, "record 2 is not what record 3 was written after"},
		{"audit verify -json " + changed, 1, `"whole":false`},
		{"audit verify " + whole, 0, "only -known can tell"},
		{"audit verify " + erased, 1, "neither a record nor a head"},
		{"audit verify -json " + erased, 1, `"whole":false`},
		{"audit verify " + cut, 0, "2 records"},
		{"audit verify -known " + head.String() + " " + cut, 1, "cut off"},
		{"audit verify " + filepath.Join(dir, "none"), 2, "readable file"},
		{"audit verify -known 3 " + whole, 2, "NUMBER:SHA256"},
		{"audit verify -who alice " + whole, 2, "flags of list"},
		{"audit list -kind x", 2, "decision"},
		{"audit list -since -1h", 2, "since"},
		{"audit burn", 2, "list, follow, or verify"},
		{"audit list -after 3", 2, "with follow"},
		{"audit follow -raw", 2, "-after alone"},
	} {
		code, out, errs := ctl(t, strings.Fields(x.args)...)
		if code != x.code || !strings.Contains(out+errs, x.want) {
			t.Errorf("%s: exit %d, %s%s", x.args, code, out, errs)
		}
	}
}

// Goal: no reason writes a record that is none on the screen of who reads the list.
// Method: lines, columns and a terminal's commands in a reason, as a sealed operator
// may send them.
func TestAuditListIsOfRecords(t *testing.T) {
	var c audit.Chain
	c.Add(audit.Record{Kind: audit.Act, Who: "f1/op/mallory", Sealed: true, What: "drain node 7", Why: "fan)\n2\tnow\tf1/op/bob *\tasks: drain node 0 (\x1b[8m"})
	text, _ := c.Page(0, 1<<20)
	_, all, _ := audit.Parse(text)
	var out strings.Builder
	if printAudit(&out, all); strings.Contains(out.String(), "\n2") || strings.ContainsRune(out.String(), 0x1b) {
		t.Errorf("%q", out.String())
	}
}
