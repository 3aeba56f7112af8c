package node_test

import (
	"fmt"
	"time"

	"ringlight/node"
	"ringlight/proto"
)

// A node is planned into a ring, loses the neighbour on its right and bypasses
// it. Whoever hosts the machine carries out what it asks for and tells it what
// happened; here that is a few lines, and all light is told by hand.
func Example() {
	m := node.New(node.Config{ID: 1, Bundles: 2})
	now := time.Duration(0)
	step := func(what string, ev node.Event) {
		fmt.Println(what)
		now += 100 * time.Microsecond
		ev.At = now
		for _, a := range m.Step(ev, nil) {
			switch a.Kind {
			case node.Select: // tell the optics; Switched when they have settled
				fmt.Printf("  bundle %d to %s\n", a.Bundle, a.Path)
			case node.Answer: // send it, after a Save of the same Step is on disk
				fmt.Printf("  %s: %s\n", a.Ack.Phase, a.Ack.Code)
			case node.Note: // queue it for the planner
				fmt.Printf("  %s\n", a.Note.Kind)
			case node.Save: // write m.State()
			}
		}
	}
	light := func(b proto.BundleID, p proto.Path, lit bool) node.Event {
		return node.Event{Kind: node.Light, Bundle: b, Path: p, Lit: lit}
	}
	settled := func(b proto.BundleID, p proto.Path) node.Event {
		return node.Event{Kind: node.Switched, Bundle: b, Path: p}
	}

	step("the hardware is found in loopback", node.Event{Kind: node.Adopt, Lits: []node.BundleLight{
		{Bundle: 0, Path: proto.Loopback, Ready: true}, {Bundle: 1, Path: proto.Loopback, Ready: true}}})

	plan := &proto.Desired{Node: 1, Term: 1, Generation: 1, Plan: proto.Digest{1}, Decisions: []proto.RingID{7},
		Rings: []proto.RingAssignment{{Ring: 7, Position: 1, Size: 4,
			Envelope: proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500},
			Left:     []proto.Candidate{{Bundle: 0, Path: proto.External1, Peer: 0}},
			Right:    []proto.Candidate{{Bundle: 1, Path: proto.External1, Peer: 2, Others: true}, {Bundle: 1, Path: proto.External2, Peer: 3}}}}}
	step("a planner prepares a ring", node.Event{Kind: node.Stage, Desired: plan})
	step("and commits it", node.Event{Kind: node.Decide, Decision: &proto.Decision{Term: 1, Generation: 1, Plan: plan.Plan, Verdict: proto.Commit}})
	step("left is there", settled(0, proto.External1))
	step("right is there", settled(1, proto.External1))
	step("left is lit", light(0, proto.External1, true))
	step("right is lit", light(1, proto.External1, true))

	now += 10 * time.Millisecond
	step("steady light", node.Event{Kind: node.Tick})
	step("node 2 dies", light(1, proto.External1, false))
	step("the bypass is there", settled(1, proto.External2))
	step("node 3 has found the same way", light(1, proto.External2, true))
	for _, s := range m.Sides(nil) {
		fmt.Printf("%s: %s, peer %d\n", s.Side, s.State, s.Peer)
	}
	// Output:
	// the hardware is found in loopback
	// a planner prepares a ring
	//   Returned
	//   prepare: ok
	// and commits it
	//   Applied
	//   bundle 0 to external1
	//   bundle 1 to external1
	//   commit: ok
	// left is there
	// right is there
	// left is lit
	//   Switched
	// right is lit
	//   Switched
	// steady light
	//   Restored
	//   Restored
	// node 2 dies
	//   LightLost
	//   bundle 1 to external2
	// the bypass is there
	// node 3 has found the same way
	//   Switched
	// left: work, peer 0
	// right: work, peer 3
}
