// Package live runs the product on simulated boards against real time: the
// demo, simulated nodes for any broker, and a board in a process of its own.
//
// A Cluster is nodes, optical switches or both with the production agents in
// real time, against any broker; Core lets jobs come and go on the switches of
// one.
//
// In the demo the broker, the planner and MQTT run in real time, but for what all of
// them only wait for, which is skipped, while the agents - the production Deliver
// and Poll - are stepped by one goroutine on the one virtual clock of the world that
// holds their boards. So the ledger of a switch is exact to the microsecond, and what
// the network and the planner take is measured as it is. Figures of the two clocks
// are never added.
//
// The package reads the truth of the light for what it prints; nothing of
// that ever reaches an agent or the planner.
package live
