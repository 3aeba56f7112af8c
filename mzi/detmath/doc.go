// Package detmath is the few transcendental functions that the optics need,
// and the one source of chance of all pure packages, with the same bits on
// every machine.
//
// The standard library's differ in the last bits between amd64, arm64 and
// GOAMD64=v3: some have assembly, and the compiler fuses a product with a sum
// where the machine can. Here every product is rounded by an explicit
// conversion, which forbids the fusing, and only additions, products,
// quotients and bit patterns are used, all of which IEEE 754 fixes.
//
// It is arithmetic, not physics: simulator and driver share it, and nothing in
// it knows what a phase is. Results are within a few units in the last place
// in the stated ranges; outside of them they are NaN, never silently wrong.
package detmath
