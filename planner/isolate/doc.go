// Package isolate gives each job of a leaf-spine core servers and links that
// no other job touches, so that jobs never wait for each other's traffic
// ([VCLOS]), with and without optical switches between leaves and spines.
//
// The words. A leaf has GPUs below it in servers of T, and as many uplinks. A
// job that no leaf holds gets a virtual Clos: l virtual leaves of s GPUs each
// and s virtual spines, every pair joined by one link. Without optics a
// virtual leaf is a part of a leaf and the links are those that are there;
// with optics a leaf may hold several virtual leaves, a spine several virtual
// spines, and the links are circuits of the optical switches, each of which
// has so many ports of each leaf and of each spine. A server is owned whole by
// a job of more than T GPUs; smaller jobs share servers, never links.
//
// Who uses what:
//
//	Core       the shape: Clos and Optical make regular ones, the
//	           fields any other, also one that has only what is free
//	State      who owns what: Core.Empty, or Core.With(free GPUs)
//	Place      where a job of n GPUs would go, or by what it is blocked; it
//	           changes nothing
//	Take       makes a placement a job's own; Release ends that. Circuits stay
//	           lit until one of their ports is used again: State.Circuits
//	Tables     the placement as forwarding: port to uplink of each leaf, a VRF
//	           of each virtual spine
//	Queue      which waiting job starts when: Submit, Finished, Start. The
//	           caller's clock is an int64 of milliseconds, real or virtual
//
// Place tries the stages of the paper in turn: 0 within a server, 1 within a
// leaf, 2 a biclique of free links of least cost (without optics) or two
// leaves joined directly, or one spine (with optics), 3 a Clos of circuits
// over any leaves and spines (with optics).
//
// It is pure, holds integers only, and counts its work in steps: the same
// calls give the same answers on every machine. It knows nothing of traffic,
// clocks and devices, never moves what a job owns unless the caller asks for
// defragmentation, and never lets two jobs share a link or a port.
package isolate
