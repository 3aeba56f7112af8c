package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Parts of a core fail between two lists of jobs: an entry of Config.Jobs that begins
// with one of these words is about a part. What watches the core tells the planner, as
// ocsctl circuit drain does; a switch that is dark has lost its supply before. Of what is
// gone whose light others pass on nobody tells: it stops, and comes again.
const partOut, partDark, partGone, partBack = "out ", "dark ", "gone ", "back "

// Fails are kinds of parts that may fail.
var Fails = []string{"servers", "gpus", "leaves", "links", "spines", "fibres", "switches"}

// streamFails is the stream of what fails, beside those of station.go.
const streamFails = 67

// Failing lets parts of some kinds fail after job lists, and come back later.
func Failing(c *fabric.Core, seed uint64, lists, kinds []string) (out []string) {
	draw := random{seed: detmath.Hash(seed, streamFails)}
	var gone []string
	for _, list := range lists {
		for _, part := range slices.Clone(gone) {
			if draw.chance(400_000) {
				out = append(out, partBack+part)
				gone = slices.DeleteFunc(gone, func(x string) bool { return x == part })
			}
		}
		out = append(out, list)
		for range 1 + draw.below(2) {
			part, word := drawPart(c, &draw, kinds[draw.below(len(kinds))]), partOut
			if strings.HasPrefix(part, "switch") && !strings.Contains(part, "/") && draw.chance(500_000) {
				word = partDark
			}
			kind := strings.TrimRight(part, "0123456789")
			shines := kind == "leaf" && (c.Alone() || c.Spineless) || strings.HasSuffix(kind, "spine") || strings.HasSuffix(kind, "/a")
			if c.Direct != nil {
				shines = kind == ""
			}
			if c.Mirrors() > 0 && shines && draw.chance(500_000) {
				word = partGone
			}
			if _, ok := c.Part(part); ok && !slices.Contains(gone, part) {
				out, gone = append(out, word+part), append(gone, part)
			}
		}
	}
	for _, part := range gone {
		out = append(out, partBack+part)
	}
	return out
}

// drawPart names one of a kind; where the core has none, nothing.
func drawPart(c *fabric.Core, draw *random, kind string) string {
	name := func(form string, of ...int) string {
		var args []any
		for _, n := range of {
			if n < 1 {
				return ""
			}
			args = append(args, draw.below(n))
		}
		return fmt.Sprintf(form, args...)
	}
	switch kind {
	case "servers":
		return name("%d", c.Servers())
	case "gpus":
		return name("%d/gpu%d", c.Servers(), c.GPUsPerServer)
	case "leaves":
		return name("leaf%d", c.Leaves())
	case "links":
		if c.Direct != nil {
			return name("%d/if%d", c.Servers(), c.Degree)
		}
		return name("leaf%d/up%d", c.Leaves(), c.Uplinks())
	case "spines":
		if c.LeafSpine != nil {
			return name("spine%d", c.Spines)
		}
		if c.Spineless {
			return ""
		}
		return name("pod%d-spine%d", c.Pods, c.SpinesPerPod)
	case "fibres":
		return name("switch%d/"+string("ab"[draw.below(2)])+"%d", c.Mirrors(), c.Ports())
	}
	return name("switch%d", c.Mirrors())
}

// entryOf reads what an entry of the lists is, and what follows; "": a list of jobs.
func entryOf(entry string) (kind, text string) {
	for _, kind := range []string{coreEdit, goTraffic, goPhases, partOut, partDark, partGone, partBack} {
		if text, is := strings.CutPrefix(entry, kind); is {
			return kind, text
		}
	}
	return "", ""
}

// fails lets a part fail, or come back, until the planner knows.
func (c *circuits) fails(word, part string) error {
	r := c.r
	if word != partBack {
		r.atCore.Failed++
	}
	r.audit.circuits.strike(part)
	p := r.planners[0]
	noun, told := proto.NounDrain, true
	switch {
	case word == partGone && c.misses(part):
		c.gone[part] = true
		c.shine(part)
		r.atCore.Noticed++
		told = false
	case word == partBack && c.gone[part]:
		delete(c.gone, part)
		c.shine(part)
		told = false
	}
	var dark, server int
	n, _ := fmt.Sscanf(part, "switch%d", &dark)
	if m, _ := fmt.Sscanf(part, "%d", &server); m == 1 && !told {
		n, dark = 1, c.core.Direct.ServerSwitch(server)
	}
	if n == 1 && !strings.Contains(part, "/") {
		st := r.station(proto.FirstSwitch + proto.NodeID(dark))
		switch {
		case word == partDark && !st.dark, !told && word == partGone:
			r.inject.powerOff(st)
			r.audit.circuits.off[dark] = true
		case word == partBack && st.dark:
			r.inject.powerOn(st, bootTime)
			r.audit.circuits.off[dark] = false
		}
	}
	if word == partBack {
		noun = proto.NounUndrain
	}
	at, _ := c.core.Part(part)
	known := func() bool {
		if !told && word == partBack && strings.Contains(part, "/") && c.isGone(at.Ports[0].Switch, at.Ports[0].Port) {
			return true // its device is gone besides: nobody sees that the fibre is back
		}
		return p.host != nil && p.up && slices.Contains(p.host.Planner().Circuits.Parts(), part) == (word != partBack)
	}
	ask := func() bool {
		if known() || !told {
			return known()
		}
		r.asked++
		r.inject.ask(proto.OpRequest{Corr: corrOf(r.asked), Noun: noun, Node: proto.FirstSwitch - 1, Bundle: -1, Name: part, Author: "script", Reason: "it failed"})
		return false
	}
	return r.until("what "+word+part+" means", time.Second, listWithin, ask)
}

