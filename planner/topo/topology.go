package topo

// Ring is an order in which a group reduces: each sends to the next, the last
// to the first, over direct links.
type Ring struct {
	Group  int   // of the request; -1: no group's, it holds the job together
	Order  []int // servers
	Layers []int // of its links: one, or two when bidirectional
}

// Layer is what one optical layer carries: To[s] is the server whose interface
// of this layer receives from server s, -1 where it stays dark. A receiver is
// heard by one server at most.
//
// Rings of groups that share no server may lie on one layer.
type Layer struct{ To []int }

// Paired says whether both fibres of this server's interface end at one peer.
func (l Layer) Paired(server int) bool {
	to := l.To[server]
	return to >= 0 && l.To[to] == server
}

// Link is so many links from A to B; bidirectional ones are there once, A < B.
type Link struct{ A, B, Count int }

// Hops is the distance of all ordered pairs of servers.
type Hops struct {
	Sum   int64
	Pairs int64
	Max   int
}

// Topology is what Find gives.
type Topology struct {
	Servers       int
	Bidirectional bool
	Method        Method
	Reduce        int // interfaces for AllReduce, d_A
	Rings         []Ring
	Jumps         []int // of Totient's rings over all servers, for CoinChangeMod
	Layers        []Layer
	Hops          Hops
	Routes        *Routes // of model-parallel traffic, and of groups without rings

	// Bytes of one iteration. A link that is both directions counts each for
	// itself.
	Asked         int64 // what the job sends
	Carried       int64 // the same, once for each link: Carried/Asked is the bandwidth tax
	Fullest       int64 // on the fullest link in all,
	FullestReduce int64 // by AllReduce alone
	FullestSend   int64 // and by the rest alone
}

// Links are the links of all layers, in order.
func (t *Topology) Links() []Link {
	g := newGraph(t.Servers, t.Layers)
	out := []Link{}
	for a := range t.Servers {
		for k := g.first[a]; k < g.first[a+1]; k++ {
			if b := int(g.to[k]); !t.Bidirectional || a < b {
				out = append(out, Link{a, b, int(g.wide[k])})
			}
		}
	}
	return out
}
