package wiring

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringlight/mzi/detmath"
)

// optimum asks cbc for the most circuits that can stay. It skips the test,
// with the reason, where cbc is not installed (package coinor-cbc).
func optimum(t *testing.T, top Topology, old Half) int {
	t.Helper()
	cbc, err := exec.LookPath("cbc")
	if err != nil {
		t.Skip("no cbc on this machine (package coinor-cbc): the optimum is unknown")
	}
	file := filepath.Join(t.TempDir(), "rewire.lp")
	if err := os.WriteFile(file, []byte(programme(top, old)), 0o600); err != nil {
		t.Fatal(err)
	}
	solution := file + ".sol"
	out, err := exec.Command(cbc, file, "-sec", "60", "-solve", "-solution", solution).CombinedOutput()
	if err != nil {
		t.Fatalf("cbc: %v\n%s", err, out)
	}
	text, err := os.ReadFile(solution)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if !strings.HasPrefix(first, "Optimal") {
		t.Fatalf("cbc did not prove an optimum in a minute: %s", first)
	}
	value, err := strconv.ParseFloat(first[strings.LastIndexByte(first, ' ')+1:], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(max(value, -value) + 0.5)
}

// Groups of more spine ports than pods are where the search is furthest from
// the optimum.
// Method: with RINGLIGHT_OPTIMUM set (make optimum), 200 random ones that cbc
// solves within a second or so; the least share and those below 0.97 are
// printed, of the first answer the least as well.
func TestMorePortsThanPodsAgainstTheSolver(t *testing.T) {
	if os.Getenv("RINGLIGHT_OPTIMUM") == "" {
		t.Skip("200 runs of a solver and of a search: RINGLIGHT_OPTIMUM is not set (make optimum)")
	}
	r := detmath.Random(13)
	least, firsts, sum, proved, solved := 1.0, 1.0, 0.0, 0, 0
	const all, steps = 200, 2_000_000
	for n := range all {
		pods := 3 + r.Below(8)
		g := randomGroup(t, &r, pods, 2*(pods/2+1+r.Below(14)), r.Below(2)*125, 100+r.Below(3)*100)
		best := optimum(t, g.Topology, g.Old)
		if best == 0 {
			continue
		}
		h, err := Rewire(g, uint64(n), steps)
		if err != nil {
			t.Fatal(err)
		}
		first, err := g.First()
		if err != nil {
			t.Fatal(err)
		}
		kept := h.Kept(g.Old)
		solved++
		share := float64(kept) / float64(best)
		if least, firsts, sum = min(least, share), min(firsts, float64(first.Kept(g.Old))/float64(best)), sum+share; kept == best {
			proved++
		}
		if share < 0.97 {
			t.Logf("%d pods, %d spine ports: %d of %d", g.Pods, g.SpinePorts(), kept, best)
		}
		if kept > best || share < 0.965 {
			t.Errorf("%d pods, %d spine ports: %d kept, the optimum is %d", g.Pods, g.SpinePorts(), kept, best)
		}
	}
	t.Logf("least %.3f of the optimum, mean %.4f, the optimum itself in %d of %d; the least first answer %.3f", least, sum/float64(solved), proved, solved, firsts)
}

// programme writes [CROSS] eq. 1-7 for the even half: one integer variable
// for each link, switch and way.
func programme(top Topology, old Half) string {
	var objective, rows, integers bytes.Buffer
	out, in := make([]string, len(old.To)), make([]string, len(old.To))
	for n, l := range top.Links {
		var all string
		for k := range old.Switches {
			for way, ends := range [][2]int32{{l.I, l.J}, {l.J, l.I}} {
				if way == 1 && l.I == l.J {
					continue
				}
				x := fmt.Sprintf(" + x%d_%d_%d\n", n, k, way)
				all += x
				out[k*old.Pods+int(ends[0])] += x
				in[k*old.Pods+int(ends[1])] += x
				if old.Row(k)[ends[0]] == ends[1] {
					objective.WriteString(x)
				}
				fmt.Fprintf(&integers, " x%d_%d_%d\n", n, k, way)
			}
		}
		fmt.Fprintf(&rows, "%s = %d\n", all, l.circuits())
	}
	for _, side := range [][]string{out, in} {
		for _, uses := range side {
			if uses != "" {
				rows.WriteString(uses + " <= 1\n")
			}
		}
	}
	return "Maximize\n obj: 0 zero\n" + objective.String() + "Subject To\n none: zero = 0\n" + rows.String() +
		"Binary\n" + integers.String() + "End\n"
}

// busy is the processor time this process has used, which other work on the
// machine does not lengthen as it does the time of day.
func busy(t testing.TB) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
