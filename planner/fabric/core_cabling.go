package fabric

import (
	"bytes"
	"encoding/csv"
	"fmt"
)

// CoreFibre is one fibre between a port of a spine, leaf or server and an optical switch.
type CoreFibre struct {
	Device, Port string // as routes name them
	Sends        bool   // into the switch: to its side A; else it receives from side B
	At           SwitchPort
}

// Label is what is written on both ends of a fibre.
func (x CoreFibre) Label() string {
	return fmt.Sprintf("%s-%s-%s", x.Device, x.Port, map[bool]string{true: "tx", false: "rx"}[x.Sends])
}

// CoreFibres are all that hang on the switches of mirrors, port by port. Where switches
// are paired, so are ports, and each is split: it sends to its own switch and receives
// from the other one of the pair ([CROSS] sec 4.1).
func (c *Core) CoreFibres() (out []CoreFibre) {
	for s := range c.Mirrors() {
		for port := range c.PortsOf(s) {
			device, name := c.EndOf(s, port)
			if device == "" {
				continue
			}
			back := name
			if c.Paired() {
				_, back = c.EndOf(s^1, port)
			}
			out = append(out, CoreFibre{device, name, true, SwitchPort{s, 0, port}}, CoreFibre{device, back, false, SwitchPort{s, 1, port}})
		}
	}
	return out
}

// EndOf is whose port hangs on a port of a switch of mirrors: between pods the one that
// sends there; "": nobody's.
func (c *Core) EndOf(s, port int) (device, name string) {
	if d := c.Direct; d != nil {
		server, path := d.PortEnd(port)
		if server >= d.Servers {
			return "", ""
		}
		return fmt.Sprintf("server%d", server), fmt.Sprintf("if%d/external%d", s, path+1)
	}
	if l := c.LeafSpine; l != nil {
		leaf, spine, i := l.EndAt(port)
		switch {
		case leaf >= 0:
			return fmt.Sprintf("leaf%d", leaf), fmt.Sprintf("up%d", s*l.LeafPorts()+i)
		case spine >= 0:
			return fmt.Sprintf("spine%d", spine), fmt.Sprintf("port%d", s*l.SpinePortsPerSwitch()+i)
		}
		return "", ""
	}
	if c.Spineless {
		return fmt.Sprintf("leaf%d", port), fmt.Sprintf("up%d", s)
	}
	return fmt.Sprintf("pod%d-spine%d", port, s/c.SpinePorts), fmt.Sprintf("ocs%d", s%c.SpinePorts)
}

// CoreCabling writes the fibres of a core as a sheet, by the device at their end, but for
// those that another one has already, which may be nil. A bundle is what goes from one
// device to one pair of switches, or to one switch.
func (c *Core) CoreCabling(was *Core) []byte {
	has := map[CoreFibre]bool{}
	if was != nil {
		for _, x := range was.CoreFibres() {
			has[x] = true
		}
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := func(cells ...string) { _ = w.Write(cells) } // a buffer takes everything
	row("device", "port", "way", "switch", "side", "switch_port", "label", "bundle")
	for _, x := range c.CoreFibres() {
		if has[x] {
			continue
		}
		to, way := fmt.Sprintf("switch%d", x.At.Switch), "rx"
		if c.Paired() {
			to = fmt.Sprintf("switches%d-%d", x.At.Switch&^1, x.At.Switch|1)
		}
		if x.Sends {
			way = "tx"
		}
		row(x.Device, x.Port, way, fmt.Sprint(x.At.Switch), "ab"[x.At.Side:x.At.Side+1], fmt.Sprint(x.At.Port), x.Label(), x.Device+"-"+to)
	}
	w.Flush()
	return out.Bytes()
}
