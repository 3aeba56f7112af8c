package fleet

import (
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// shines is what interfaces of servers that are joined directly see of light,
// and for how long they see none.
type shines struct {
	r      *Run
	direct *fabric.Direct
	faces  [][]shine // by server and interface
	// Microseconds without light between one job's and the next's: where mirrors
	// stood ready, and where they had to move; and what a switch took of its own
	// board, and with the wait for the far side's light, as agents say.
	flips, mirrors, boards, ledgers []int64
	tunings                         []int64            // what mirrors took until all circuits of a change were tuned
	tunedAt                         []proto.Generation // by layer: the last that is among them
	seen                            []uint64           // by server: number of its last event
}

// shine is one interface.
type shine struct {
	lit     bool // it listens to a fibre and has light
	pending bool // it had light when a commit gave it another circuit
	ahead   bool // the layer had told that circuit as tuned by then
	from    time.Duration
	to      time.Duration
}

// detected is within what a light that goes is known to the agent. chosen:
// twice the slowest edge, and the poll.
const detected = time.Millisecond

func newShines(r *Run, d *fabric.Direct) *shines {
	x := &shines{r: r, direct: d, seen: make([]uint64, d.Servers), tunedAt: make([]proto.Generation, d.Degree)}
	for range d.Servers {
		x.faces = append(x.faces, make([]shine, d.Degree))
	}
	return x
}

// justWent: light went so shortly ago that an agent need not know.
func (x *shines) justWent(s int, a, b uint16) bool {
	if x == nil || s < x.direct.Degree {
		return false
	}
	at, lit := x.r.world.LastChange(x.r.mirrors.at(s, a, b))
	return !lit && x.r.now-at < detected
}

// look follows the light of a server's interfaces.
func (x *shines) look(s int) {
	if x == nil || s < x.direct.Degree {
		return
	}
	now := x.r.world.Now()
	for face := range x.direct.Degree {
		f := &x.faces[s-x.direct.Degree][face]
		at := sim.Port{Board: x.r.mirrors.ID(s), Bundle: face}
		path, shining := x.r.world.Selected(at.Board, face)
		at.Path = path
		lit := shining && path != hal.LOSLoopback && x.r.world.Lit(at)
		switch {
		case f.lit && !lit && f.from == 0:
			f.from = now
		case lit && !f.lit:
			f.to = now
		}
		f.lit = lit
	}
}

// aimed: a commit gives an interface another circuit.
func (x *shines) aimed(s, face int, ahead bool) {
	f := &x.faces[s-x.direct.Degree][face]
	x.over(f)
	f.pending, f.ahead, f.from, f.to = f.lit, ahead, 0, 0
}

// over ends what a commit began: an interface was dark from when it lost its
// light until it had it for good.
func (x *shines) over(f *shine) {
	if f.pending && f.lit {
		took := max(0, (f.to - f.from).Microseconds())
		if f.ahead {
			x.flips = append(x.flips, took)
		} else {
			x.mirrors = append(x.mirrors, took)
		}
	}
	f.pending = false
}

// rest ends the waits of all interfaces.
func (x *shines) rest() {
	for s := range x.faces {
		for face := range x.faces[s] {
			x.over(&x.faces[s][face])
		}
	}
}

// tuned takes what a layer says that its last change took.
func (x *shines) tuned(s int, g proto.Generation, micros uint32) {
	if x != nil && s < x.direct.Degree && micros > 0 && g > x.tunedAt[s] {
		x.tunedAt[s] = g
		x.tunings = append(x.tunings, int64(micros))
	}
}

// told takes the ledgers of flips.
func (x *shines) told(st *station, e *proto.Event) {
	s := int(st.id) - int(proto.FirstSwitch)
	if x == nil || e.Kind != proto.EvSwitched || e.Ledger == nil || s < x.direct.Degree || e.Seq <= x.seen[s-x.direct.Degree] {
		return
	}
	x.seen[s-x.direct.Degree] = e.Seq
	l := e.Ledger
	x.boards = append(x.boards, int64(l.DecideMicros)+int64(l.BusMicros)+int64(l.SettleMicros))
	x.ledgers = append(x.ledgers, int64(l.TotalMicros()))
}

// aim notes which interfaces a commit gives another circuit.
func (c *circuits) aim(s int, was, want []proto.Circuit) {
	if _, server := c.core.ServerOf(s); !server {
		return
	}
	for _, x := range want {
		if !slices.Contains(was, x) {
			c.shines.aimed(s, int(x.A), !c.unfinished(s, &x))
		}
	}
}

// unfinished: the mirrors by which a server's interface has light are not told
// as tuned yet: they land near enough for light and move on from there.
func (c *circuits) unfinished(s int, x *proto.Circuit) bool {
	server, ok := c.core.ServerOf(s)
	if !ok {
		return false
	}
	d := c.core.Direct
	port := uint16(d.Port(server, int(x.B)/d.Degree))
	return !slices.ContainsFunc(c.guarded[x.A], func(y proto.Circuit) bool { return y.B == port })
}

// feeder is the switch of the server from which a server's interface hears, and its circuit
// to send there for the same job; -1: it is none of a server, or hears from nobody.
func (c *circuits) feeder(s int, x *proto.Circuit) (sw int, sends proto.Circuit) {
	server, ok := c.core.ServerOf(s)
	if !ok {
		return -1, sends
	}
	port, layer := uint16(c.core.Port(server, int(x.B)/c.core.Degree)), int(x.A)
	at := slices.IndexFunc(c.desired[layer][c.last[layer]], func(y proto.Circuit) bool { return y.B == port })
	if at < 0 {
		return -1, sends
	}
	from, path := c.core.PortEnd(int(c.desired[layer][c.last[layer]][at].A))
	return c.core.ServerSwitch(from), proto.Circuit{A: x.A, B: uint16(c.core.PathPort(layer, path)), Job: x.Job}
}

// unfed: who sends what a server's interface hears, or whose mirrors pass it, has no power.
func (c *circuits) unfed(s int, x *proto.Circuit) bool {
	sw, _ := c.feeder(s, x)
	return sw >= 0 && (c.r.switches[x.A].dark || c.r.switches[sw].dark)
}

// strange: what a server's interface hears is of no server of its job: mirrors that could not be
// told yet lead it there.
func (c *circuits) strange(s int, x *proto.Circuit) bool {
	sw, sends := c.feeder(s, x)
	return sw >= 0 && !slices.Contains(c.desired[sw][c.last[sw]], sends)
}

// turns: a job of several phases does without a circuit rightly: an interface is for
// another phase, or it is one of mirrors between fibres that no interface uses.
func (c *circuits) turns(s int, x *proto.Circuit) bool {
	if _, server := c.core.ServerOf(s); server || !c.phased[x.Job] {
		return server && c.phased[x.Job]
	}
	for _, port := range []uint16{x.A, x.B} {
		server, path := c.core.PortEnd(int(port))
		at := c.core.ServerSwitch(server)
		if has(c.desired[at][c.last[at]], &proto.Circuit{A: uint16(s), B: uint16(c.core.PathPort(s, path))}) {
			return false
		}
	}
	return true
}

// heardAsPlanned follows the light of each interface back to its sender.
func (c *circuits) heardAsPlanned() {
	c.shines.rest()
	d, r := c.core.Direct, c.r
	for layer := range d.Degree {
		sender := map[uint16]uint16{}
		for _, x := range c.desired[layer][c.last[layer]] {
			sender[x.B] = x.A
		}
		for server := range d.Servers {
			s := d.ServerSwitch(server)
			for _, x := range c.sent(s, c.desired[s][c.last[s]]) {
				if int(x.A) != layer || c.unfed(s, &x) {
					continue
				}
				port := uint16(d.Port(server, int(x.B)/d.Degree))
				want, any := sender[port]
				if from, ok := r.mirrors.from(r.world, layer, port); !ok || !any || from != want {
					c.violate(s, "who is heard", fmt.Sprintf("interface %d of job %d hears port %d (%v), the layer has %d (%v)", layer, x.Job, from, ok, want, any))
				}
			}
		}
	}
}
