package fabric

import (
	"fmt"
	"strconv"
	"strings"
)

// Part is what is gone of a core when something of it is out.
type Part struct {
	Key     string       // its name, with servers by number
	Servers []int        // given to nobody
	GPUs    [][2]int     // by server and number; none: all of the servers'
	Ports   []SwitchPort // that no circuit uses
	Links   []LeafLink   // that no path uses
}

// SwitchPort is one port of one side of an optical switch, 0 being A.
type SwitchPort struct{ Switch, Side, Port int }

// LeafLink is one of the links between a leaf and a spine, of its pod if there are pods.
type LeafLink struct{ Leaf, Spine, Nth int }

// PartNames are the forms of what FindPart knows.
const PartNames = "a server by name or number, SERVER/gpu1, SERVER/if1 (direct), leaf3, leaf3/up1, pod0, pod0-spine1 or spine1, switch3, switch3/a5, switch3/b5"

// FindPart is what is gone with something that a name means.
func (f *Fabric) FindPart(name string) (p Part, ok bool) {
	if f.Core == nil {
		return p, false
	}
	if s, ok := f.FindServer(name); ok {
		return f.Core.Part(fmt.Sprint(s))
	}
	server, rest, _ := strings.Cut(name, "/")
	if s, ok := f.FindServer(server); ok {
		return f.Core.Part(fmt.Sprintf("%d/%s", s, rest))
	}
	return f.Core.Part(name)
}

// FindServer finds a server of the core by its name or its number.
func (f *Fabric) FindServer(name string) (server uint32, ok bool) {
	for s := range f.Core.Servers() {
		if f.ServerName(s) == name || strconv.Itoa(s) == name {
			return uint32(s), true
		}
	}
	return 0, false
}

// PartName is what people call a part.
func (f *Fabric) PartName(key string) string {
	number, rest, more := strings.Cut(key, "/")
	s, err := strconv.Atoi(number)
	if err != nil || f.Core == nil || s < 0 || s >= f.Core.Servers() {
		return key
	}
	if name := f.ServerName(s); more {
		return name + "/" + rest
	}
	return "server " + f.ServerName(s)
}

// Part is what is gone with a part.
func (c *Core) Part(key string) (p Part, ok bool) {
	p.Key = key
	var n, m int
	is := func(form string, most ...int) bool {
		args := []any{&n, &m}[:len(most)]
		if got, err := fmt.Sscanf(key, form, args...); err != nil || got != len(most) {
			return false
		}
		vals := []any{n, m}[:len(most)]
		return fmt.Sprintf(form, vals...) == key && n >= 0 && n < most[0] && (len(most) == 1 || m >= 0 && m < most[1])
	}
	switch {
	case is("%d", c.Servers()):
		p.Servers = []int{n}
	case is("%d/gpu%d", c.Servers(), c.GPUsPerServer):
		p.Servers, p.GPUs = []int{n}, [][2]int{{n, m}}
	case c.Direct != nil && is("%d/if%d", c.Servers(), c.GroupSwitches()-c.Servers()):
		p.both(m, c.Port(n, 0))
		p.both(m, c.Port(n, 1))
	case is("leaf%d", c.Leaves()):
		for s := range c.LeafServers() {
			p.Servers = append(p.Servers, n*c.LeafServers()+s)
		}
		for up := range c.Uplinks() {
			c.uplink(&p, n, up)
		}
	case is("leaf%d/up%d", c.Leaves(), c.Uplinks()):
		c.uplink(&p, n, m)
	case !c.Alone() && is("pod%d", c.Pods):
		for s := range c.LeavesPerPod * c.ServersPerLeaf {
			p.Servers = append(p.Servers, n*c.LeavesPerPod*c.ServersPerLeaf+s)
		}
		for spine := range c.SpinesPerPod {
			c.podSpine(&p, n, spine)
		}
	case !c.Alone() && !c.Spineless && is("pod%d-spine%d", c.Pods, c.SpinesPerPod):
		c.podSpine(&p, n, m)
	case c.LeafSpine != nil && is("spine%d", c.Spines):
		for s := range c.Switches() {
			for i := range c.SpinePortsPerSwitch() {
				p.both(s, c.SpinePort(n, i))
			}
		}
		for up := range c.Leaves() * c.FixedLinks() {
			p.Links = append(p.Links, LeafLink{up / c.FixedLinks(), n, up % c.FixedLinks()})
		}
	case is("switch%d", c.Switches()):
		for port := range c.PortsOf(n) {
			if c.HasPort(n, port) {
				p.both(n, port)
			}
		}
	case is("switch%d/a%d", c.Switches(), c.SwitchSize()) && c.HasPort(n, m):
		p.Ports = []SwitchPort{{n, 0, m}}
	case is("switch%d/b%d", c.Switches(), c.SwitchSize()) && c.HasPort(n, m):
		p.Ports = []SwitchPort{{n, 1, m}}
	default:
		return p, false
	}
	return p, true
}

// podSpine adds what is gone with a spine of a pod.
func (c *Core) podSpine(p *Part, pod, spine int) {
	for k := range c.SpinePorts {
		p.both(spine*c.SpinePorts+k, pod)
	}
	for up := range c.LeavesPerPod * c.LeafLinks {
		p.Links = append(p.Links, LeafLink{pod*c.LeavesPerPod + up/c.LeafLinks, spine, up % c.LeafLinks})
	}
}

func (p *Part) both(s, port int) {
	p.Ports = append(p.Ports, SwitchPort{s, 0, port}, SwitchPort{s, 1, port})
}

// Uplinks is how many links a leaf has to spines or switches.
func (c *Core) Uplinks() int {
	switch {
	case c.Direct != nil:
		return 0
	case c.LeafSpine != nil:
		return c.GPUsPerLeaf
	}
	return c.SpinesPerPod * c.LeafLinks
}

// uplink adds what is gone with a link of a leaf.
func (c *Core) uplink(p *Part, leaf, up int) {
	switch l := c.LeafSpine; {
	case c.Spineless: // it sends to one switch of a pair, and hears by the other
		from := up
		if c.Paired() {
			from = up ^ 1
		}
		p.Ports = append(p.Ports, SwitchPort{up, 0, leaf}, SwitchPort{from, 1, leaf})
	case l == nil:
		p.Links = append(p.Links, LeafLink{leaf, up / c.LeafLinks, up % c.LeafLinks})
	case l.Switches == 0:
		p.Links = append(p.Links, LeafLink{leaf, up / l.FixedLinks(), up % l.FixedLinks()})
	default:
		p.both(up/l.LeafPorts(), l.LeafPort(leaf, up%l.LeafPorts()))
	}
}
