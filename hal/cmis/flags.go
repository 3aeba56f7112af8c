package cmis

import (
	"encoding/binary"
	"time"
)

// RaiseFlags are the latched bytes that this package follows, in the order of
// an OCSTrx's raise counters: page (of those above 127), offset.
var RaiseFlags = [FlagBytes]struct{ Page, Offset uint8 }{
	{0, ModuleFlags}, {0, ModuleFlags + 1},
	{PageLaneStatus, LaneFlags}, {PageLaneStatus, TxFault}, {PageLaneStatus, RxLOS}, {PageLaneStatus, RxLOS + 1},
}

// FlagBytes is how many latched bytes are followed, NumFlags how many flags.
const (
	FlagBytes = 6
	NumFlags  = 8 * FlagBytes
)

// FlagState is one flag's history.
type FlagState struct {
	Raised  bool          // as of the newest read
	Count   uint32        // times raised
	Exact   bool          // Count comes from the module's own counter
	SetAt   time.Duration // when the newest raise was found
	ClearAt time.Duration // when it was last found clear after being raised
}

// Flags is the one reader of a module's latched flags; everybody else asks it. A flag
// that is read as set twice may have been set all the time or anew: the module's raise
// counters (Control.Counters) decide.
type Flags struct {
	state   [NumFlags]FlagState
	counter [NumFlags]uint16
	based   bool // counter holds a first reading
	latch   [2]byte
	raised  [2 * NumFlags]byte
}

// NewFlags claims the latched flags of a port.
func NewFlags(p *Port) *Flags {
	if p.claimed != nil {
		panic("cmis: latched flags already have a reader")
	}
	f := new(Flags)
	p.claimed = f
	return f
}

// InService is a round that changes no page of a module that stays on its
// service page: the module's own flags, and the counters of all. They come last, so that
// a raise between the two reads is in the counters, and in the latch of the next round.
func (f *Flags) InService() []Request {
	return []Request{
		{Offset: ModuleFlags, Data: f.latch[:], flags: f},
		{Page: PageService, Offset: Raised, Data: f.raised[:]},
	}
}

// Taken carries in what the requests of a round read, all of them without
// error.
func (f *Flags) Taken(now time.Duration) {
	for i := range f.state {
		s := &f.state[i]
		set := i/8 < len(f.latch) && f.latch[i/8]>>(i%8)&1 != 0
		was := s.Raised
		fresh := uint32(0)
		n := binary.BigEndian.Uint16(f.raised[2*i:])
		if f.based {
			fresh = uint32(n - f.counter[i])
		} else if set && !was {
			fresh = 1 // what was before the first reading counts once
		}
		f.counter[i] = n
		s.Count += fresh
		s.Exact = true
		if fresh > 0 || set && !was {
			s.SetAt = now
		}
		if was && !set {
			s.ClearAt = now
		}
		s.Raised = set
	}
	f.based = true
}

// State is a flag by its byte in RaiseFlags and its bit.
func (f *Flags) State(byteIndex, bit int) FlagState { return f.state[8*byteIndex+bit] }

// seen carries in latched bytes that were read along with others, of bank 0.
// Without counters a flag found set counts as one raise; counters are left to
// the next round, which sees them all.
func (f *Flags) seen(now time.Duration, page, offset uint8, b []byte) {
	for i, at := range RaiseFlags {
		lies := at.Offset < 128 && offset < 128 || at.Offset >= 128 && at.Page == page && offset >= 128
		if !lies || int(at.Offset) < int(offset) || int(at.Offset) >= int(offset)+len(b) {
			continue
		}
		for bit := range 8 {
			s := &f.state[8*i+bit]
			if set := b[at.Offset-offset]>>bit&1 != 0; set && !s.Raised {
				s.Raised, s.SetAt = true, now
				if !f.based {
					s.Count++
				}
			}
		}
	}
}
