package cmis

import "encoding/binary"

// Offsets on page 13h: control of what makes and checks bit patterns on the media
// side, and on page 14h, where the counts of the checkers are read through a window.
const (
	Generator    = 152 // a bit a lane; then invert, swap, FEC, and a nibble a lane: the pattern
	Checker      = 168 // likewise
	patternBytes = 8
	Selector     = 128
	Counts       = 192
	countBytes   = 64
	// What the window shows: of media lanes 1 to 4, or 5 to 8, sixteen bytes each, first
	// the errors and then the bits since the checker was enabled, little-endian.
	SelectUpper = 4
	SelectLower = 5
)

// PatternStep is what a module is asked about its patterns.
type PatternStep uint8

const (
	PatternOff   PatternStep = iota // nothing is made or checked
	PatternMake                     // all lanes send PRBS31Q in place of the host's bits
	PatternCheck                    // and are checked from now on
	PatternCount                    // what was counted
)

// CountBytes is what PatternCount reads of a module.
const CountBytes = 2 * countBytes

// Bytes that all modules are sent; nobody changes them.
var (
	patternNone [patternBytes]byte
	patternAll  = [patternBytes]byte{0: 0xFF}
	selectUpper = [1]byte{SelectUpper}
	selectLower = [1]byte{SelectLower}
)

// PatternRequests are the requests of a step; counts takes CountBytes of PatternCount.
func PatternRequests(step PatternStep, counts []byte) []Request {
	write := func(at uint8, data *[patternBytes]byte) Request {
		return Request{Write: true, Page: PagePattern, Offset: at, Data: data[:]}
	}
	switch step {
	case PatternMake:
		return []Request{write(Checker, &patternNone), write(Generator, &patternAll)}
	case PatternCheck: // an edge of the enable clears the counts
		return []Request{write(Checker, &patternNone), write(Checker, &patternAll)}
	case PatternCount:
		window := func(at *[1]byte, data []byte) []Request {
			return []Request{{Write: true, Page: PageCounts, Offset: Selector, Data: at[:]}, {Page: PageCounts, Offset: Counts, Data: data}}
		}
		return append(window(&selectUpper, counts[:countBytes]), window(&selectLower, counts[countBytes:CountBytes])...)
	}
	return []Request{write(Checker, &patternNone), write(Generator, &patternNone)}
}

// LaneCount is what the checker of a lane has counted, of CountBytes.
func LaneCount(counts []byte, lane int) (errors, bits uint64) {
	b := counts[16*lane:]
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
}
