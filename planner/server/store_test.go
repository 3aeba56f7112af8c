package server

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"ringlight/planner"
)

// Records come back sorted after a new start, later ones win, nil deletes.
func TestStoreKeepsRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planner.db")
	s, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]planner.Record{
		{{Key: "node/2", Value: []byte("b")}, {Key: "node/1", Value: []byte("a")}, {Key: "term", Value: []byte("1")}},
		{{Key: "term", Value: []byte("2")}, {Key: "node/2"}, {Key: "empty", Value: []byte{}}, {Key: "never"}},
	} {
		if err := s.Commit(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openBolt(path); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := s.Load()
	if got := fmt.Sprintf("%q", st); err != nil || got != `[{"empty" ""} {"node/1" "a"} {"term" "2"}]` {
		t.Errorf("%s, %v", got, err)
	}
}

// A batch with an impossible record is not half written.
func TestStoreCommitsAllOrNothing(t *testing.T) {
	s, err := openBolt(filepath.Join(t.TempDir(), "planner.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Commit([]planner.Record{{Key: "a", Value: []byte("1")}, {Key: "", Value: []byte("2")}}); err == nil {
		t.Error("a record without a key was written")
	}
	if st, err := s.Load(); err != nil || len(st) != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestStoreHasOneOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "planner.db")
	s, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := openBolt(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
	if _, err := openBolt(filepath.Join(path, "x")); err == nil {
		t.Error("a store below a file was opened")
	}
}

func BenchmarkCommit(b *testing.B) {
	s, err := openBolt(filepath.Join(b.TempDir(), "planner.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var batch []planner.Record
	for i := range 64 {
		batch = append(batch, planner.Record{Key: fmt.Sprintf("node/%010d", i), Value: make([]byte, 300)})
	}
	for b.Loop() {
		if err := s.Commit(batch); err != nil {
			b.Fatal(err)
		}
	}
}

// A damaged file is the state as it was, the state before the last commit, or
// a clear error that names the file; never a panic, never another state.
// A store of two commits cut, zeroed, flipped and with its pages exchanged.
func TestDamagedStores(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "planner.db")
	s, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for commit := range 3 {
		var batch []planner.Record
		for i := range 400 {
			if commit > 0 && i%7 == commit {
				batch = append(batch, planner.Record{Key: fmt.Sprintf("node/%d", i)})
			} else {
				batch = append(batch, planner.Record{Key: fmt.Sprintf("node/%d", i), Value: fmt.Appendf(nil, "%d %d %060d", commit, i, i)})
			}
		}
		if err := s.Commit(batch); err != nil {
			t.Fatal(err)
		}
		st, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, fmt.Sprintf("%q", st))
	}
	s.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	r := rand.New(rand.NewPCG(1, 2))
	outcome := map[string]int{}
	for n := range 500 {
		raw := bytes.Clone(whole)
		at := r.IntN(len(raw))
		if n%2 == 0 {
			at = r.IntN(14 * page) // where the pages in use are
		}
		what := ""
		switch n % 5 {
		case 0:
			what, raw = "cut", raw[:at]
		case 1:
			what = "zeroed"
			clear(raw[at:min(len(raw), at+1+r.IntN(2*page))])
		case 2, 3:
			what = "flipped"
			raw[at] ^= 1 << r.IntN(8)
		case 4:
			what = "exchanged"
			a, b := r.IntN(14)*page, r.IntN(14)*page
			tmp := bytes.Clone(raw[a : a+page])
			copy(raw[a:a+page], raw[b:b+page])
			copy(raw[b:b+page], tmp)
		}
		bad := filepath.Join(dir, fmt.Sprintf("%d.db", n))
		if err := os.WriteFile(bad, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := loadOnce(bad)
		switch {
		case err != nil && strings.Contains(err.Error(), bad):
			outcome[what+" refused"]++
		case err != nil:
			t.Errorf("%s at %d: an error that does not name the file: %v", what, at, err)
		case got == states[2]:
			outcome[what+" the last state"]++
		case got == states[1]:
			outcome[what+" the state before"]++
		case got == "[]" && len(raw) == 0:
			outcome["cut to nothing"]++
		default:
			t.Errorf("%s at %d: another state", what, at)
		}
		os.Remove(bad)
	}
	t.Log(outcome)
}

func loadOnce(path string) (string, error) {
	s, err := openBolt(path)
	if err != nil {
		return "", err
	}
	defer s.Close()
	st, err := s.Load()
	if err == nil {
		err = s.Commit([]planner.Record{{Key: "more", Value: make([]byte, 9000)}})
	}
	return fmt.Sprintf("%q", st), err
}

// A store of the format without checksums is taken over, one of a later format
// is refused.
func TestStoreFormats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planner.db")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket(bucketOld)
		if err != nil {
			return err
		}
		return b.Put([]byte("term"), []byte("7"))
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	for range 2 {
		if got, err := loadOnce(path); err != nil || !strings.Contains(got, `{"term" "7"}`) {
			t.Errorf("%s, %v", got, err)
		}
	}
	if db, err = bolt.Open(path, 0o600, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("planner 9")); return err }); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, err := openBolt(path); err == nil || !strings.Contains(err.Error(), "later version") || !strings.Contains(err.Error(), "-fabric-file") {
		t.Errorf("a store of a later format: %v", err)
	}
}

func FuzzCheckPages(f *testing.F) {
	path := filepath.Join(f.TempDir(), "planner.db")
	if _, err := loadOnce(path); err != nil {
		f.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(_ *testing.T, raw []byte) { checkPages(raw) })
}
