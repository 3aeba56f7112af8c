package agent

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/node"
	"ringlight/ocs/circuit"
)

// Scripts that speak the language of commercial boxes drive a switch by hand.
// Each client has a server of its own; they share the switch.

// LineServer answers the lines of one client: hal/scpi's Server. What waits
// for the light is answered by a later Poll.
type LineServer interface {
	Take(line []byte)
	Poll(dst []byte) []byte
}

// client is one connection.
type client struct {
	id     uint64
	server LineServer
}

// maxClients at a time. chosen: one lab, some scripts and a person.
const maxClients = 8

// errPlanned is why a script is refused: what the planner has made would be
// undone by hand, and the hand's by the planner's next plan.
var errPlanned = errors.New("a planner's generation is in force here")

// handled lets a client's server drive the switch.
type handled struct {
	optics *crossOptics
	ports  bool // those that a plan has are looked after already
}

// Apply makes a change by hand, if nobody plans for this switch or the
// configuration lets scripts come first.
func (h handled) Apply(now time.Duration, ch circuit.Change) error {
	o := h.optics
	switch {
	case o.sw.Planned() && !o.agent.cfg.ScriptsFirst && !h.ports:
		return errPlanned
	case !o.agent.adopted || o.faulty != "":
		return fmt.Errorf("%w: %s", circuit.ErrNotReady, o.faulty)
	}
	ch.Park = true
	if err := o.cross.Apply(now, ch); err != nil {
		return err
	}
	o.parks = true
	o.turn, o.busy = true, true
	o.agent.step(now, node.Event{Kind: node.ByHand, Circuits: o.found(), Stays: h.ports})
	return nil
}

func (h handled) Circuits(buf []circuit.Circuit) []circuit.Circuit {
	return h.optics.cross.Circuits(buf)
}

// line takes a line or a request of a client; nil is the end of one.
func (o *crossOptics) line(in Input) {
	id, text := in.ID, in.Line
	at := slices.IndexFunc(o.clients, func(v client) bool { return v.id == id })
	switch {
	case text == nil && at >= 0:
		o.clients = slices.Delete(o.clients, at, at+1)
	case text == nil || o.cross == nil || in.Kind == InLine && o.agent.cfg.Lines == nil:
	case at < 0 && len(o.clients) >= maxClients:
		o.agent.put(Output{Kind: OutLine, ID: id}) // no more
	default:
		if at < 0 {
			at = len(o.clients)
			if in.Kind == InRequest {
				o.clients = append(o.clients, client{id, &requests{face: face{optics: o}}})
			} else {
				o.clients = append(o.clients, client{id, o.agent.cfg.Lines(o.served)})
			}
		}
		o.clients[at].server.Take(text)
	}
}

// serveClients lets the clients' servers answer what they can by now.
func (o *crossOptics) serveClients(now time.Duration) {
	for i := range o.clients {
		v := &o.clients[i]
		o.served.Now = now
		if reply := v.server.Poll(nil); len(reply) > 0 {
			o.agent.put(Output{Kind: OutLine, ID: v.id, Record: reply})
		}
	}
}
