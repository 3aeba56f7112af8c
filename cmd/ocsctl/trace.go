package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

func trace(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	circuits := c.flags.Bool("circuits", false, "a generation of circuits, not of rings")
	file := c.flags.String("o", "-", "file to write, - for stdout")
	words, err := c.read(args, help("trace"))
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return wrongUsage("trace", "one generation", "%d words", len(words))
	}
	gen, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil || gen == 0 || gen > proto.MaxCount {
		return wrongUsage("generation", "a number from 1", "%q", cli.Clip(words[0]))
	}
	q := proto.OpRequest{Noun: proto.NounTrace, Bundle: -1, Generation: proto.Generation(gen)}
	if *circuits {
		q.Node = proto.FirstSwitch
	}
	var marks []proto.TraceMark
	err = c.with(ctx, func(cl *client) error {
		return cl.Pages(ctx, q, func(r *proto.OpReply) { marks = append(marks, r.Trace...) })
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(chromeTrace(marks))
	if err != nil {
		return err
	}
	return write(out, *file, append(text, '\n'))
}

// traceEvent is one event of Chrome's trace format: X, a slice of so many
// microseconds from ts, or M, a name.
type traceEvent struct {
	Name string         `json:"name"`
	Ph   string         `json:"ph"`
	Ts   uint64         `json:"ts"`
	Dur  *uint64        `json:"dur,omitempty"` // of X
	Pid  int            `json:"pid"`
	Tid  uint64         `json:"tid"`
	Args map[string]any `json:"args,omitempty"`
}

// Processes of a trace.
const (
	pidPlanner = 1
	pidNodes   = 2
	pidLight   = 3 // a thread is a side of a node
)

// chrome collects the events of a trace. Times count from its first moment.
type chrome struct {
	zero   uint64
	events []traceEvent
	named  map[[2]uint64]bool
}

func chromeTrace(marks []proto.TraceMark) map[string]any {
	x := &chrome{named: map[[2]uint64]bool{}, events: []traceEvent{}}
	for i, m := range marks {
		if at := begins(&m); i == 0 || at < x.zero {
			x.zero = at
		}
	}
	x.generation(marks)
	for i := range marks {
		if m := &marks[i]; m.Stage == proto.TraceSwitched && m.Ledger != nil && m.Node != nil {
			x.light(m)
		}
	}
	return map[string]any{"traceEvents": x.events, "displayTimeUnit": "ms"}
}

// begins is when what a mark ends began.
func begins(m *proto.TraceMark) uint64 {
	if m.Ledger == nil {
		return m.AtMicros
	}
	return m.AtMicros - min(m.AtMicros, uint64(m.Ledger.TotalMicros()))
}

func (x *chrome) slice(pid int, tid uint64, name string, from, to uint64, args map[string]any) {
	x.events = append(x.events, traceEvent{Name: name, Ph: "X", Ts: from - x.zero, Dur: new(to - min(from, to)), Pid: pid, Tid: tid, Args: args})
}

// name names a thread, and its process, once.
func (x *chrome) name(pid int, process string, tid uint64, thread string) {
	for _, n := range []struct {
		key        [2]uint64
		what, name string
	}{{[2]uint64{uint64(pid), 1 << 63}, "process_name", process}, {[2]uint64{uint64(pid), tid}, "thread_name", thread}} {
		if !x.named[n.key] {
			x.named[n.key] = true
			x.events = append(x.events, traceEvent{Name: n.what, Ph: "M", Pid: pid, Tid: tid, Args: map[string]any{"name": n.name}})
		}
	}
}

// generation makes the slices of planner and nodes.
func (x *chrome) generation(marks []proto.TraceMark) {
	var own [proto.TraceSwitched + 1]uint64
	nodes := map[proto.NodeID][proto.TraceSwitched + 1]uint64{}
	end, text := uint64(0), ""
	for _, m := range marks {
		switch {
		case m.Stage >= proto.TraceSwitched:
			continue
		case m.Node == nil:
			own[m.Stage] = m.AtMicros
			text += m.Text
		default:
			at := nodes[*m.Node]
			at[m.Stage] = m.AtMicros
			nodes[*m.Node] = at
		}
		end = max(end, m.AtMicros)
	}
	if own[proto.TracePrepare] == 0 {
		return
	}
	x.name(pidPlanner, "planner", 1, "generation")
	x.slice(pidPlanner, 1, "generation", own[proto.TraceAsked], end, map[string]any{"what": text})
	x.parts(pidPlanner, 1, end, []part{{"wait and plan", own[proto.TraceAsked]}, {"prepare", own[proto.TracePrepare]}, {"store", own[proto.TraceDecided]}, {"told, until all confirm", own[proto.TraceStored]}})
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		at, tid := nodes[id], uint64(id)
		name := fmt.Sprintf("node %d", id)
		if id.IsSwitch() {
			name = fmt.Sprintf("switch %d", id-proto.FirstSwitch)
		}
		x.name(pidNodes, "nodes", tid, name)
		last := max(at[proto.TracePrepared], at[proto.TraceApplied], at[proto.TraceConfirmed])
		x.slice(pidNodes, tid, name, own[proto.TracePrepare], last, nil)
		list := []part{{"prepare", own[proto.TracePrepare]}}
		prepared, stored := at[proto.TracePrepared], own[proto.TraceStored]
		if prepared > 0 && prepared < stored {
			list = append(list, part{"wait for all", prepared})
		}
		if told := max(stored, prepared); stored > 0 && last > told { // who prepares late is told late
			list = append(list, part{"commit", told})
			if applied := at[proto.TraceApplied]; applied > 0 {
				list = append(list, part{"light, until reported", max(applied, told)})
			}
		}
		x.parts(pidNodes, tid, last, list)
	}
}

// part is a slice that ends where the next one begins.
type part struct {
	name string
	from uint64
}

func (x *chrome) parts(pid int, tid uint64, end uint64, list []part) {
	list = slices.DeleteFunc(list, func(p part) bool { return p.from == 0 })
	for i, p := range list {
		to := end
		if i+1 < len(list) {
			to = list[i+1].from
		}
		x.slice(pid, tid, p.name, p.from, max(p.from, to), nil)
	}
}

// light makes the slices of a ledger, which add up to it.
func (x *chrome) light(m *proto.TraceMark) {
	l, tid := m.Ledger, 2*uint64(*m.Node)+uint64(m.Side)
	x.name(pidLight, "light", tid, fmt.Sprintf("node %d %s", *m.Node, m.Side))
	at := begins(m)
	x.slice(pidLight, tid, fmt.Sprintf("light lost, found from node %d", m.Peer), at, at+uint64(l.TotalMicros()), map[string]any{"ledger_us": l.TotalMicros()})
	for _, p := range []struct {
		name   string
		micros uint32
	}{{"detect", l.DetectMicros}, {"hold-off", l.HoldoffMicros}, {"decide", l.DecideMicros}, {"bus", l.BusMicros}, {"settle", l.SettleMicros}, {"confirm", l.ConfirmMicros}} {
		x.slice(pidLight, tid, p.name, at, at+uint64(p.micros), nil)
		at += uint64(p.micros)
	}
}
