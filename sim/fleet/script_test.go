package fleet

import (
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Goal: what a run prints is what a script reads.
// Method: every verb, drawn and by hand, there and back.
func TestFaultsReadAsWritten(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 50, GPUsPerNode: 4, K: 3, TP: 32, Core: fabric.DefaultCore(4)})
	if err != nil {
		t.Fatal(err)
	}
	list := Random(f, 8, 3, 240*time.Hour, 2)
	seen := map[Verb]bool{}
	for _, x := range list {
		seen[x.Verb] = true
		if x.For > 0 {
			seen[forms[x.Verb].undo] = true
		}
		got, err := parseFault(x.String())
		if err != nil || got != x {
			t.Fatalf("%q read as %+v, %v; want %+v", x, got, err, x)
		}
		if err := x.check(f, f.Nodes); err != nil {
			t.Error(err)
		}
	}
	for _, line := range []string{"3s network set 1 2 3", "commit:7+1.5ms switch crash stage:3 for 2s", "commit:1+0s planner kill for 5s",
		"10s switch dark 12 for 1m0s", "10s switch stick 3 b 5", "1h0m0s jobs apply 1:4/8/1/2 12:2/4/1/1", "0s jobs apply none", "20s fabric edit nodes=96 k=3 sizes=16x2 spares=8 end=3,7 drain move moves=few recable=4",
		"1s rollout run v2", "2s rollout stop", "1s agent install 5 v1"} {
		if x, err := parseFault(line); err != nil || x.String() != line {
			t.Errorf("%q is %v, %v", line, x, err)
		}
	}
	for v := range numVerbs {
		if !seen[v] && v != Network && v < RolloutRun {
			t.Errorf("the generator never draws %v", v)
		}
	}
}

// everything has a line of every kind, and of every fault of a board.
const everything = `
1s    node dark 5 group 1       # two adjacent losses
1.0005s node dark 6 group 1
10s   node on 5
11s   node on 6
20s   host fault 9
30s   host ok 9
40s   agent crash 12
42s   agent start 12
50s   agent reboot 13 5s
60s   fibre cut 2/1/external1 both
62s   fibre cut 3/0/external2 in
70s   fibre mend 2/1/external1 both
71s   fibre mend 3/0/external2 in
80s   fibre glitch 4/1/external1 out 300us
81s   fibre flap 4/1/external1 both 2ms 12
100s  board break 14 stuck:1/0/17
200s  board repair 14 stuck:1/0/17
101s  board break 1 laser:0/0/3
201s  board repair 1 laser:0/0/3
102s  board break 8 diode:1/0/external1/2
202s  board repair 8 diode:1/0/external1/2
103s  board break 10 walk:0/0/20
203s  operator drain 10
204s  board repair 10 walk:0/0/20
205s  agent calibrate 10 0
220s  operator undrain 10
110s  board break 16 hot:1/0
210s  board repair 16 hot:1/0
120s  board break 0 bus:2
130s  board repair 0 bus:2
140s  board break 17 short:0/0/1
240s  board repair 17 short:0/0/1
150s  board break 18 drift:1/0
155s  board repair 18 drift:1/0
156s  operator drain 18
160s  agent calibrate 18 1
175s  operator undrain 18
300s  broker down
301s  node dark 7
305s  broker up 2s
320s  node on 7
330s  link cut 11
340s  link mend 11
350s  partition cut 0 9
380s  partition mend 0 9
400s  planner kill
401s  node dark 3
402s  planner start
410s  node on 3
420s  planner pause
425s  planner resume
430s  planner cut
435s  rival start
450s  planner mend
460s  rival kill
500s  planner lose
505s  planner start
520s  operator switch 4 right forced_switch 6
525s  operator switch 4 right no_request loopback
530s  operator switch 2 left lockout loopback
535s  operator switch 2 left no_request loopback
1s    jobs apply 1:4/4/1/1 2:4/4/1/1
5s    switch crash 3 for 200ms
60s   switch dark 2
70s   switch on 2
100s  switch stick 1 a 2
120s  jobs apply 2:4/4/1/1 3:4/4/1/1
180s  switch free 1 a 2
200s  switch reboot 5 5s
250s  switch cut 6 for 10s
commit:5+20ms switch crash stage:1 for 3s
536s  agent install 9 v1
537s  rollout run v2
539s  rollout stop
540s  network set 5000 5000 5000
545s  agent starve 6 300000 for 5s
545s  switch starve 2 300000
546s  network shed 20000
550s  network shed 0
550s  switch feed 2
560s  fabric edit hold_off_us=50
`