// source: light of a part, which may be a fibre, comes into a port of a switch.
func (c *circuits) source(part string, s, port int) bool {
	device, _ := c.core.EndOf(s, port)
	return device == part || device == "server"+part || part == fmt.Sprintf("switch%d/a%d", s, port)
}

// isGone: no light comes into a port, as its leaf, spine or fibre is gone.
func (c *circuits) isGone(s, port int) bool {
	return c.core.Direct == nil && slices.ContainsFunc(slices.Collect(maps.Keys(c.gone)), func(part string) bool { return c.source(part, s, port) })
}

// misses: switches that pass others' light would miss that of a part, of a device two.
func (c *circuits) misses(part string) bool {
	least := 2
	if strings.Contains(part, "/") {
		least = 1
	}
	for s := range c.core.Mirrors() {
		own, others := false, c.core.Direct != nil // who hears it knows that it is away
		for _, x := range c.desired[s][c.last[s]] {
			lit := c.passes(s, x.A, x.B)
			if c.core.Direct != nil {
				from, ok := c.r.mirrors.from(c.r.world, s, x.B)
				lit = ok && from == x.A
			}
			switch is := c.source(part, s, int(x.A)); {
			case !lit || is && x.Job == 0:
			case is:
				own = true
			default:
				others = true
			}
		}
		if own && others {
			least--
		}
	}
	return least <= 0
}

// shine takes the light of a part that is gone, or gives it back where nothing else is.
func (c *circuits) shine(part string) {
	for s := range c.core.Mirrors() {
		for port := range c.core.Ports() {
			if c.core.Direct == nil && c.source(part, s, port) {
				c.r.mirrors.shine(c.r.world, s, port, !c.isGone(s, port))
			}
		}
	}
}

// strike lets go of what may move now: jobs that have something of a part, or lack
// something. All others stay where they are.
func (c *circuits) strike(part string) {
	p, _ := c.core.Part(part)
	claims := c.r.planners[0].host.Planner().Circuits
	for id := range c.alone { // any order: each by itself
		s := claims.Describe(id)
		touched := s.State != proto.JobRealised
		for _, seat := range s.Seats {
			touched = touched || slices.Contains(p.Servers, int(seat.Leaf)*c.core.LeafServers()+int(seat.Server))
		}
		for n := range c.desired {
			for _, x := range c.desired[n][c.last[n]] {
				touched = touched || x.Job == id && c.uses(&p, n, &x)
			}
		}
		for _, l := range claims.Links(id) {
			touched = touched || slices.Contains(p.Links, l)
		}
		if touched {
			c.alone[id] = false
		}
	}
}

func (c *circuits) uses(p *fabric.Part, s int, x *proto.Circuit) bool {
	return slices.Contains(p.Ports, fabric.SwitchPort{Switch: s, Port: int(x.A)}) || slices.Contains(p.Ports, fabric.SwitchPort{Switch: s, Side: 1, Port: int(x.B)})
}

