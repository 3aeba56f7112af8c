package node

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: the model of terms, prepare and commit (model/commit.pml) says of every
// message what the production machine does: the same answer, and after it the same
// term, life, plans applied and staged and decision kept, over restarts; and its
// planners decide what the machines' own answers allow, no more.
// Method: traces of random runs of the model, made by spin (`make model` makes them
// anew and compares), replayed line by line.
func TestModelIsTheMachine(t *testing.T) {
	files, err := filepath.Glob("model/traces/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no traces", err)
	}
	total := map[string]int{}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := newModelRun(total)
		for n, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
			if err := r.line(line); err != nil {
				t.Fatalf("%s:%d: %s: %v", name, n+1, line, err)
			}
		}
	}
	for _, what := range []string{"stage ok", "stage stale", "decide ok", "decide notstaged", "restart", "decided"} {
		if total[what] == 0 {
			t.Errorf("no trace has %q", what)
		}
	}
	t.Log(total)
}

// Goal: what the machine does, the model says too; so it misses nothing that the
// machine does with plans of any number, of two lives, in any order.
// Method: a random run of three machines, written down as a script of the model, which
// `make model` runs; here it is held to be what the machines do today.
func TestMachineIsTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(25, 8))
	var out bytes.Buffer
	codes := map[string]int{}
	for range 4 {
		r := newModelRun(map[string]int{})
		out.WriteString("\trestart();\n") // of a disk that holds nothing
		for i := range r.m {
			fmt.Fprintf(&out, "\tseen[%d] = 0; from[%d] = 0; applied[%d] = 0; staged[%d] = 0; early[%d] = 0;\n", i, i, i, i, i)
		}
		for p := 1; p < len(r.plans); p++ {
			r.plans[p] = modelPlan{term: 1 + proto.Term(rnd.IntN(2)), gen: 1 + proto.Generation(rnd.IntN(2)), life: 1 + rnd.Uint64N(2)}
			fmt.Fprintf(&out, "\tGIVEN(%d, %d, %d, %d)\n", p, r.plans[p].term, r.plans[p].gen, r.plans[p].life)
		}
		for range 30 {
			i, p, verb := rnd.IntN(3), 1+rnd.IntN(3), [...]string{"stage", "stage", "decide", "sign"}[rnd.IntN(4)]
			line := fmt.Sprintf("%s %d %d", verb, i, p)
			call := fmt.Sprintf("%s(%d, %d)", verb, i, p)
			if verb == "sign" {
				line = fmt.Sprintf("sign %d %d.%d", i, r.plans[p].term, r.plans[p].life)
				call = fmt.Sprintf("sign(%d, %d, %d)", i, r.plans[p].term, r.plans[p].life)
			}
			if err := r.line(line); err != nil {
				t.Fatal(err)
			}
			code := "ok"
			if n := len(r.acks); n > 0 {
				code = modelCodes[r.acks[n-1].Code]
			}
			codes[verb+" "+code]++
			fmt.Fprintf(&out, "\t%s; IS(%d, %s, %s)\n", call, i, code, strings.Join(r.holds(i), ", "))
		}
	}
	for _, what := range []string{"stage conflict", "stage stale", "decide conflict", "decide stale", "decide notstaged"} {
		if codes[what] == 0 {
			t.Errorf("no step was %s: %v", what, codes)
		}
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("model/machine.txt", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile("model/machine.txt"); err != nil || !bytes.Equal(stored, out.Bytes()) {
		t.Errorf("model/machine.txt is not what the machines do (%v); -update writes it, `make model` judges it", err)
	}
}

// holds is what a machine holds, as the model names it.
func (r *modelRun) holds(i int) []string {
	m := r.m[i]
	plan := func(h *Held) byte { _, _, d := h.name(); return d[0] }
	return strings.Fields(fmt.Sprint(m.seenTerm, m.seenLife, plan(m.applied), plan(m.staged), m.early.Plan[0]))
}

type modelPlan struct {
	term  proto.Term
	gen   proto.Generation
	life  uint64
	parts uint
}

// modelRun is three machines under a model's trace. Of the first one the disk lags.
type modelRun struct {
	m       [3]*Machine
	plans   [4]modelPlan
	okays   [4]uint // whose OK has left, a bit each
	waiting []int   // plans whose OK by machine 0 waits for its disk
	durable State
	now     time.Duration
	who     int
	verb    string
	acks    []proto.Ack
	total   map[string]int
}

func newModelRun(total map[string]int) *modelRun {
	r := &modelRun{total: total}
	for i := range r.m {
		r.start(i, State{})
	}
	return r
}

func (r *modelRun) start(i int, s State) {
	r.m[i] = New(Config{ID: proto.NodeID(i), Bundles: 2})
	r.m[i].Restore(s)
	r.step(i, Event{Kind: Adopt, Lits: []BundleLight{{Path: proto.Loopback, Ready: true}, {Bundle: 1, Path: proto.Loopback, Ready: true}}})
}

func (r *modelRun) step(i int, ev Event) {
	r.now += time.Millisecond
	ev.At = r.now
	r.who, r.acks = i, nil
	for _, a := range r.m[i].Step(ev, nil) {
		if a.Kind == Answer {
			r.acks = append(r.acks, a.Ack)
		}
	}
}

var modelCodes = map[proto.Code]string{proto.OK: "ok", proto.Stale: "stale", proto.Conflict: "conflict", proto.NotStaged: "notstaged"}

// line does what a line says, or holds what is against it.
func (r *modelRun) line(line string) error {
	var i, p int
	var a, b, c, d, e uint64
	var code string
	verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch verb {
	case "start", "raise", "overdue":
		return nil // of a planner; the second answer to the last desired state follows
	case "prepare":
		_, err := fmt.Sscanf(line, "prepare planner %d plan %d = %d.%d life %d for %d", &i, &p, &a, &b, &c, &d)
		r.plans[p] = modelPlan{proto.Term(a), proto.Generation(b), c, uint(d)}
		return err
	case "decide":
		if n, _ := fmt.Sscanf(line, "decide planner %d plan %d", &i, &p); n == 2 {
			r.total["decided"]++
			if lacks := r.plans[p].parts &^ r.okays[p]; lacks != 0 {
				return fmt.Errorf("decided without %b", lacks)
			}
			return nil
		}
		if _, err := fmt.Sscanf(line, "decide %d %d", &i, &p); err != nil {
			return err
		}
		r.step(i, Event{Kind: Decide, Decision: &proto.Decision{Version: proto.Version, Ring: 1, Term: r.plans[p].term, Generation: r.plans[p].gen, Plan: proto.Digest{byte(p)}, Verdict: proto.Commit}})
	case "stage":
		if _, err := fmt.Sscanf(line, "stage %d %d", &i, &p); err != nil {
			return err
		}
		x := r.plans[p]
		r.step(i, Event{Kind: Stage, Digest: proto.Digest{byte(p)}, Desired: &proto.Desired{Version: proto.Version, Node: proto.NodeID(i),
			Term: x.term, Generation: x.gen, Life: x.life, Plan: proto.Digest{byte(p)}, Decisions: []proto.RingID{1}}})
		if len(r.acks) > 0 && r.acks[0].Code == proto.OK {
			if i == 0 {
				r.waiting = append(r.waiting, p)
			} else {
				r.okays[p] |= 1 << i
			}
		}
	case "sign":
		if _, err := fmt.Sscanf(line, "sign %d %d.%d", &i, &a, &b); err != nil {
			return err
		}
		r.step(i, Event{Kind: HeardTerm, Term: proto.Term(a), Life: b})
	case "flush":
		r.durable = r.m[0].State()
		for _, p := range r.waiting {
			r.okays[p] |= 1
		}
		r.waiting = nil
	case "restart":
		r.waiting = nil
		r.start(0, r.durable)
		r.total[verb]++
	default:
		if _, err := fmt.Sscanf(line, "  %s seen %d.%d applied %d staged %d early %d", &code, &a, &b, &c, &d, &e); err != nil {
			return err
		}
		return r.compare(line, code)
	}
	r.verb = verb
	return nil
}

// compare holds the model's answer and state against the machine's.
func (r *modelRun) compare(line, code string) error {
	if len(r.acks) > 0 {
		code = modelCodes[r.acks[0].Code]
		r.total[r.verb+" "+code]++
		r.acks = r.acks[1:]
	}
	x := r.holds(r.who)
	if got := fmt.Sprintf("  %s seen %s.%s applied %s staged %s early %s", code, x[0], x[1], x[2], x[3], x[4]); len(r.acks) == 0 && got != line {
		return fmt.Errorf("the machine: %s", got)
	}
	if !strings.HasPrefix(line, "  "+code+" ") {
		return fmt.Errorf("the machine answers %s", code)
	}
	return nil
}
