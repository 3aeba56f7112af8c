package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// A leaf, a spine or a directly joined server that is gone tells nobody. What tells of it
// is that no light comes from any of its ports, into switches that pass others' light.
// What one switch alone misses may be a bundle: then each of the fibres is out. What is
// gone is out by its name, as if an operator had said so; its ports are joined to
// themselves, and with light from all of them it is let in again.

const (
	// allDark is why a part is out from which no light comes.
	allDark = "gone: no light comes from it"
	// gonePatience is how long that must be so. chosen: as long as a circuit may take to
	// have light.
	gonePatience = lightPatience
	// leastDark is how many switches must miss a device, or layers a server whose agent
	// is heard. chosen: one may be a bundle.
	leastDark = 2
)

// shine is how many ports of a device, or whether the one of a fibre, have light, and
// which switches miss some.
type shine struct {
	lit  int
	dark []int
	of   string // of a fibre: its device
	away bool   // of a server: its agent is not heard either
}

// shining is what switches tell of light that comes in, by device, and by fibre of leaves
// and spines. Of servers joined directly those tell to whom they send, a layer each.
func (e *evidence) shining() map[string]*shine {
	out := map[string]*shine{}
	note := func(key, of string, s int, r proto.CircuitReport) {
		if out[key] == nil {
			out[key] = &shine{of: of}
		}
		switch d := out[key]; {
		case r.State.Lit():
			d.lit++
		case noInput(r) && !slices.Contains(d.dark, s):
			d.dark = append(d.dark, s)
		}
	}
	for s := range e.switches {
		v := &e.switches[s]
		if !v.Ready() || !v.Known {
			continue
		}
		lit := slices.ContainsFunc(v.Circuits(), func(r proto.CircuitReport) bool { return r.State.Lit() })
		for _, r := range v.Circuits() {
			if e.fab.Direct != nil {
				if from := e.sender(s, r); from >= 0 && (lit || !e.switches[e.fab.ServerSwitch(from)].Online()) {
					note(fmt.Sprint(from), "", int(r.A), r)
					out[fmt.Sprint(from)].away = !e.switches[e.fab.ServerSwitch(from)].Online()
				}
			} else if lit {
				device, _ := e.fab.EndOf(s, int(r.A))
				note(device, "", s, r)
				if noInput(r) || e.out.ports[fabric.SwitchPort{Switch: s, Port: int(r.A)}] != "" { // of others nothing is to be said
					note(fmt.Sprintf("switch%d/a%d", s, r.A), device, s, r)
				}
			}
		}
	}
	return out
}

// sender is the server whose light an interface waits for: one that was told to send there,
// and holds that if it can say; -1: none.
func (e *evidence) sender(s int, r proto.CircuitReport) int {
	server, is := e.fab.ServerOf(s)
	if !is {
		return -1
	}
	from := e.senderTo(server, r.A, r.B)
	if from < 0 {
		return -1
	}
	end := e.layout.pathSlot(int(r.A), int32(from))
	if v := &e.switches[end.sw]; e.maps[end.sw].to[end.a] != int32(end.b) || v.Online() && !v.able() {
		return -1
	}
	server, _ = e.fab.PortEnd(from)
	return server
}

// senderTo is the port that a layer joins to where an interface of a server listens; -1: none.
func (e *evidence) senderTo(server int, layer, b uint16) int {
	return slices.Index(e.maps[layer].to, int32(e.fab.Port(server, int(b)/e.fab.Degree)))
}

// noInput: no light comes into a switch for a circuit.
func noInput(r proto.CircuitReport) bool { return r.State == proto.Tuning && r.Loss == proto.NoPower }

// gone: enough switches miss it, and none has light from it.
func (d *shine) gone() bool {
	return d.lit == 0 && (len(d.dark) >= leastDark || (d.of != "" || d.away) && len(d.dark) > 0)
}

// known: a fibre is out, or its device is or will be.
func (e *evidence) known(key string, now map[string]*shine) bool {
	p, _ := e.fab.Part(key)
	return slices.ContainsFunc(p.Ports, func(at fabric.SwitchPort) bool { return e.out.ports[at] != "" }) || now[now[key].of].gone()
}

// watch takes out what has gone, and lets in what is back; it reports whether anything is.
func (e *evidence) watch() (back bool) {
	why, now := maps.Clone(e.out.why), e.shining()
	since := map[string]time.Duration{}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		d, from := now[key], e.dim[key]
		again, waited := why[key] == allDark && d.lit > 0, from > 0 && e.j.Now >= from+gonePatience
		switch {
		case again && (len(d.dark) == 0 || waited):
			delete(why, key)
			for k, f := range now { // any order: each by itself
				if f.of == key && f.gone() {
					why[k] = allDark // it alone stays out
				}
			}
			back = true
			e.j.Note(journal.Info, "light comes again", journal.Note{Rule: "gone", Node: -1, Text: key + " is let in"})
		case !again && (why[key] != "" || !d.gone() || d.of != "" && e.known(key, now)):
		case !again && waited:
			why[key] = allDark
			e.j.Note(journal.Warn, "no light comes", journal.Note{Rule: "gone", Node: -1, Text: strings.TrimSpace(fmt.Sprintf("%s %s: no light from it at %s", key, d.of, proto.Count(len(d.dark), "switch")))})
		default:
			since[key] = cmp.Or(from, e.j.Now)
			e.agenda.replan(since[key] + gonePatience - e.j.Now)
		}
	}
	if e.dim = since; !maps.Equal(why, e.out.why) {
		e.setOut(why)
	}
	return back
}
