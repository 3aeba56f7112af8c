package nats

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/live"
)

// witness keeps what agents and planner say, so that a run in which light changed
// says which, and why.
type witness struct {
	mu    sync.Mutex
	began time.Time
	lines []testimony
	seq   map[proto.NodeID]uint64 // last event heard

	isolated map[proto.NodeID]bool
}

type testimony struct {
	at   time.Time
	node int // planners: ofPlanner
	text string
	// An agent took its node out of service, or says why: it may be the cause of what
	// comes minutes later.
	grave bool
}

const ofPlanner = -1

func newWitness() *witness {
	return &witness{began: time.Now(), seq: map[proto.NodeID]uint64{}, isolated: map[proto.NodeID]bool{}}
}

func (w *witness) say(node int, text string, grave bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, testimony{time.Now(), node, text, grave})
	if grave {
		w.isolated[proto.NodeID(node)] = true
	}
}

// event takes what an agent tells its planner, which comes again until that has
// acknowledged it.
func (w *witness) event(e *proto.Event) {
	w.mu.Lock()
	again := e.Seq <= w.seq[e.Node]
	w.seq[e.Node] = max(e.Seq, w.seq[e.Node])
	w.mu.Unlock()
	if !again {
		w.say(int(e.Node), fmt.Sprintf("event %d: %v, bundle %d %v from %v, %v side, peer %d, cause %v, resolved %v, at %v: %s", e.Seq, e.Kind, e.Bundle, e.Path, e.FromPath,
			e.Side, e.Peer, e.Cause, e.Resolved, time.Duration(e.AtMicros)*time.Microsecond, e.Text), e.Kind == proto.EvPathFailed || e.Kind == proto.EvIsolated)
	}
}

func (t testimony) line(began time.Time) string {
	who := "planner"
	if t.node != ofPlanner {
		who = fmt.Sprint("node ", t.node)
	}
	return fmt.Sprintf("%8.3f s %s: %s", t.at.Sub(began).Seconds(), who, t.text)
}

// Of what is told at once; the file has all.
const (
	maxNamed = 20
	maxTold  = 40
)

// account names each path whose light changed after since, with what its node said
// from shortly before on, and what the planner did then.
func (w *witness) account(t *testing.T, paths []live.PathLight, ended, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	file, err := os.CreateTemp("", "broker-cluster-*.log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, l := range w.lines {
		fmt.Fprintln(file, l.line(w.began))
	}
	first, changed := ended, map[int]bool{}
	for _, p := range paths {
		if at := ended.Add(-p.SinceChange); at.After(since) {
			line := fmt.Sprintf("changed: node %d bundle %d %v, lit %v since %.3f s", p.Node, p.Bundle, p.Path, p.Lit, at.Sub(w.began).Seconds())
			fmt.Fprintln(file, line)
			if changed[int(p.Node)] = true; len(changed) <= maxNamed {
				t.Log(line)
			}
			if at.Before(first) {
				first = at
			}
		}
	}
	t.Logf("%d nodes whose light changed; %d isolated themselves at any time; all that was said: %s", len(changed), len(w.isolated), file.Name())
	told := 0
	for _, l := range w.lines {
		near := l.node == ofPlanner && l.at.Sub(first).Abs() < 5*time.Second || changed[l.node] && (l.grave || l.at.After(first.Add(-10*time.Second)))
		if near && told < maxTold {
			told++
			t.Log(l.line(w.began))
		}
	}
}

// log is a log that the witness reads.
func (w *witness) log() *slog.Logger { return slog.New(hears{w: w, node: ofPlanner}) }

// hears is of one program; the agents' name their node.
type hears struct {
	w    *witness
	node int
}

func (h hears) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (h hears) WithGroup(string) slog.Handler { return h }

func (h hears) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "node" {
			h.node = int(a.Value.Int64())
		}
	}
	return h
}

func (h hears) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprint(&b, " ", a)
		return true
	})
	h.w.say(h.node, b.String(), false)
	return nil
}
