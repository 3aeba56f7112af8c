package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	raw, err := j.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func reopen(t *testing.T, dir string) string {
	t.Helper()
	f, j, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	raw, err := j.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestJournalSurvivesAKillAtAnyByte(t *testing.T) {
	// Goal: after a crash the journal is what had been synced, never less and
	// never half a record more.
	// Method: a log cut at every byte of its last record, then also with
	// garbage after the cut; it must read back as the whole records before, and
	// take new ones.
	recs := lines(t, 9)
	whole := t.TempDir()
	f, _, err := openJournal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for _, r := range recs {
		if err := f.append(r); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(f.size))
	}
	f.close()
	raw, err := os.ReadFile(filepath.Join(whole, logName+"0"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "j")
	for cut := ends[7]; cut <= len(raw); cut++ {
		n := 0
		for n < len(ends) && ends[n] <= cut {
			n++
		}
		for _, tail := range []string{"", "\x00\x00\x00\x00", "deadbeef 0 {"} {
			if tail != "" && cut == ends[n-1] && n == len(ends) {
				continue
			}
			os.RemoveAll(dir)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, logName+"0"), append(raw[:cut:cut], tail...), 0o644); err != nil {
				t.Fatal(err)
			}
			if got, want := reopen(t, dir), folded(t, recs[:n]); got != want {
				t.Fatalf("cut at %d, tail %q:\ngot  %s\nwant %s", cut, tail, got, want)
			}
			if cut%16 != 0 {
				continue // the disk's syncs take their time
			}
			f, _, err := openJournal(dir)
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

func TestJournalDamageIsNotATornTail(t *testing.T) {
	// Goal: a flipped bit before the end is refused with its place, since to go
	// on without those records would repeat sequence numbers.
	dir := t.TempDir()
	f, _, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range lines(t, 3) {
		if err := f.append(r); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	path := filepath.Join(dir, logName+"0")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[20] ^= 1
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(dir); err == nil || !strings.Contains(err.Error(), "at byte 0") {
		t.Errorf("open: %v, want damage at byte 0", err)
	}
}

func TestJournalFoldsUp(t *testing.T) {
	// Goal: the log stays small, and a crash between any two steps of folding
	// loses and repeats nothing.
	// Method: a tiny limit; then the leftovers of each possible crash are put
	// back beside the good files.
	recs := lines(t, 40)
	dir := t.TempDir()
	f, _, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.limit = 100
	for _, r := range recs {
		f.limit = 100
		if err := f.append(r); err != nil {
			t.Fatal(err)
		}
	}
	number := f.number
	f.close()
	want := folded(t, recs)
	if number == 0 || reopen(t, dir) != want {
		t.Fatalf("after %d folds: %s, want %s", number, reopen(t, dir), want)
	}
	for name, content := range map[string]string{ // any order: independent leftovers
		snapshotName + ".tmp":                "half a snap",
		fmt.Sprint(logName, number+1):        "",
		fmt.Sprint(logName, number-1):        string(formatLine(number-1, recs[0])),
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
	if a, _, err := openJournal(dir); err != nil {
		t.Fatal(err)
	} else {
		if _, _, err := openJournal(dir); err == nil {
			t.Error("two agents have one journal")
		}
		a.close()
	}
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
		snap, err := j.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		var k Journal
		if err := k.Apply(snap); err != nil {
			t.Fatalf("own snapshot %s: %v", snap, err)
		}
		again, err := k.Snapshot()
		if err != nil || !bytes.Equal(snap, again) {
			t.Fatalf("snapshot %s became %s (%v)", snap, again, err)
		}
	})
}
