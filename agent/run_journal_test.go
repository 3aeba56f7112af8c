package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ringlight/node"
	"ringlight/proto"
)

// lines gives n records as an agent makes them: events, state, light,
// acknowledgements.
func lines(t *testing.T, n int) [][]byte {
	t.Helper()
	var out [][]byte
	for i := 1; i <= n; i++ {
		r := record{Last: uint64(i), Reserved: uint64(i / 2), Acked: uint64(i / 3),
			Events: []proto.Event{{Version: 1, Seq: uint64(i), Kind: proto.EvLightLost, Count: 1, Text: strings.Repeat("x", i%7)}}}
		if i%4 == 0 {
			r.State = &node.State{SeenTerm: proto.Term(i), BypassSeq: uint64(i)}
			r.Light = []BundleRecord{{Path: proto.External1, Lit: uint8(i)}}
		}
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	return out
}

func folded(t *testing.T, recs [][]byte) string {
	t.Helper()
	var j Journal
	for _, r := range recs {
		if err := j.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	return string(j.Snapshot())
}

func reopen(t *testing.T, dir string) string {
	t.Helper()
	f, j, err := openJournal(dir, proto.Event{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	return string(j.Snapshot())
}

// written is a journal of n records in a folder of its own, and where each line
// of its log ends.
func written(t *testing.T, recs [][]byte) (dir string, ends []int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "j")
	f, _, err := openJournal(dir, proto.Event{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for _, r := range recs {
		if err := f.append(r); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(f.size))
	}
	return dir, ends
}

// files are those of a journal by their names, the mark's too.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(dir, "journal.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, dir+markSuffix) {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) != lockName {
			out[filepath.Base(name)] = raw
		}
	}
	return out
}

// laid puts such files into a folder.
func laid(t *testing.T, dir string, content map[string][]byte) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+markSuffix), os.MkdirAll(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, raw := range content { // any order: each its own file
		path := filepath.Join(dir, name)
		if name == filepath.Base(dir)+markSuffix {
			path = dir + markSuffix
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// marked is the content of a mark.
func marked(number, seq, last uint64) []byte {
	return formatLine(markHead, fmt.Sprintf(markForm, number, seq, last))
}

func TestJournalSurvivesAKillAtAnyByte(t *testing.T) {
	// Goal: after a crash the journal is what had been synced, never less and
	// never half a record more.
	// Method: a log cut at every byte of what was written after the mark, then
	// also with garbage after the cut; it must read back as the whole records
	// before, and take new ones.
	recs := lines(t, 9)
	whole, ends := written(t, recs)
	content := files(t, whole)
	raw := content[logName+"1"]
	dir := filepath.Join(t.TempDir(), "j")
	step := 1
	if testing.Short() {
		step = 5
	}
	for cut := ends[7]; cut <= len(raw); cut += step {
		n := 0
		for n < len(ends) && ends[n] <= cut {
			n++
		}
		for _, tail := range []string{"", "\x00\x00\x00\x00", "1.9 deadbeef {"} {
			if tail != "" && cut == ends[n-1] && n == len(ends) {
				continue
			}
			content["j"+markSuffix], content[logName+"1"] = marked(1, 8, 8), append(raw[:cut:cut], tail...)
			laid(t, dir, content)
			if got, want := reopen(t, dir), folded(t, recs[:n]); got != want {
				t.Fatalf("cut at %d, tail %q:\ngot  %s\nwant %s", cut, tail, got, want)
			}
			if cut%16 != 0 {
				continue // the disk's syncs take their time
			}
			f, _, err := openJournal(dir, proto.Event{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range recs[n:] {
				if err := f.append(r); err != nil {
					t.Fatal(err)
				}
			}
			f.close()
			if got, want := reopen(t, dir), folded(t, recs); got != want {
				t.Fatalf("cut at %d and continued:\ngot  %s\nwant %s", cut, got, want)
			}
		}
	}
}

func TestJournalKilledAtItsFirstStepsIsNotDamaged(t *testing.T) {
	// Goal: a life that ended while its journal was made lost nothing, so that nothing is
	// damaged; a snapshot that is gone later is.
	// Method: what each step of the first opening leaves; then files that no first opening
	// leaves.
	recs := lines(t, 3)
	own, _ := written(t, nil)
	made := files(t, own)
	whole, half := made[snapshotName], made[snapshotName][:9]
	for _, c := range []struct {
		what    string
		content map[string][]byte
		want    string // "" : damaged
	}{
		{"a lock", map[string][]byte{lockName: nil}, folded(t, nil)},
		{"a mark", map[string][]byte{"j" + markSuffix: nil}, folded(t, nil)},
		{"a log", map[string][]byte{"j" + markSuffix: nil, logName + "1": nil}, folded(t, nil)},
		{"half a snapshot", map[string][]byte{"j" + markSuffix: nil, logName + "1": nil, snapshotName + ".tmp": half}, folded(t, nil)},
		{"a snapshot without its name", map[string][]byte{"j" + markSuffix: nil, logName + "1": nil, snapshotName + ".tmp": whole}, folded(t, nil)},
		{"a snapshot", map[string][]byte{"j" + markSuffix: nil, logName + "1": nil, snapshotName: whole}, folded(t, nil)},
		{"a log from before the first", map[string][]byte{"j" + markSuffix: nil, logName + "0": formatLine("0.1", string(recs[0])), logName + "1": nil}, ""},
		{"a line that is no snapshot", map[string][]byte{"j" + markSuffix: nil, logName + "1": nil, snapshotName: formatLine("1.1", string(recs[0]))}, ""},
		{"no snapshot, a mark", map[string][]byte{"j" + markSuffix: marked(1, 0, 0), logName + "1": nil}, ""},
		{"no snapshot, a record", map[string][]byte{"j" + markSuffix: nil, logName + "1": formatLine("1.1", string(recs[0]))}, ""},
		{"no snapshot, a later log", map[string][]byte{"j" + markSuffix: nil, logName + "2": nil}, ""},
	} {
		dir := filepath.Join(t.TempDir(), "j")
		laid(t, dir, c.content)
		f, _, err := openJournal(dir, proto.Event{})
		if err != nil {
			t.Fatal(err)
		}
		if f.close(); (f.damage != nil) != (c.want == "") {
			t.Errorf("%s: damage %v", c.what, f.damage)
		} else if got := reopen(t, dir); c.want != "" && got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Goal: a probe finds what a record would, and leaves nothing behind, whenever its life ends.
// Method: a log that is full for ever; a log with the whole or a part of a probe behind it.
func TestJournalIsProbed(t *testing.T) {
	dir, ends := written(t, lines(t, 3))
	f, _, err := openJournal(dir, proto.Event{})
	if err != nil {
		t.Fatal(err)
	}
	log := f.log
	if f.log, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
		t.Skip(err)
	}
	if err := f.probe(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	f.log.Close()
	f.log = log
	if err := f.probe(); err != nil {
		t.Error(err)
	}
	if st, err := log.Stat(); err != nil || st.Size() != int64(ends[2]) {
		t.Errorf("%v, %v", st, err)
	}
	if err := errors.Join(f.append([]byte("{}")), f.close()); err != nil {
		t.Error(err)
	}
	want, left := reopen(t, dir), files(t, dir)
	for _, n := range []int{1, probeBytes} {
		laid(t, dir, left)
		name := filepath.Join(dir, logName+"1")
		if err := os.WriteFile(name, append(left[logName+"1"], bytes.Repeat([]byte{probeFill}, n)...), 0o600); err != nil {
			t.Fatal(err)
		}
		f, j, err := openJournal(dir, proto.Event{})
		if err != nil || j.Told != "" {
			t.Fatalf("%d bytes of a probe: %v, %q", n, err, j.Told)
		}
		f.close()
		if got := reopen(t, dir); got != want {
			t.Errorf("%d bytes of a probe: %s, want %s", n, got, want)
		}
	}
}

func TestJournalFoldsUp(t *testing.T) {
	// Goal: the log stays small, and a crash between any two steps of folding
	// loses and repeats nothing.
	// Method: a tiny limit; then the leftovers of each possible crash are put
	// back beside the good files.
	recs := lines(t, 40)
	dir := filepath.Join(t.TempDir(), "j")
	f, _, err := openJournal(dir, proto.Event{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		f.limit = 100
		if err := f.append(r); err != nil {
			t.Fatal(err)
		}
	}
	number := f.number
	f.close()
	want := folded(t, recs)
	if number < 3 || reopen(t, dir) != want {
		t.Fatalf("after %d folds: %s, want %s", number, reopen(t, dir), want)
	}
	for name, content := range map[string]string{ // any order: independent leftovers
		snapshotName + ".tmp":                "half a snap",
		fmt.Sprint(logName, number+1):        "",
		fmt.Sprint(logName, number-1):        string(formatLine(recordHeadOf(number-1, 1), string(recs[0]))),
		fmt.Sprint(logName, number, ".junk"): "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := reopen(t, dir); got != want {
			t.Errorf("with %s left over: %s", name, got)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was not swept up", name)
		}
	}
	if a, _, err := openJournal(dir, proto.Event{}); err != nil {
		t.Fatal(err)
	} else {
		if _, _, err := openJournal(dir, proto.Event{}); err == nil {
			t.Error("two agents have one journal")
		}
		a.close()
	}
}

// Goal: a journal of a later version is refused by name and left as it is.
func TestLaterJournalIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	later := formatLine(formatHead+"3", "something else")
	laid(t, dir, map[string][]byte{snapshotName: later})
	if _, _, err := openJournal(dir, proto.Event{}); err == nil || !strings.Contains(err.Error(), "journal.snapshot is of version 3") {
		t.Errorf("a later version: %v", err)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, snapshotName)); err != nil || !bytes.Equal(raw, later) {
		t.Errorf("its snapshot is now %q, %v", raw, err)
	}
}

func TestJournalIsForNobodyElse(t *testing.T) {
	// Goal: what a node remembers is for its own user; wider files of before
	// are narrowed.
	dir, _ := written(t, lines(t, 3))
	check := func(when string) {
		t.Helper()
		for name := range files(t, dir) { // any order: each for itself
			path := filepath.Join(dir, name)
			if name == "j"+markSuffix {
				path = dir + markSuffix
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s is %v, %v", when, name, info.Mode(), err)
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: folder is %v, %v", when, info.Mode(), err)
		}
	}
	check("new")
	laid(t, dir, files(t, dir))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	reopen(t, dir)
	check("narrowed")
}

func FuzzJournalRecord(f *testing.F) {
	f.Add([]byte(`{"events":[{"Seq":1,"Kind":1,"Count":1}],"last":1}`))
	f.Add([]byte(`{"acked":5,"light":[{"Path":1,"Lit":2}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var j Journal
		if err := j.Apply(raw); err != nil {
			return
		}
		for i, e := range j.Events {
			if e.Seq != j.Events[0].Seq+uint64(i) || e.Seq <= j.Acked || e.Seq > j.Last {
				t.Fatalf("event %d has number %d; acked %d, last %d", i, e.Seq, j.Acked, j.Last)
			}
		}
		snap := j.Snapshot()
		var k Journal
		if err := k.Apply(snap); err != nil {
			t.Fatalf("own snapshot %s: %v", snap, err)
		}
		if again := k.Snapshot(); !bytes.Equal(snap, again) {
			t.Fatalf("snapshot %s became %s", snap, again)
		}
	})
}