// Goal: every kind of fault of the issue is a line, and none breaks anything.
// Method: a script with all of them, on a line and on a wrapped fabric.
func TestEveryLineOfTheScript(t *testing.T) {
	faults := script(t, everything)
	seen := map[Verb]bool{}
	for i := range faults {
		seen[faults[i].Verb] = true
	}
	for v := range numVerbs {
		if !seen[v] {
			t.Errorf("no line for %q", v)
		}
	}
	for k, topology := range map[int]fabric.Topology{2: fabric.Ring, 3: fabric.Line, 4: fabric.Ring} { // any order
		cfg := testConfig(t, 20, k, 32, topology)
		cfg.Fabric = mixed(t, 20, k, 32, topology)
		cfg.Span, cfg.Faults = 20*time.Minute, faults
		clean(t, run(t, cfg))
	}
}

// mixed is a fabric of nodes and of circuit switches.
func mixed(t *testing.T, nodes, k, tp int, topology fabric.Topology) *fabric.Fabric {
	t.Helper()
	core := testCores[0]
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: nodes, GPUsPerNode: 4, K: k, TP: tp, Topology: topology, Core: &core})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Goal: a wrong line is refused, with what was wrong.
// Method: a table.
func TestWrongLinesAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "want a time",
		"soon node dark 3":                   "time",
		"-1s node dark 3":                    "time",
		"1s node vanish 3":                   "node vanish",
		"1s node dark":                       "NODE is missing",
		"1s node dark x":                     "NODE",
		"1s node dark 3 4":                   "unexpected",
		"1s fibre cut 3/1/external3 both":    "external3",
		"1s fibre cut 3/1/loopback both":     "external",
		"1s fibre cut 3/1/external1 up":      "way",
		"1s fibre glitch 3/1/external1 both": "DURATION is missing",
		"1s board break 3 melted:1":          "melted",
		"1s network set 1 2":                 "missing",
		"1s network set 1 2 2000000":         "1000000",
		"1s node dark 3 group x":             "group",
		"1s node dark 3 for 0s":              "duration over 0",
		"1s network set 1 2 3 for 1s":        "nothing ends it",
		"commit:0+1s planner kill":           "N from 1",
		"commit:3 planner kill":              "duration",
		"1s switch crash stage:2":            "SWITCH",
		"commit:1+0s switch crash stage:0":   "1 and up",
		"1s switch host 3":                   "switch host",
		"1s switch stick 3 c 1":              "side",
		"1s jobs apply":                      "missing",
		"1s jobs apply 1:2/3":                "job",
	} {
		if _, err := parseFault(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
	if _, err := ParseScript(strings.NewReader("# nothing\n\n1s node dark 3\n2s node on\n")); err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("want an error that names line 4, got %v", err)
	}
	f := fabric.Default()
	for _, line := range []string{"1s node dark 64", "1s fibre cut 0/0/external1 both", "1s switch crash 0", "1s jobs apply none", "commit:1+0s planner kill"} {
		x, err := parseFault(line)
		if err != nil {
			t.Fatal(err)
		}
		if x.check(f, f.Nodes) == nil {
			t.Errorf("%q: taken for a fabric that has no such thing", line)
		}
	}
}

// Goal: of a direct core mirrors stick, and transceivers of servers do not: neither by a
// script nor drawn at random.
func TestOnlyMirrorsStick(t *testing.T) {
	f := directFabric(t, 32, 4)
	for s, want := range []bool{true, true, true, true, false} {
		x := Fault{Verb: MirrorStick, Node: proto.FirstSwitch + proto.NodeID(s)}
		if err := x.check(f, f.Nodes); (err == nil) != want {
			t.Errorf("switch %d: %v", s, err)
		}
	}
	stuck := 0
	for _, x := range Random(f, 1, 1, 24*time.Hour, 80) {
		if err := x.check(f, f.Nodes); err != nil {
			t.Error(err)
		}
		if x.Verb == MirrorStick {
			stuck++
		}
	}
	if stuck == 0 {
		t.Error("no mirror ever sticks")
	}
	fixed := fabric.Default()
	fixed.Core = fabric.DefaultLeafSpine()
	fixed.Core.LeafSpine.Switches = 0
	for _, x := range Random(fixed, 1, 1, time.Hour, 80) {
		if err := x.check(fixed, fixed.Nodes); err != nil || x.Node.IsSwitch() {
			t.Errorf("of fixed links: %v: %v", x, err)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"10s node dark 5", "1m fibre flap 3/1/external1 both 5ms 9", "1s board break 3 stuck:0/0/1", "0s broker up 1s", "1s network set 1 2 3", "1s node dark 1 group 2",
		"commit:2+3ms switch crash stage:4 for 1s", "1s switch stick 3 b 5", "1s jobs apply 1:4/8/1/2 none"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		x, err := parseFault(line)
		if err != nil {
			return
		}
		y, err := parseFault(x.String())
		if err != nil || y != x {
			t.Errorf("%q is %+v, written %q, read again %+v, %v", line, x, x, y, err)
		}
	})
}
