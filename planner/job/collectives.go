package job

import (
	"fmt"

	"ringlight/proto"
)

// collectives is collectives.json: who does a collective with whom, in which order,
// and what they send in which phase. Light counts on it.
type collectives struct {
	Job        string  `json:"job"`
	Generation uint64  `json:"generation"`
	Collective string  `json:"collective"`
	Groups     []group `json:"groups"` // each sends to the next, the last to the first
	// Phases are, by stage, what is sent in one phase after the other: from, to.
	Phases [][][][2]int `json:"phases,omitempty"`
}

// group is ranks in the order of their ring.
type group struct {
	Stage    int   `json:"stage"`
	Position int   `json:"position"` // in the domain of each
	Ranks    []int `json:"ranks"`
	// Of servers joined directly: which AllReduce of the wish, -1: none's, and the
	// interfaces over which each goes to the next.
	Group      *int  `json:"group,omitempty"`
	Interfaces []int `json:"interfaces,omitempty"`
}

// maxSteps is how many GPUs of a stage have the steps of an all-to-all written down.
// chosen: half a second of a processor, and a file of some megabytes.
const maxSteps = 512

func (v *View) collectives(s Split) (*collectives, error) {
	c := &collectives{Job: v.ID, Generation: v.Generation, Collective: proto.CollectiveRing.String(), Groups: []group{}}
	if v.Circuits == nil {
		n := 0
		for i, r := range v.Rings {
			g := group{Stage: i * s.PP / len(v.Rings)}
			for range r.GPUOrder {
				g.Ranks = append(g.Ranks, n)
				n++
			}
			c.Groups = append(c.Groups, g)
		}
		return c, nil
	}
	r := v.ranks
	c.Collective = r.Collective.String()
	if n := len(r.Places) / r.Stages; r.Collective == proto.CollectiveAllToAll && n > maxSteps {
		return nil, &proto.Error{Code: proto.Conflict, Field: "name", Limit: fmt.Sprintf("an all-to-all of at most %d GPUs", maxSteps), Reason: fmt.Sprintf("a stage of job %s has %d", v.ID, n)}
	}
	if r.Rings == nil {
		for _, g := range r.Groups() {
			c.Groups = append(c.Groups, group{Stage: g.Stage, Position: g.Position, Ranks: g.Ranks})
		}
	}
	for _, ring := range r.Rings {
		g := group{Group: &ring.Group, Interfaces: ring.Layers}
		for _, server := range ring.Order {
			for rank, p := range r.Places {
				if p.Server == r.Servers[server] {
					g.Ranks = append(g.Ranks, rank)
				}
			}
		}
		c.Groups = append(c.Groups, g)
	}
	for stage := range r.Stages {
		if phases := r.Phases(stage); phases != nil {
			c.Phases = append(c.Phases, phases)
		}
	}
	return c, nil
}

// ncclEnv says what stock NCCL can and cannot do.
func (v *View) ncclEnv() string {
	switch {
	case v.Circuits == nil:
		return ncclRings
	case v.ranks.Rings != nil:
		return ncclDirect
	case v.ranks.PodOf == nil:
		return ncclLeaves
	}
	return ncclPods + map[proto.Collective]string{
		proto.CollectiveRing:            "NCCL_ALGO=Ring\n",
		proto.CollectiveDoubleTree:      "NCCL_ALGO=Tree\n",
		proto.CollectiveHalvingDoubling: "# NCCL has no halving and doubling: its phases are in collectives.json.\n",
		proto.CollectiveAllToAll:        "# The steps of the all-to-all are in collectives.json: NCCL sends in an order of its own.\n",
	}[v.ranks.Collective]
}

const ncclRings = `# Ring alone: a tree has no path over the light of a ring.
NCCL_ALGO=Ring
# From NCCL 2.30 on: NICs of different subnets have no route to each other.
NCCL_IB_SUBNET_AWARE_ROUTING=1
# Stock NCCL enters a host once in a ring. Light enters a middle host of a line
# twice, so that a line needs one rank per NCCL host, by an NCCL_HOSTID of its own
# for each rank, or a communicator that keeps the order of the file ranks. A ring
# that goes once round a wrapped fabric over a crossed link needs neither.
`

const ncclPods = `# GPU i of a server sends by the server's NIC i: no ring or tree changes its NIC.
NCCL_CROSS_NIC=0
# Circuits are for the order of ranks in each group of collectives.json, where every
# other rail goes the other way round. A communicator of such a group has that order
# by new_group(ranks, sort_ranks=False).
`

const ncclLeaves = `# GPU i of a server sends by the server's NIC i. What each sends to one at a time
# meets nothing, whatever the algorithm, as long as ranks are in the order of the file.
NCCL_CROSS_NIC=0
`

const ncclDirect = `# Rings alone have links of their own: the orders of servers, and the interfaces, are
# in collectives.json. Other traffic is passed on by servers between.
NCCL_ALGO=Ring
NCCL_CROSS_NIC=0
`
