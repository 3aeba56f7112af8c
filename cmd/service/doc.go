// Package service speaks to the manager that started a process: systemd's protocol of
// sd_notify(3), a datagram a word. Where nobody listens nothing is said.
//
// It never starts a goroutine: a watchdog that is fed beside the loop it watches
// watches nothing.
package service
