package fleet

import (
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// mutant is a planted defect, by which tests show that the checkers see it.
// Each hook stands where the defect would show outside the machines; a nil
// hook, and a nil mutant, change nothing.
type mutant struct {
	swallow  func(*station, proto.Packet) bool                  // what an agent never says
	unheard  func(*station, *hal.Edge) bool                     // what light it does not see
	undone   func(*station, *hal.Op) bool                       // bus work that does nothing and looks done
	restored func(*station, *agent.Journal)                     // what a new agent knows of its former life
	born     func(*Run, *station)                               // after an agent's start
	rewrite  func(*Run, proto.Packet) proto.Packet              // what a planner says
	plug     func(layer, port int) int                          // where a server's fibre really ends
	lay      func(fabric.Fibre) (laid fabric.Fibre, loss int32) // where a new fibre really ends
	dead     func(s, port int) bool                             // whether a new fibre of a switch carries no light
	at       time.Duration                                      // when act acts
	act      func(*Run)
}

func (m *mutant) swallows(st *station, p proto.Packet) bool {
	return m != nil && m.swallow != nil && p.Kind == proto.Publish && m.swallow(st, p)
}

func (m *mutant) rewrites(r *Run, p proto.Packet) proto.Packet {
	if m == nil || m.rewrite == nil || p.Kind != proto.Publish {
		return p
	}
	return m.rewrite(r, p)
}

func (m *mutant) misses(st *station, e *hal.Edge) bool {
	return m != nil && m.unheard != nil && e != nil && m.unheard(st, e)
}

func (m *mutant) drops(st *station, op *hal.Op) bool {
	return m != nil && m.undone != nil && m.undone(st, op)
}
