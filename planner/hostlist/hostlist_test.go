package hostlist

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var forms = []struct{ short, long string }{
	{"n[001-004,007],login1", "n001 n002 n003 n004 n007 login1"},
	{"n[9-11]", "n9 n10 n11"},
	{"n[99-101]", "n99 n100 n101"},
	{"n[099-100]", "n099 n100"},
	{"a,b7,a[1-2]", "a b7 a1 a2"},
	{"n[3,1-2]", "n3 n1 n2"},
	{"n[1,01,001]", "n1 n01 n001"},
	{"rack-2.hall_1", "rack-2.hall_1"},
	{"n[0-1,1]", "n0 n1 n1"},
}

// Goal: the short form says the hosts, in their order, and is the shortest of one
// name.
// Method: both ways over a table; several brackets are read.
func TestShortForm(t *testing.T) {
	for _, f := range forms {
		got, err := Parse(f.short, 100)
		if err != nil || strings.Join(got, " ") != f.long {
			t.Errorf("%s: %v, %v", f.short, got, err)
		}
		if got := Print(strings.Fields(f.long)); got != f.short {
			t.Errorf("%s: written as %s", f.short, got)
		}
	}
	if got, err := Parse("r[1-2]n[08-09]-ib", 4); err != nil || strings.Join(got, " ") != "r1n08-ib r1n09-ib r2n08-ib r2n09-ib" {
		t.Errorf("%v, %v", got, err)
	}
}

// Goal: what is no list, or too long a one, is refused before it is expanded.
// Method: a table.
func TestNoList(t *testing.T) {
	for _, bad := range []string{"", ",", "a,", "n[", "n]", "n[1", "n[]", "n[1-]", "n[-1]", "n[2-1]", "n[a]", "n[[1]]", "n[1,,2]", "n 1", "n[1-2][", "n[0-99999999999999999]", "n[0-10]", "n[0-4][0-1]", "a,b,c,d,e,f,g,h,i,j,k", "n[1-1-1]", "n[0000000000000000001]", "n\x00", "é"} {
		if got, err := Parse(bad, 9); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// Goal: a list that is read and written again says the same hosts, and no input
// expands more than is allowed.
func FuzzList(f *testing.F) {
	for _, x := range forms {
		f.Add(x.short)
	}
	f.Add("r[1-2]n[08-09]-ib")
	f.Add("n[0-999999999999999999]")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := Parse(text, 300)
		if err != nil {
			return
		}
		if len(hosts) > 300 || len(hosts) == 0 {
			t.Fatalf("%q: %d hosts", text, len(hosts))
		}
		again, err := Parse(Print(hosts), 300)
		if err != nil || !slices.Equal(hosts, again) {
			t.Fatalf("%q: %q is written as %q, %v", text, hosts, Print(hosts), err)
		}
	})
}

// Goal: both ways agree with Slurm's own.
// Method: scontrol show hostnames of what is written here, and show hostlist of
// the hosts read here, for 60 random lists; skipped where there is no scontrol.
func TestSlurmReadsTheSame(t *testing.T) {
	scontrol, err := exec.LookPath("scontrol")
	if err != nil {
		t.Skip("no scontrol (package slurm-client)")
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf") // it wants one, though it asks nobody
	if err := os.WriteFile(conf, []byte("ClusterName=x\nSlurmctldHost=localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		cmd := exec.Command(scontrol, append([]string{"show"}, args...)...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+conf)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("scontrol show %q: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	rng := rand.New(rand.NewPCG(1, 18))
	for range 60 {
		var hosts []string
		for range 1 + rng.IntN(12) {
			stem, width, at := []string{"n", "gpu-", "r1n", "host.a"}[rng.IntN(4)], 1+rng.IntN(4), rng.IntN(120)
			for range 1 + rng.IntN(9) {
				hosts = append(hosts, fmt.Sprintf("%s%0*d", stem, width, at))
				at++
			}
		}
		short := Print(hosts)
		if got := strings.Fields(run("hostnames", short)); !slices.Equal(got, hosts) {
			t.Errorf("%s: Slurm reads %q, want %q", short, got, hosts)
		}
		theirs := run("hostlist", strings.Join(hosts, ","))
		if got, err := Parse(theirs, len(hosts)); err != nil || !slices.Equal(got, hosts) {
			t.Errorf("Slurm writes %s: read as %q, %v", theirs, got, err)
		}
	}
}
