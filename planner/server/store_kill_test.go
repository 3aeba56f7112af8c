package server

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"ringlight/planner"
)

// memoryDir is a folder that costs no waits for a disk, where there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "store")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func loaded(t *testing.T, path string) string {
	t.Helper()
	s, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	st, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q", st)
}

// Goal: a kill in mid-write leaves the state before the commit or after it,
// whole, wherever the write was broken off: 1,000 times and more.
// Method: the file before a commit with as much of what the commit wrote as had
// come: the pages in their order, the last of them torn anywhere, the page that
// makes it valid last, torn at every byte of its content.
func TestThousandKillsInMidCommit(t *testing.T) {
	const page, content = 4096, 16 + 64
	dir := memoryDir(t)
	path, cut := filepath.Join(dir, "planner.db"), filepath.Join(dir, "cut.db")
	s, err := openBolt(path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(5, 9))
	read := func() ([]byte, string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		st, err := s.Load()
		if err != nil {
			t.Fatal(err)
		}
		return raw, fmt.Sprintf("%q", st)
	}
	before, was := read()
	kills, old, done := 0, 0, 0
	for commit := range 12 {
		var batch []planner.Record
		for i := range 60 {
			batch = append(batch, planner.Record{Key: fmt.Sprintf("node/%d", i*(1+commit%3)), Value: fmt.Appendf(nil, "%d %0200d", commit, i)})
		}
		if err := s.Commit(batch); err != nil {
			t.Fatal(err)
		}
		after, is := read()
		raw := append(bytes.Clone(before), make([]byte, max(0, len(after)-len(before)))...)
		kill := func(raw []byte, what string) {
			if err := os.WriteFile(cut, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			switch got := loaded(t, cut); got {
			case was:
				old++
			case is:
				done++
			default:
				t.Fatalf("commit %d, %s: neither the state before nor after: %.300s", commit, what, got)
			}
			kills++
		}
		for at := 2 * page; at < len(after); at += page {
			if bytes.Equal(raw[at:at+page], after[at:at+page]) {
				continue
			}
			for range 4 {
				torn := bytes.Clone(raw)
				copy(torn[at:], after[at:at+rnd.IntN(page)])
				kill(torn, fmt.Sprintf("page %d torn", at/page))
			}
			copy(raw[at:at+page], after[at:at+page])
			kill(raw, fmt.Sprintf("up to page %d", at/page))
		}
		for at := 0; at < 2*page; at += page {
			if bytes.Equal(raw[at:at+page], after[at:at+page]) {
				continue
			}
			for n := range content + 1 {
				torn := bytes.Clone(raw)
				copy(torn[at:], after[at:at+n])
				kill(torn, fmt.Sprintf("meta page %d, %d bytes", at/page, n))
			}
		}
		before, was = after, is
	}
	s.Close()
	t.Logf("%d kills: %d before, %d after", kills, old, done)
	if kills < 1000 || old == 0 || done == 0 {
		t.Errorf("%d kills, %d before, %d after", kills, old, done)
	}
}

// Goal: the same with processes that are really killed: what Commit has said to
// be on disk is there in the next life, and nothing is half there.
// Method: this test again as a process that commits pairs and prints what it has
// committed, ended by SIGKILL wherever it is.
func TestKilledPlannerKeepsItsStore(t *testing.T) {
	if path := os.Getenv("STORE_WRITER"); path != "" {
		s, err := openBolt(path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		st, err := s.Load()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		n, _ := st.Number("a")
		for {
			n++
			v := strconv.AppendUint(nil, n, 10)
			if err := s.Commit([]planner.Record{{Key: "a", Value: v}, {Key: fmt.Sprintf("node/%d", n%500), Value: bytes.Repeat(v, 40)}, {Key: "z", Value: v}}); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(n)
		}
	}
	path := filepath.Join(memoryDir(t), "planner.db")
	rnd := rand.New(rand.NewPCG(2, 4))
	for life := range 40 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledPlannerKeepsItsStore$")
		cmd.Env = append(os.Environ(), "STORE_WRITER="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told, last := rnd.IntN(60), uint64(0)
		for lines := bufio.NewScanner(out); lines.Scan(); told-- {
			if last, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
				t.Fatalf("life %d: %s", life, lines.Text())
			}
			if told == 0 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		s, err := openBolt(path)
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		st, err := s.Load()
		a, _ := st.Number("a")
		z, _ := st.Number("z")
		if err != nil || a < last || a != z {
			t.Fatalf("life %d: %d and %d, %d was committed, %v", life, a, z, last, err)
		}
		s.Close()
	}
}
