package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// A leaf or a spine that is gone tells nobody. What tells of it is that no light comes
// from any of its ports, into switches that pass others' light. Then it is out by its
// name, as if an operator had said so; its ports are joined to themselves, and with
// light from all of them it is let in again. One switch alone may have lost a bundle.

const (
	// allDark is why a part is out from which no light comes.
	allDark = "gone: no light comes from any of its ports in use"
	// gonePatience is how long that must be so. chosen: as long as a circuit may take to
	// have light.
	gonePatience = lightPatience
	// leastDark is how many switches must miss its light. chosen: one may be a bundle.
	leastDark = 2
)

// shine is how many ports of a device have light, and which switches miss some.
type shine struct {
	lit  int
	dark []int
}

// shining is what switches tell of light that comes in, by device.
func (x Growth) shining() map[string]*shine {
	c, out := x.c, map[string]*shine{}
	if c.fab.Direct != nil {
		return out // interfaces that listen elsewhere send nothing
	}
	for s := range c.switches {
		v := &c.switches[s]
		if !v.Ready() || v.Report == nil || !slices.ContainsFunc(v.Circuits(), func(r proto.CircuitReport) bool { return r.State.Lit() }) {
			continue
		}
		for _, r := range v.Circuits() {
			device, _ := c.fab.EndOf(s, int(r.A))
			if out[device] == nil {
				out[device] = new(shine)
			}
			switch d := out[device]; {
			case r.State.Lit():
				d.lit++
			case noInput(r) && !slices.Contains(d.dark, s):
				d.dark = append(d.dark, s)
			}
		}
	}
	return out
}

// noInput: no light comes into a switch for a circuit.
func noInput(r proto.CircuitReport) bool { return r.State == proto.Tuning && r.Loss == proto.NoPower }

// watch takes leaves and spines out that have gone, and lets those in that are back; it
// reports whether any is.
func (x Growth) watch() (back bool) {
	c, why, now := x.c, maps.Clone(x.c.out.why), x.shining()
	since := map[string]time.Duration{}
	for _, device := range slices.Sorted(maps.Keys(now)) {
		switch d, from := now[device], c.dim[device]; {
		case why[device] == allDark && d.lit > 0 && len(d.dark) == 0:
			delete(why, device)
			back = true
			c.j.Note(journal.Info, "light comes again", journal.Note{Rule: "gone", Node: -1, Text: device + " is let in"})
		case why[device] != "" || d.lit > 0 || len(d.dark) < leastDark:
		case from > 0 && c.j.Now >= from+gonePatience:
			why[device] = allDark
			c.j.Note(journal.Warn, "a leaf or spine is gone", journal.Note{Rule: "gone", Node: -1, Text: fmt.Sprintf("%s: no light from it at %s", device, proto.Count(len(d.dark), "switch"))})
		default:
			since[device] = cmp.Or(from, c.j.Now)
			c.replan(since[device] + gonePatience - c.j.Now)
		}
	}
	if c.dim = since; !maps.Equal(why, c.out.why) {
		x.setOut(why)
	}
	return back
}
