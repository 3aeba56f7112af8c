// Package sched puts jobs onto pods, leaves and ranks so that little traffic
// crosses pods and what does shares its links ([LUMOS] 4.2, A.4-A.7, A.12).
//
// In the order of a job's life: Place finds servers (place.go); arrange says
// which pipeline stage and which replica each becomes (domains.go); Need counts
// the links that the pairs of leaves then want (need.go) for the collective that
// the replicas do (collective.go); Fit brings that within the leaves' ports
// (share.go). Core does all of this for a job beside those that run (core.go).
// The result goes to wiring: SpreadNeed or Respread, then Rewire; the example
// has the whole chain.
//
// It is pure and knows nothing of switches; it decides where and in which
// order, never whether a job may run.
package sched
