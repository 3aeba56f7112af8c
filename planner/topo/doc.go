// Package topo finds a direct-connect topology for one training job: which
// server's interface is joined with which, so that AllReduce runs on rings of
// direct links and the rest of the traffic takes few hops ([TOPO]).
//
// The words. A server has Degree interfaces and interface i of every server
// ends on optical layer i, so that jobs that share no server share no link. An
// interface is one fibre out and one fibre in. What a layer does is To: the
// server that hears each server. There are two readings of a link:
//
//   - directed: a ring takes one layer. The layer is a cyclic permutation,
//     out to the successor and in from the predecessor;
//   - bidirectional: a link is both directions and a ring takes two layers. A
//     ring of even length is two matchings, so both fibres of an interface
//     end at the same peer. A ring of odd length is no two matchings: one
//     layer carries it forward, the other backward.
//
// Who uses what:
//
//	Request   servers, degree, what groups reduce, what is sent besides
//	Find      the Topology: rings, layers, links, routes, loads; it checks first
//	Totient   totientPerms and selectPermutations, CoinChangeMod: regular rings
//	          and their routes, as the paper has them
//	Schedule  which links for which phase of an iteration, where links that
//	          move are dark for some time; never longer than one topology
//	Set       which of its fibres each transceiver has light on, for a step of
//	          an all-to-all that switches between steps (Binary Exchange)
//
// Method Random, the default where there is model-parallel traffic, joins
// random Hamiltonian rings, the best of some, and then swaps while hops
// become fewer; each stays a valid ring of AllReduce. Method Totient is the
// paper's, for comparison and where a ring must be told from a number.
//
// It is pure and holds integers only; its work is counted in steps, so the
// same request gives the same topology on every machine. It knows nothing of
// models, of switches' ports or of other jobs.
package topo
