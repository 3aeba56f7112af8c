package proto

import (
	"strings"
	"unicode/utf8"
)

// Limits of the wire. A receiver refuses what exceeds them and names the one
// exceeded; a sender's Encode refuses it first.
const (
	MaxPayload = 64 << 10 // bytes of a message; chosen: mosquitto and embedded brokers hold thousands of these
	MaxArray   = 256      // elements of an array in node messages, where a field says no other
	MaxMembers = 4096     // nodes of one ring in an answer to an operator
	MaxPairs   = 64       // pairs of a map; chosen: twice the widest message
	MaxNesting = 12       // chosen: the deepest message, a node's report in an answer, has 8 levels
	MaxText    = 512      // bytes of a text, where a field says no other
	MaxName    = 64       // characters of a fabric's or client's name in a topic

	// MaxCount is the highest term, generation, sequence number, count or time
	// in microseconds. chosen: exact in every language's numbers; at a million
	// a second it takes 285 years. Only what is drawn at random (session, boot,
	// planner) uses all 64 bits.
	MaxCount = 1<<53 - 1

	// MaxJump is how far a term, a generation or a count may lie above what its
	// reader knows; what is farther is refused by name, so that no message
	// makes a number that leaves no room for the next ones. chosen: nobody
	// misses a million starts or plans; to MaxCount it takes 2^33 such jumps.
	MaxJump = 1 << 20
	// MaxTermJump is the same of a term that a planner says of itself, to agents
	// and to other planners. It is half, so that no term is ever heard by an agent
	// that a planner with a store a little older could not go on from.
	MaxTermJump = MaxJump / 2
	// MaxFirst is the same for a reader that knows nothing: its store is new or
	// lost. chosen: one a second for 34,000 years.
	MaxFirst = 1 << 40

	MaxBundles    = 16         // of a node; a node has one a GPU at most, and 4 or 8 GPUs
	MaxCandidates = 8          // of a side: SideReport.Banned has a bit for each
	MaxRings      = 1          // that a node may be in
	MaxCircuits   = 4096       // of a switch in one message: 12 bytes each fit MaxPayload
	MaxTTLMillis  = 600_000    // of a command or request; chosen: nobody waits longer than 10 minutes
	MaxTimeMicros = 60_000_000 // of a time in an Envelope; chosen: a minute is no switching time
	MaxPeriod     = 300_000    // milliseconds between two signs of life of a planner
	maxLedger     = 1<<32 - 1  // microseconds in all: TotalMicros must not wrap
)

// Highest is the highest number that a reader believes when it knows another;
// 0: of none.
func Highest(known uint64) uint64 {
	if known == 0 {
		return MaxFirst
	}
	return min(known+MaxJump, MaxCount-MaxJump)
}

// Clip shortens a text to MaxText bytes without tearing a character and
// replaces what is not UTF-8, so that no reason keeps a message from leaving.
func Clip(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end]
}
