// Package bench holds the bridge against a real API server, scheduler and
// controller manager: see bench_test.go. It has no code of its own.
package bench
