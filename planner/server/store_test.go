package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/planner"
)

// Records come back sorted after a new start, later ones win, nil deletes.
func TestStoreKeepsRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "planner.db")
	s, err := OpenStore(path)
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
	if s, err = OpenStore(path); err != nil {
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
	s, err := OpenStore(filepath.Join(t.TempDir(), "planner.db"))
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
	s, err := OpenStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := OpenStore(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("%v", err)
	}
	if _, err := OpenStore(filepath.Join(path, "x")); err == nil {
		t.Error("a store below a file was opened")
	}
}

func BenchmarkCommit(b *testing.B) {
	s, err := OpenStore(filepath.Join(b.TempDir(), "planner.db"))
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
