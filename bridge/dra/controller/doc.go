// Package controller keeps a Kubernetes cluster and a planner of the same mind: a
// ResourceSlice for each ring, labels on nodes, and for each ResourceClaim that
// was given a ring a job that holds it, until the claim lets it go.
//
// It looks at both as they are and changes what differs, so that it may end at any
// moment: what it did before is found again, nothing of its own is kept. The
// scheduler chooses rings; the planner forms them, and says when light is on every
// link; the scheduler binds no pod before that (binding conditions of devices). Claims and
// pods are told by events; a queue (Kueue) is told when rings for a whole workload are free.
//
// It never chooses a ring, moves light, or ends a pod.
package controller
