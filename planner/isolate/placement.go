package isolate

// Cause is why a job cannot be placed now.
type Cause uint8

const (
	Fits      Cause = iota // it can
	ByGPU                  // too few idle servers, or none with enough free GPUs
	ByNetwork              // servers enough, and no virtual Clos
)

func (c Cause) String() string { return [...]string{"fits", "gpu", "network"}[c] }

// Server is what a job has of one server.
type Server struct{ Leaf, Server, GPUs int }

// Link is one link between a leaf and a spine: the Nth of those that join the
// two, or with optics the circuit of the same index in Placement.Circuits.
type Link struct{ Leaf, Spine, Nth int }

// End is one end of a circuit: a port of a leaf or of a spine at the switch.
type End struct {
	Spine  bool // else a leaf
	Number int  // of the leaf or spine
	Port   int  // which of its ports at this switch, from 0
}

// Circuit joins two ports at an optical switch. A is a leaf's; B is a spine's,
// or where two leaves are joined that of the leaf with more of the job's
// servers.
type Circuit struct {
	Switch int
	A, B   End
}

// Placement is where a job goes. Its ranks are its GPUs in the order of
// Servers.
//
// Of a virtual Clos (S > 0) virtual leaf v is the ranks v*S to v*S+S-1, and
// rank v*S+i sends over Links[v*S+Map[i]], which ends at virtual spine Map[i]:
// the same Map on every leaf. With optics Circuits[x] makes Links[x].
//
// Where two leaves are joined directly, L is 2, S is 0 and there are no Links:
// the i-th rank of the leaf with fewer servers, which come first, owns
// Circuits[Map[i]], by which it sends and receives all that crosses.
type Placement struct {
	GPUs     int // asked for; whole servers may have more
	Stage    int
	Servers  []Server
	L, S     int // virtual leaves and spines; 1 and 0 within a leaf
	Links    []Link
	Circuits []Circuit
	Map      []int
	// Cost is objective (6) of [VCLOS] before the job came: the free ports of a
	// spine for each virtual spine on it, and the GPUs of a leaf's idle servers
	// for each virtual leaf on it. 0 where there is no virtual Clos.
	Cost int
}
