//go:build nohost

package linux

const hostDrivers = " left out of this program (tag nohost)"
