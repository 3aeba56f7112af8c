package gnmi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/hal/sonic"
	"ringlight/planner"
	"ringlight/planner/job"
	"ringlight/proto"
)

// A switch of the core is a target of its own, in SONiC's words, which package sonic has. The
// planner knows those circuits that it wants, and those that operators have made at ports
// that it does not use.

const targetPrefix = "switch-"

// deviceOf is the switch that a target names, "" where it names none: a collector calls the
// planner what it likes.
func deviceOf(target string) string {
	if n, ok := strings.CutPrefix(target, targetPrefix); ok && n != "" {
		return target
	}
	return ""
}

// view is a switch as the planner knows it.
func (f facts) view(ctx context.Context, device string) (v sonic.View, err error) {
	n, bad := strconv.ParseUint(strings.TrimPrefix(device, targetPrefix), 10, 16)
	var list []proto.CircuitStatus
	var out []string
	there, ports := 0, 0
	if err := f.source.Read(ctx, func(p *planner.Planner) {
		core := p.Fabric.Core
		if core == nil || bad != nil || int(n) >= core.Switches() {
			if core != nil {
				there = core.Switches()
			}
			return
		}
		there, ports = core.Switches(), core.SwitchSize()
		list, out = p.Core.Evidence.At(int(n)), p.Circuits.Parts()
	}); err != nil {
		return v, err
	}
	if ports == 0 {
		return v, &proto.Error{Code: proto.NotFound, Field: "target", Limit: fmt.Sprintf("%s, of the fabric's %d", targetPrefix+"N", there), Reason: fmt.Sprintf("there is no %.40q", device)}
	}
	for side := range v.Ports {
		v.Ports[side] = make([]sonic.Port, ports)
		for port := range v.Ports[side] {
			v.Ports[side][port].Override = "normal"
			if slices.Contains(out, portPart(int(n), side, port)) {
				v.Ports[side][port].Override = "force_blocked"
			}
		}
	}
	for _, c := range list {
		p := sonic.Path{Connection: sonic.Connection{A: fmt.Sprintf("%dA", c.A+1), B: fmt.Sprintf("%dB", c.B+1)}, Status: "disabled"}
		p.ID = p.A + "-" + p.B
		if c.State.Lit() {
			p.Status, p.MilliDB = "enabled", int32(max(c.Loss, 0))
		}
		in, to := &v.Ports[0][c.A], &v.Ports[1][c.B]
		in.Light, in.Target, to.Light, to.Target = c.State.Light(), p.B, c.State.Light(), p.A
		v.Paths = append(v.Paths, p)
	}
	return v, nil
}

// portPart is a port as drains call it.
func portPart(n, side, port int) string { return fmt.Sprintf("switch%d/%c%d", n, "ab"[side], port) }

// box is a switch as package sonic wants it. It keeps what ports and circuits are to be.
type box struct {
	v   sonic.View
	set []sonic.PortSetting
	add []sonic.Connection
}

func (b *box) View() sonic.View                     { return b.v }
func (b *box) Losses(string) []sonic.FactoryLoss    { return nil }
func (b *box) SetPorts(l []sonic.PortSetting) error { b.set = l; return nil }

func (b *box) Update(_ []string, add []sonic.Connection) ([]string, error) {
	b.add = add
	return nil, nil
}

// device gives a switch's entries.
func (f facts) device(device string, v sonic.View, give func(*entry)) {
	s := sonic.Server{Box: &box{v: v}, Dialect: sonic.Auto}
	for _, m := range models {
		if !m.device {
			continue
		}
		_, raw := s.Answer("GET", "/restconf/data/"+m.module+":"+m.root.name, nil)
		var doc map[string]map[string]map[string][]map[string]string
		if json.Unmarshal(raw, &doc) != nil {
			continue
		}
		for _, c := range m.root.below {
			list := c.below[0]
			for _, row := range doc[m.module+":"+m.root.name][c.name][list.name] {
				key := row[list.key]
				e := newEntry(ofSwitches, strings.Join([]string{device, m.root.name, c.name, key}, " "), f.at(), elems(m.root.name+"/"+c.name), []*pb.PathElem{item(list.name, list.key, key)})
				e.device = device
				for _, name := range slices.Sorted(maps.Keys(row)) {
					e.setIf(list.child(name) != nil && row[name] != "", name, row[name])
				}
				give(e)
			}
		}
	}
}

// jobs gives those that have not ended.
func (f facts) jobs(ctx context.Context, give func(*entry)) error {
	var all []*job.View
	err := f.source.Read(ctx, func(p *planner.Planner) {
		all, _ = p.Jobs.List(0, proto.MaxJobs, func(*job.Wish) bool { return true })
	})
	for _, v := range all {
		wish, _ := json.Marshal(v.Wish) // it was read from JSON
		give(newEntry(ofJobs, "job "+v.ID, f.at(), elems("fabric/jobs"), []*pb.PathElem{item("job", "name", v.ID)}).
			set("config/name", v.ID).set("config/wish", string(wish)).set("state/name", v.ID).set("state/job-state", string(v.State)).setIf(v.Cause != "", "state/cause", v.Cause).
			set("state/links", uint64(v.Links)).set("state/links-confirmed", uint64(v.Confirmed)).set("state/gpus", uint64(v.GPUsTotal)).set("state/event", wide(v.Generation)))
	}
	return err
}
