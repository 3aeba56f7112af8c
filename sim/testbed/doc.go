// Package testbed is light that carries packets: servers, leaves and spines are network
// namespaces of one Linux machine, and every path of light that the simulated boards carry
// is an Ethernet link exactly while the light is there. Agents, planner and broker are the
// shipped ones, in real time, over the boards of sim/live.
//
// A port is a TAP interface. A goroutine reads what its kernel sends and hands it to the
// port where light leads at this moment, by a table that is looked through, under the
// world's lock, after whatever happens on a board; where none leads the frame is lost, as
// in the dark. The interface's carrier follows the light, so that routers notice.
//
// Leaves and spines of pods are routers on request: FRR's zebra and bgpd, one pair a
// namespace.
//
// It is no measure of line rate, of RDMA, or of anything below some microseconds: frames
// pass through user space. What it shows is what packets make of light that moves.
package testbed
