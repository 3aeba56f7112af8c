package agent

import (
	"bufio"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/proto"
	"ringlight/sim/damage"
)

// memoryDir is a folder that costs no waits for a disk, where there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// lived writes records as an agent does, folding them up now and then, and
// gives the files after each of them.
func lived(t *testing.T, dir string, recs [][]byte) []map[string][]byte {
	t.Helper()
	f, _, err := openJournal(dir, proto.Event{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var out []map[string][]byte
	for i, r := range recs {
		if f.limit = 1 << 30; i == len(recs)/3 {
			f.limit = 0
		}
		if err := f.append(r); err != nil {
			t.Fatal(err)
		}
		out = append(out, files(t, dir))
	}
	return out
}

// Goal: a kill in mid-write leaves the record whole or not at all, wherever the
// write was broken off: 1,000 times and more.
// Method: at every byte of every record of a life, with the mark as it was
// before the record and as it is after it; the rest of the page is missing or
// zero.
func TestThousandKillsInMidWrite(t *testing.T) {
	dir := filepath.Join(memoryDir(t), "j")
	recs := lines(t, 9)
	history := lived(t, dir, recs)
	kills := 0
	for k := 1; k < len(recs); k++ {
		before, after := history[k-1], history[k]
		for name, raw := range after { // any order: each its own kill
			old, was := before[name], before[name] != nil
			if name == lockName || strings.HasSuffix(name, markSuffix) || was && len(raw) <= len(old) {
				continue
			}
			if !was || !strings.HasPrefix(name, logName) {
				continue // folded up: files are renamed whole, see TestJournalFoldsUp
			}
			for cut := len(old); cut <= len(raw); cut++ {
				for _, tail := range []string{"", strings.Repeat("\x00", len(raw)-cut)} {
					content := maps.Clone(before)
					content[name] = append(raw[:cut:cut], tail...)
					laid(t, dir, content)
					want := folded(t, recs[:k])
					if cut == len(raw) {
						want = folded(t, recs[:k+1])
					}
					if got := reopen(t, dir); got != want {
						t.Fatalf("record %d cut at byte %d of %d: %s, want %s", k, cut-len(old), len(raw)-len(old), got, want)
					}
					kills++
				}
			}
		}
	}
	t.Logf("%d kills", kills)
	if kills < 1000 {
		t.Errorf("only %d kills", kills)
	}
}

// Goal: the same with processes that are really killed: what append has said to
// be on disk is there in the next life.
// Method: this test again as a process that writes and prints what it has
// written, ended by SIGKILL wherever it is.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := os.Getenv("JOURNAL_WRITER")
	if dir != "" {
		f, j, err := openJournal(dir, proto.Event{})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		for n := j.Last + 1; ; n++ {
			f.limit = 2000
			if err := f.append(fmt.Appendf(nil, `{"last":%d,"events":[{"Version":1,"Seq":%d,"Kind":1,"Count":1,"Text":"%s"}],"acked":%d}`,
				n, n, strings.Repeat("x", int(n%97)), n-min(n, 5))); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			fmt.Println(n)
		}
	}
	dir = filepath.Join(memoryDir(t), "j")
	rnd := rand.New(rand.NewPCG(1, 2))
	for life := range 50 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriterLosesNothing$")
		cmd.Env = append(os.Environ(), "JOURNAL_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told, last := 1+rnd.IntN(40), uint64(0)
		for s := bufio.NewScanner(out); s.Scan(); {
			n, err := strconv.ParseUint(s.Text(), 10, 64)
			if err != nil {
				t.Fatalf("life %d: %s", life, s.Text())
			}
			if last = n; told == 0 {
				_ = cmd.Process.Kill()
			}
			told--
		}
		_ = cmd.Wait()
		f, j, err := openJournal(dir, proto.Event{})
		if err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		if j.Last < last || f.damage != nil {
			t.Fatalf("life %d: ends with %d, %d was on disk; damage %v", life, j.Last, last, f.damage)
		}
		f.close()
	}
}

// Goal: 500 damaged journals: no panic, no wrong light, no number that goes back
// without a word, and a node that a planner has back in its ring.
// Method: a ring of three whose middle node has been told of a dead host and
// of a well one, so that its journal has both. The node's next life finds its
// journal damaged in each of the ways; every change of light on any board
// counts, by the boards' own detectors.
func TestDamagedJournalMovesNoLight(t *testing.T) {
	f := newFleet(t, 3, 2)
	x := f.nodes[1]
	var recs [][]byte
	x.written = func(raw []byte) { recs = append(recs, slices.Clone(raw)) }
	f.join()
	for _, kind := range []AskVerb{AskHostFault, AskHostOK} {
		f.deliver(x, Input{Kind: InAsk, Ask: Ask{Verb: kind, ID: 1}})
		f.run(100*time.Millisecond, nil)
	}
	f.commit(f.ring(0, 2))
	f.must("the ring again", time.Second, func() bool { return f.linkedTo(0, 1) && f.linkedTo(1, 2) })
	f.run(2*time.Second, nil)
	f.checkCycle(0, 1, 2)
	x.written = nil
	last := x.disk.Journal.Last

	dir := filepath.Join(memoryDir(t), "j")
	history := lived(t, dir, recs)
	changes := 0
	f.edge = func(*hal.Edge) { changes++ }
	rnd := rand.New(rand.NewPCG(11, 5))
	found, refused, silent := 0, 0, 0
	for i := range 520 {
		content, what := damage.Spoil(rnd, i%damage.Ways, history, filepath.Base(dir)+markSuffix)
		laid(t, dir, content)
		file, j, err := openJournal(dir, (&Config{Node: 1, Session: 7}).lostEvent())
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "journal") {
				t.Errorf("%s: %v names no file", what, err)
			}
			continue
		}
		if file.damage != nil {
			found++
			if s := j.State; s.Applied != nil || s.Staged != nil || s.Reasons != 0 || s.Requests != nil {
				t.Errorf("%s: believed %+v", what, s)
			}
		} else if j.Last < last {
			t.Errorf("%s: last event %d, was %d, and nothing is said", what, j.Last, last)
		} else if raw := j.Snapshot(); string(raw) != folded(t, recs) {
			silent++
			t.Errorf("%s: not noticed: %s", what, raw)
		}
		file.close()
		f.kill(x)
		x.disk, x.events, x.submit = Disk{Journal: j}, nil, 0
		f.boot(x)
		f.run(60*time.Millisecond, nil)
		if changes != 0 || x.submit != 0 {
			t.Fatalf("%s: %d changes of light, %d ops that switch", what, changes, x.submit)
		}
		if i%26 == 0 {
			f.link(x, true)
			f.heard()
			f.run(500*time.Millisecond, nil)
			if n := len(x.events); n == 0 || x.events[n-1].Seq < last && j.Told == "" {
				t.Errorf("%s: %d events, numbers go back", what, n)
			}
			f.commit(f.ring(0, 2))
			f.must(what+": back in the ring", time.Second, func() bool { return f.linkedTo(0, 1) && f.linkedTo(1, 2) })
			f.checkCycle(0, 1, 2)
			if f.run(100*time.Millisecond, nil); changes != 0 {
				t.Fatalf("%s: %d changes of light by the plan that was there", what, changes)
			}
		}
	}
	f.checkCycle(0, 1, 2)
	t.Logf("520 damaged journals: %d begun anew, %d refused, %d without effect", found, refused, 520-found-refused-silent)
	if found < 300 {
		t.Errorf("only %d damages were noticed", found)
	}
}

