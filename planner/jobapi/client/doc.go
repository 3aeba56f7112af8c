// Package client asks a planner for jobs, over HTTP on a unix socket or on TCP.
// It follows a job over a planner that starts anew, and tells each event once and
// in order. Post tells whoever is to be told outside, of planner and ocsctl alike.
//
// It decides nothing, and it waits only as long as its Config says.
package client
