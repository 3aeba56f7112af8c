// Package promtool lets Prometheus' own tool judge pages, rules and their tests.
// Only tests use it.
package promtool
