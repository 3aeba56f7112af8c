package boxes

import (
	"slices"
	"strconv"

	"ringlight/hal"
	"ringlight/hal/sonic"
	"ringlight/ocs/circuit"
)

// Box is a switch at the end of a line.
type Box interface {
	Client() *hal.BoxClient // that speaks to it
	End() byte              // what ends its answers; 0: nothing does
	Say(b []byte)           // takes what was sent
	Hear() []byte           // what it answers, up to one line
	HangUp()                // what was not heard is lost, nobody is logged in
	Restart()               // and takes its connections with it
	Lock(owner string)      // another user's, "" nobody's
	// SetDark says which ports of side A no light comes into.
	SetDark(is func(port int) bool)
	// Lit are the connections that its crossbar makes and no shutter closes, whoever
	// asked for them, in the order of side A.
	Lit() []circuit.Pair
	// Cut takes away at the box itself what has one of two ports, and Join makes a
	// connection there, of a group where it knows such.
	Cut(a, b uint16)
	Join(a, b uint16, group string)
}

// Protocols are the languages of boxes, as an agent's configuration has them.
var Protocols = []string{"scpi", "tl1", "tl1-patch", "sonic-ocs"}

// New makes one of Protocols with so many ports of either side.
func New(protocol string, ports int) Box {
	switch protocol {
	case "scpi":
		return NewSCPI(ports)
	case "sonic-ocs":
		return NewSonic(ports, sonic.Tables)
	}
	return NewTL1(ports, protocol == "tl1-patch")
}

// dark are the ports of side A that no light comes into; nil: none.
type dark struct{ is func(port int) bool }

func (d *dark) SetDark(is func(port int) bool) { d.is = is }

func (d *dark) isDark(port int) bool { return d.is != nil && d.is(port) }

// open are the connections without those behind a shutter, by the number of its port.
func open(list []circuit.Pair, closed map[string]bool, in int) []circuit.Pair {
	list = slices.DeleteFunc(list, func(p circuit.Pair) bool {
		return closed[strconv.Itoa(int(p.A)+1)] || closed[strconv.Itoa(int(p.B)+1+in)]
	})
	slices.SortFunc(list, func(p, q circuit.Pair) int { return int(p.A) - int(q.A) })
	return list
}
