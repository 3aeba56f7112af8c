// Package cert is TLS at both ends of a connection: files that are read again when
// they have changed, certificates judged by a clock that is never behind what is
// known, and errors that say what to type.
//
// A controller may have no clock, and begin in 1970 at each start. Nothing is refused
// for a certificate that is not good yet: that its authority signed it is better
// evidence of the time than such a clock. What has ended by the later of the clock and
// the latest time known is refused.
//
// It never decides what the holder of a certificate may do.
package cert
