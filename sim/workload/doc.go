// Package workload is lists of training jobs: when each arrives, how many GPUs
// it asks for, how long it would run on a network of its own, and how it
// talks. They are drawn by generators that keep the published statistics of
// real clusters, or read from CSV.
//
// A job is small and holds integers only, so that ten million of them fit in
// memory. What a generator draws for one purpose (sizes, durations, gaps,
// models) comes from a stream of its own: the same seed with another mean gap
// gives the same jobs, closer together, and strategies are compared on equal
// jobs.
//
// It draws only from the seed it is given, with the same bits on every
// machine. It knows no cluster, places nothing and runs nothing.
package workload
