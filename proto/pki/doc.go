// Package pki is a folder with the root of a fabric's trust: it makes keys and
// certificates and writes trust documents. One Ed25519 key serves TLS and seals;
// its holder's name, f1/n/7, f1/planner/a, f1/op/alice, is the common name of its
// certificate and what its topics begin with.
//
// Brokers that are not ours judge by certificates and names: a folder for each kind has
// its configuration, and every edition writes anew what follows from it.
//
// It is for a machine that is not on the network. It never overwrites a key, and
// leaves nothing half done: what it made before an error it takes away again.
package pki
