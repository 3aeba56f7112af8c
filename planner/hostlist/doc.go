// Package hostlist reads and writes lists of hosts in the short form that
// schedulers use: n[001-064,070],login1. A job on a thousand nodes is named in a
// line with it, and Slurm hands a job's nodes over in no other form.
//
// It never looks a host up, and never expands more hosts than its caller allows.
package hostlist
