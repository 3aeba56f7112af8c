package cmis

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Commands of an OCSTrx that has codes of its own (Control.Own), on page 9Fh; docs/module.md
// has them whole. A module may have them beside the pages of its heaters, or instead.
const (
	CommandOwnInfo      = 0x8000 // reply: see Own
	CommandOwnStage     = 0x8001 // brings the module's own codes of all paths to the heaters
	CommandOwnTrigger   = 0x8002 // as byte 64; reply: microseconds to the drive
	CommandOwnMeasure   = 0x8003 // MeasureNow, or 1 + a path; reply: 16 bits a channel
	CommandOwnCalibrate = 0x8004 // begins; Own tells the end
	CommandOwnDefault   = 0x8005 // a trigger, kept without power; without lasers: none
)

// MeasureNow asks for the guard and the lane channels as on page B3h. Of a path the reply is
// what the diode of each lane shows when all is well, in tenths of a microwatt.
const MeasureNow = 0

// OwnState is where a module with codes of its own stands.
type OwnState uint8

const (
	OwnReady       OwnState = iota // its codes are those of its maker, or of its last calibration
	OwnCalibrating                 // no lasers meanwhile
	OwnFailed                      // the last calibration came to nothing: the codes of before hold
)

// Own is the reply to CommandOwnInfo.
type Own struct {
	State            OwnState
	Pages            bool // heater pages are offered too
	Default, InForce byte // coded as the trigger; 0: none
	Calibration      time.Duration
}

const (
	ownFormat = 1
	ownBytes  = 7
)

// Bytes is o as a module replies it.
func (o Own) Bytes() []byte {
	b := []byte{ownFormat, byte(o.State), 0, o.Default, o.InForce}
	if o.Pages {
		b[2] = 1
	}
	return binary.BigEndian.AppendUint16(b, uint16(o.Calibration/(100*time.Millisecond)))
}

// ParseOwn reads it.
func ParseOwn(b []byte) (Own, error) {
	switch {
	case len(b) < ownBytes:
		return Own{}, fmt.Errorf("cmis: %d bytes about own codes: %w", len(b), errShort)
	case b[0] != ownFormat:
		return Own{}, fmt.Errorf("%w: own codes in format %d, want %d", ErrNotOCSTrx, b[0], ownFormat)
	}
	return Own{OwnState(b[1]), b[2]&1 != 0, b[3], b[4], time.Duration(binary.BigEndian.Uint16(b[5:])) * 100 * time.Millisecond}, nil
}
