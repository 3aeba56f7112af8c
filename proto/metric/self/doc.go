// Package self measures the process that it is in: what it is, how much of the
// machine it takes, and how long its certificates are good for. Agent and
// planner have it on their pages, under the names that dashboards of any
// program use.
//
// It reads files of the kernel and certificates when it is asked, and keeps
// nothing but the moment of the start. What cannot be read is absent.
package self
