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
	a     *crossOptics
	ports bool // those that a plan has are looked after already
}

// Apply makes a change by hand, if nobody plans for this switch or the
// configuration lets scripts come first.
func (h handled) Apply(now time.Duration, ch circuit.Change) error {
	a := h.a
	switch {
	case a.sw.Planned() && !a.cfg.ScriptsFirst && !h.ports:
		return errPlanned
	case !a.adopted || a.faulty != "":
		return fmt.Errorf("%w: %s", circuit.ErrNotReady, a.faulty)
	}
	ch.Park = true
	if err := a.cross.Apply(now, ch); err != nil {
		return err
	}
	a.parks = true
	a.turn, a.busy = true, true
	a.step(now, node.Event{Kind: node.ByHand, Circuits: a.found(), Stays: h.ports})
	return nil
}

func (h handled) Circuits(buf []circuit.Circuit) []circuit.Circuit { return h.a.cross.Circuits(buf) }

// line takes a line or a request of a client; nil is the end of one.
func (a *crossOptics) line(in Input) {
	id, text := in.ID, in.Line
	at := slices.IndexFunc(a.clients, func(v client) bool { return v.id == id })
	switch {
	case text == nil && at >= 0:
		a.clients = slices.Delete(a.clients, at, at+1)
	case text == nil || a.cross == nil || in.Kind == InLine && a.cfg.Lines == nil:
	case at < 0 && len(a.clients) >= maxClients:
		a.put(Output{Kind: OutLine, ID: id}) // no more
	default:
		if at < 0 {
			at = len(a.clients)
			if in.Kind == InRequest {
				a.clients = append(a.clients, client{id, &requests{face: face{a: a}}})
			} else {
				a.clients = append(a.clients, client{id, a.cfg.Lines(a.served)})
			}
		}
		a.clients[at].server.Take(text)
	}
}

// serveClients lets the clients' servers answer what they can by now.
func (a *crossOptics) serveClients(now time.Duration) {
	for i := range a.clients {
		v := &a.clients[i]
		a.served.Now = now
		if reply := v.server.Poll(nil); len(reply) > 0 {
			a.put(Output{Kind: OutLine, ID: v.id, Record: reply})
		}
	}
}
