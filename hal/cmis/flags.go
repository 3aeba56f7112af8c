package cmis

import (
	"encoding/binary"
	"strconv"
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

// monitorFlags are CMIS's names of the flags in the second of the latched bytes, by bit.
var monitorFlags = [8]string{"TempMonHighAlarm", "TempMonLowAlarm", "TempMonHighWarning", "TempMonLowWarning",
	"VccMonHighAlarm", "VccMonLowAlarm", "VccMonHighWarning", "VccMonLowWarning"}

// flagName is CMIS's name of a flag, with its lane from 1 on; "" where it tells of no trouble.
func flagName(flag int) string {
	switch byteIndex, bit := flag/8, flag%8; byteIndex {
	case 1:
		return monitorFlags[bit]
	case 3, 4, 5:
		return [...]string{"TxFault", "RxLOS", "RxCDRLOL"}[byteIndex-3] + strconv.Itoa(bit+1)
	}
	return ""
}

// Flags is the one reader of a module's latched flags; everybody else asks it. A flag
// that is read as set twice may have been set all the time or anew: the module's raise
// counters (Control.Counters) decide.
type Flags struct {
	stands  [NumFlags]bool   // as of the newest read
	count   [NumFlags]uint32 // times raised
	counter [NumFlags]uint16
	based   bool // counter holds a first reading
	latch   [2]byte
	raised  [2 * NumFlags]byte
}

// Raised is how often flags that tell of trouble were raised, of those that ever were. Of a
// module without counters it may be more often.
func (f *Flags) Raised(yield func(name string, times uint32) bool) {
	for i, n := range f.count {
		if name := flagName(i); n > 0 && name != "" && !yield(name, n) {
			return
		}
	}
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
func (f *Flags) Taken() {
	for i := range f.count {
		set := i/8 < len(f.latch) && f.latch[i/8]>>(i%8)&1 != 0
		n := binary.BigEndian.Uint16(f.raised[2*i:])
		if f.based {
			f.count[i] += uint32(n - f.counter[i])
		} else if set && !f.stands[i] {
			f.count[i]++ // what was before the first reading counts once
		}
		f.counter[i], f.stands[i] = n, set
	}
	f.based = true
}

// seen carries in latched bytes that were read along with others, of bank 0.
// Without counters a flag found set counts as one raise; counters are left to
// the next round, which sees them all.
func (f *Flags) seen(page, offset uint8, b []byte) {
	for i, at := range RaiseFlags {
		lies := at.Offset < 128 && offset < 128 || at.Offset >= 128 && at.Page == page && offset >= 128
		if !lies || int(at.Offset) < int(offset) || int(at.Offset) >= int(offset)+len(b) {
			continue
		}
		for bit := range 8 {
			k := 8*i + bit
			if set := b[at.Offset-offset]>>bit&1 != 0; set && !f.stands[k] {
				if f.stands[k] = true; !f.based {
					f.count[k]++
				}
			}
		}
	}
}
