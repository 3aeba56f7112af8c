// Package socket puts a board into another process, behind a unix socket: a
// killed agent then does not take its board with it, just as on real
// hardware. The server serves anything that can Submit, Level and Now; the
// client is such a thing again. One client drives a board at a time: a new
// one takes over, and work that the former left on a bus ends into nothing.
//
// Frames are bounded and binary; they carry registers, never meaning.
package socket