// Goal: a folder of before, mark and all, which nothing on disk tells from the
// real one, takes no light with what it has of a host's fault or of a drain; also
// where the node has a bundle in loopback anyway, as the end of its ring.
// Method: the journal as it was at every record of such a history, in the middle
// of a ring and at its end.
func TestOlderJournalAsAWholeMovesNoLight(t *testing.T) {
	for first := range 2 {
		f := newFleet(t, 3, 2)
		x := f.nodes[1]
		var older []Journal
		x.written = func([]byte) { older = append(older, x.disk.Restore()) }
		f.join()
		for _, kind := range []AskVerb{AskHostFault, AskHostOK} {
			f.deliver(x, Input{Kind: InAsk, Ask: Ask{Verb: kind, ID: 1}})
			f.run(100*time.Millisecond, nil)
		}
		for i, verb := range []proto.Verb{proto.VerbDrain, proto.VerbUndrain} {
			f.publish(proto.Topics{Fabric: "f1"}.Command(x.id), &proto.Command{Version: proto.Version, Node: x.id, Term: f.term, Session: x.agent.cfg.Session,
				TTLMillis: 1000, Corr: proto.Corr{byte(i + 1)}, Verb: verb})
			f.run(100*time.Millisecond, nil)
		}
		f.commit(f.ring(first, 2))
		f.must("the ring again", time.Second, func() bool { return (first == 1 || f.linkedTo(0, 1)) && f.linkedTo(1, 2) })
		f.run(2*time.Second, nil)
		x.written = nil
		changes, modes := 0, map[proto.Mode]int{}
		f.edge = func(*hal.Edge) { changes++ }
		for i, j := range older {
			if j.State == nil {
				continue
			}
			m := node.New(node.Config{ID: 1, Bundles: 2})
			m.Restore(*j.State)
			modes[m.Mode()]++
			f.kill(x)
			x.disk, x.events, x.submit = Disk{Journal: j}, nil, 0
			f.boot(x)
			if f.run(100*time.Millisecond, nil); changes != 0 || x.submit != 0 {
				t.Fatalf("ring from node %d, journal as after record %d, %v: %d changes of light, %d ops that switch", first, i, m.Mode(), changes, x.submit)
			}
		}
		if modes[proto.ModeHostDown] == 0 || modes[proto.ModeDrained] == 0 {
			t.Errorf("none of %d had the fault or the drain: %v", len(older), modes)
		}
	}
}
