package fabric

import (
	"cmp"
	"errors"
	"fmt"

	"ringlight/proto"
)

// KindDirect is a core of servers that are joined directly ([TOPO] sec 4).
const KindDirect Kind = "direct"

// Direct is a core of servers without packet switches. Interface i of every
// server is a transceiver with two fibres to the switch of optical layer i:
// external 1 of server s at port s, of both sides, external 2 at port s +
// Servers; where servers have come later see rowPort. One of the two carries the
// topology of the job that runs, the other is free for the next one's.
//
// The servers' transceivers are switches of one to two beside those of the
// layers: Degree layers come first, then a switch for each server, whose port i
// of side A, the interface, goes to port i or i + Degree of side B, its fibres.
type Direct struct {
	Servers int `json:"servers"`
	Degree  int `json:"degree"` // interfaces of a server, and layers
	// SecondPort is where external 2 of server 0 is. 0: behind all servers' external 1.
	// A core that grows says it.
	SecondPort int `json:"second_port,omitempty"`
}

// Limits of a direct core.
const (
	MaxDirectServers = 2048 // chosen: as many as the ports of MaxCircuits take
	MaxDirectDegree  = MaxBundles
)

// DefaultDirect is 32 servers of four interfaces.
func DefaultDirect() *Core {
	return &Core{Kind: KindDirect, GPUsPerServer: 4, Direct: &Direct{Servers: 32, Degree: 4}}
}

// Port is where the fibre of a path of a server's interface ends, on its layer;
// path 0 is external 1.
func (d *Direct) Port(server, path int) int { return rowPort(d.second(), server, path) }

// PortEnd is whose fibre ends at a port of a layer; of a server that there is not, none.
func (d *Direct) PortEnd(port int) (server, path int) { return rowOf(d.second(), port) }

func (d *Direct) second() int { return cmp.Or(d.SecondPort, d.Servers) }

// ServerSwitch is the switch that is a server's transceivers.
func (d *Direct) ServerSwitch(server int) int { return d.Degree + server }

// PathPort is the port of a server's switch that is a path of an interface.
func (d *Direct) PathPort(face, path int) int { return face + path*d.Degree }

// ServerOf is the server whose transceivers a switch is; ok is false for a
// switch of mirrors.
func (c *Core) ServerOf(s int) (server int, ok bool) {
	if c.Direct == nil || s < c.Direct.Degree {
		return 0, false
	}
	return s - c.Direct.Degree, true
}

// Mirrors is how many switches are boards of mirrors: the first ones.
func (c *Core) Mirrors() int {
	if c.Direct != nil {
		return c.Direct.Degree
	}
	return c.Switches()
}

// PortsOf is how many ports of each side of a switch are in use.
func (c *Core) PortsOf(s int) int {
	if _, server := c.ServerOf(s); server {
		return 2 * c.Direct.Degree
	}
	return c.Ports()
}

// HasPort: a fibre hangs on a port of a switch.
func (c *Core) HasPort(s, port int) bool {
	if s >= c.Mirrors() || !c.Alone() {
		return s < c.Switches() && port < c.PortsOf(s)
	}
	device, _ := c.EndOf(s, port)
	return device != ""
}

// Alone: jobs share no link.
func (c *Core) Alone() bool { return c.LeafSpine != nil || c.Direct != nil }

func (c *Core) validateDirect() error {
	d := c.Direct
	if d == nil {
		return wrong("core.servers", fmt.Sprintf("2 to %d", MaxDirectServers), "absent")
	}
	var errs []error
	span := func(field string, v, lo, hi int) {
		if v < lo || v > hi {
			errs = append(errs, wrong("core."+field, fmt.Sprintf("%d to %d", lo, hi), "%d", v))
		}
	}
	span("servers", d.Servers, 2, min(MaxDirectServers, proto.MaxCircuits/2))
	span("degree", d.Degree, 1, MaxDirectDegree)
	span("gpus_per_server", c.GPUsPerServer, 1, MaxGPUsPerServer)
	span("second_port", d.SecondPort, 0, MaxDirectServers)
	if len(errs) == 0 {
		errs = c.validateSwitchPorts()
	}
	return errors.Join(append(errs, c.onlyOfPods()...)...)
}