// judgeParts looks at rest at what is out: no circuit is over it, a job is whole or short
// of it by name, and every route is over light, and over nothing that is out.
func (c *circuits) judgeParts() {
	h := c.r.planners[0].host
	if h == nil {
		return
	}
	claims := h.Planner().Circuits
	gone := claims.Parts()
	for _, key := range gone {
		p, _ := c.core.Part(key)
		for s := range c.desired {
			for _, x := range c.desired[s][c.last[s]] {
				if !c.off[s] && c.able(s) && x.Job != 0 && c.uses(&p, s, &x) {
					c.violate(s, "nothing over what is out", fmt.Sprintf("%d to %d of job %d, and %s is out", x.A, x.B, x.Job, key))
				}
			}
		}
	}
	for _, id := range claims.IDs() {
		s := claims.Describe(id)
		named := slices.ContainsFunc(gone, func(key string) bool { return strings.HasPrefix(s.Reason, key+" is out") })
		full := strings.HasPrefix(s.Reason, "no free ports") && !c.core.Alone()
		off := slices.ContainsFunc(s.Seats, func(seat proto.Seat) bool {
			return slices.ContainsFunc(gone, func(key string) bool {
				p, _ := c.core.Part(key)
				return slices.Contains(p.Servers, int(seat.Leaf)*c.core.LeafServers()+int(seat.Server))
			})
		})
		if _, listed := c.alone[id]; listed && (off || s.State == proto.JobShort || s.Realised < s.Granted) {
			c.alone[id] = false // it goes where there is room, when there is
		}
		if s.State == proto.JobShort && named {
			c.r.atCore.Short++
		}
		if s.State == proto.JobShort && !named && !full && !strings.HasSuffix(s.Reason, "did not come up") {
			c.violate(0, "short by name", fmt.Sprintf("job %d has %d of %d links: %q; %v are out", id, s.Realised, s.Granted, s.Reason, gone))
		}
		if s.State == proto.JobWaiting || s.State == proto.JobStandby || s.State == proto.JobAdopted {
			continue
		}
		routes, _ := claims.Routes(id)()
		c.r.atCore.Routes += len(routes)
		for _, x := range routes {
			if text := c.follows(x.At, x.Out, x.Next); text != "" {
				c.violate(0, "routes are over light", fmt.Sprintf("job %d: %s %s to %s: %s; %v are out", id, x.At, x.Out, x.Next, text, gone))
			}
		}
	}
}

// able: the partner of a switch that is off cannot be told by itself.
func (c *circuits) able(s int) bool { return !c.core.Paired() || !c.off[s^1] }

// follows says what is wrong with the light from a port that a route goes by to the
// port that it names; "": it is there, or the link is no circuit.
func (c *circuits) follows(at, out, next string) string {
	var pod, h, n, far, m, to int
	scan := func(text, form string, into ...any) bool {
		got, err := fmt.Sscanf(text, form, into...)
		return err == nil && got == len(into)
	}
	lit := func(s, a, b int) string {
		if !c.passes(s, uint16(a), uint16(b)) {
			return fmt.Sprintf("switch %d passes no light from %d to %d", s, a, b)
		}
		return ""
	}
	here := at + " " + out
	ls := c.core.LeafSpine
	switch {
	case out == "":
	case scan(here, "pod%d-spine%d ocs%d", &pod, &h, &n) && scan(next, "pod%d-spine%d ocs%d", &far, &m, &to):
		return lit(h*c.core.SpinePorts+n, pod, far)
	case c.core.Spineless && scan(here, "leaf%d up%d", &pod, &n) && scan(next, "leaf%d up%d", &far, &to):
		return lit(n, pod, far)
	case c.core.Direct != nil && scan(here, "server%d if%d", &pod, &n) && scan(next, "server%d if%d", &far, &m):
		d := c.core.Direct
		for way := range 4 {
			if c.passes(n, uint16(d.Port(pod, way&1)), uint16(d.Port(far, way>>1))) && c.passes(d.ServerSwitch(far), uint16(n), uint16(d.PathPort(n, way>>1))) {
				return ""
			}
		}
		return "no light from one to the other"
	case ls != nil && ls.Switches > 0:
		a, s, ok := c.leafSpinePort(here)
		b, t, ok2 := c.leafSpinePort(next)
		if !ok || !ok2 || s != t {
			return "no switch joins them"
		}
		return lit(s, a, b)
	}
	return ""
}

// leafSpinePort is the port of a leaf or spine at a switch.
func (c *circuits) leafSpinePort(name string) (port, s int, ok bool) {
	var n, i int
	l := c.core.LeafSpine
	if got, _ := fmt.Sscanf(name, "leaf%d up%d", &n, &i); got == 2 {
		return l.LeafPort(n, i%l.LeafPorts()), i / l.LeafPorts(), true
	}
	if got, _ := fmt.Sscanf(name, "spine%d port%d", &n, &i); got == 2 {
		return l.SpinePort(n, i%l.SpinePortsPerSwitch()), i / l.SpinePortsPerSwitch(), true
	}
	return 0, 0, false
}

// sent are the circuits of a switch that can have light. An interface has none unless a
// circuit of the same job leads to it.
func (c *circuits) sent(s int, want []proto.Circuit) (out []proto.Circuit) {
	server, is := c.core.ServerOf(s)
	if !is {
		return want
	}
	for _, x := range want {
		port := uint16(c.core.Port(server, int(x.B)/c.core.Degree))
		if !c.off[int(x.A)] && slices.ContainsFunc(c.desired[x.A][c.last[x.A]], func(y proto.Circuit) bool { return y.B == port && y.Job == x.Job }) {
			out = append(out, x)
		}
	}
	return out
}

// simplex: some interface of a server may send and hear nothing, since something is out.
func (c *circuits) simplex() bool {
	return c.core.Direct != nil && len(c.r.planners[0].host.Planner().Circuits.Parts()) > 0
}
