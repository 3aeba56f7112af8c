// Package model says what a training job computes and sends in one iteration,
// finds how to divide it among servers, and finds that together with a topology
// ([TOPO] sec 4.1).
//
//	Model      layers, sizes, batch, embeddings: a JSON file; Named gives the
//	           paper's six and GPT-MoE
//	Strategy   how it is divided: which server holds a table, how many
//	           neighbours share a layer, experts or a pipeline
//	Traffic    what that sends: AllReduce groups and pairs, for planner/topo
//	Phases     the same by its time in the iteration
//	Network    what carries it, as loads of links: a Switch, or Direct links
//	Search     annealing over strategies on one network, each proposal at the
//	           cost of what it changes
//	Alternate  Search on a topology and a topology for what it found, in turn
//
// The time of an iteration is compute, then the fullest link by AllReduce, then
// the fullest link by all other traffic, none of it overlapped ([TOPO] eq. 1).
//
// It is pure and holds integers only: bytes, nanoseconds, bits per second. It
// knows nothing of what happens inside a server, of overlap, of memory but that
// weights must fit, or of how well a model learns.
package model
