package rollout

import (
	"fmt"

	"ringlight/proto"
)

// Fabric is how a roll-out sees the nodes.
type Fabric interface {
	Shape() Shape
	// Look tells how a node stands now.
	Look(id proto.NodeID) Look
}

// Shape is how far nodes protect each other.
type Shape struct {
	Nodes int
	Reach int  // nodes that are not farther apart in number may need each other
	Wraps bool // the last one and the first are neighbours
}

// Look is one node, as it last reported.
type Look struct {
	Present  bool // it is online, and has reported in this session
	Can      bool // its agent starts itself anew when told to
	Asks     bool // somebody there asks for that
	Software string
	Hold     Hold
	// Why it must not be without its agent now, "": it may.
	Why string
	// Engaged is why its modules must not go dark, "": they may.
	Engaged string
}

// Hold is what a node must hold when it is back: all that a start leaves as it is.
type Hold struct {
	Session    proto.Session    `json:"session"`
	Wanted     proto.Generation `json:"wanted"` // by the planner
	Generation proto.Generation `json:"generation"`
	Plan       proto.Digest     `json:"plan"`
	Mode       proto.Mode       `json:"mode"`
	Moves      uint64           `json:"moves"` // without a plan, and starts that found other light than was left
	Bundles    []Bundle         `json:"bundles"`
	Beside     []Beside         `json:"beside,omitempty"`
}

// Bundle is the light of one bundle.
type Bundle struct {
	Path        proto.Path      `json:"path"`
	State       proto.PortState `json:"state"`
	Calibration proto.Digest    `json:"calibration"`
}

// Beside is what a neighbour in the ring says of the light from here.
type Beside struct {
	Node    proto.NodeID   `json:"node"`
	Session proto.Session  `json:"session"`
	Bundle  proto.BundleID `json:"bundle"` // that faces here
	Losses  uint32         `json:"losses"` // in this session
}

// lacks says in what a node that is back differs from before that no plan changes.
func (before *Hold) lacks(is *Hold) string {
	if len(is.Bundles) != len(before.Bundles) {
		return fmt.Sprintf("it reports %s, had %d", proto.Count(len(is.Bundles), "bundle"), len(before.Bundles))
	}
	for i := range before.Bundles {
		if before.Bundles[i].Calibration != is.Bundles[i].Calibration {
			return fmt.Sprintf("bundle %d has another calibration than before", i)
		}
	}
	return ""
}

// differs says in what a node that is back differs from before, "" when in nothing.
func (before *Hold) differs(is *Hold) string {
	if why := before.lacks(is); why != "" {
		return why
	}
	if before.Wanted != is.Wanted {
		if is.Generation != is.Wanted {
			return fmt.Sprintf("it holds generation %d, wanted is %d", is.Generation, is.Wanted)
		}
		return "" // the planner moved it meanwhile: paths and light are the new plan's
	}
	if is.Mode != before.Mode {
		return fmt.Sprintf("it is %s, was %s", is.Mode.Words(), before.Mode.Words())
	}
	if is.Generation != before.Generation || is.Plan != before.Plan {
		return fmt.Sprintf("it holds generation %d, plan %s, held %d, %s", is.Generation, is.Plan, before.Generation, before.Plan)
	}
	if is.Moves > before.Moves {
		return "it found other light than it left, or moved a side since"
	}
	for i := range before.Bundles {
		was, now := before.Bundles[i], is.Bundles[i]
		lit := was.State.Lit() && now.State.Lit() // whether a new life has looked at its light yet is no difference
		if was.Path != now.Path || was.State != now.State && !lit {
			return fmt.Sprintf("bundle %d is on %s, %s; was on %s, %s", i, now.Path, now.State, was.Path, was.State)
		}
	}
	return ""
}

// lost says which neighbour lost the light from here meanwhile, "" when none did. No
// plan excuses that: one that moves a link takes its light away at both ends.
func (before *Hold) lost(is *Hold) string {
	for _, was := range before.Beside {
		for _, now := range is.Beside {
			if was.Node == now.Node && was.Bundle == now.Bundle && was.Session == now.Session && now.Losses > was.Losses {
				return fmt.Sprintf("node %d lost its light meanwhile, %s", now.Node, times(now.Losses-was.Losses))
			}
		}
	}
	return ""
}

func times(n uint32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
