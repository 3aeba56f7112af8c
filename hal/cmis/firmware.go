package cmis

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Commands of firmware. The running image is never written: a download goes to the other
// bank, what is run comes back once, and only a commit makes it the one that the module
// starts from.
const (
	CommandFirmwareFeatures = 0x0041
	CommandFirmwareInfo     = 0x0100
	CommandFirmwareStart    = 0x0101 // length of the whole file, 4 zeroes, its first bytes
	CommandFirmwareAbort    = 0x0102
	CommandFirmwareWriteLPL = 0x0103 // address behind the first bytes, data
	CommandFirmwareWriteEPL = 0x0104 // address; data from page A0h on
	CommandFirmwareComplete = 0x0107
	CommandFirmwareCopy     = 0x0108
	CommandFirmwareRun      = 0x0109 // a zero, a mode, and milliseconds until then
	CommandFirmwareCommit   = 0x010A
)

// What CommandFirmwareRun and CommandFirmwareCopy do.
const (
	RunOther    = 0 // traffic affecting reset into the image that is not running
	RunOtherTry = 1 // hitless, if the module can
	RunSame     = 2
	RunSameTry  = 3
	CopyAToB    = 0xAB
	CopyBToA    = 0xBA
)

// Bytes of messages.
const (
	PageEPL       = 0xA0 // first page of the extended payload
	EPLPages      = 16
	startBytes    = 8
	featuresBytes = 18
	firmwareBytes = 110
	// FirmwareLPLBytes of an image go in one message.
	FirmwareLPLBytes = CDBPayloadBytes - 4
)

// Version of a firmware image.
type Version struct {
	Major, Minor uint8
	Build        uint16
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Build) }

// FirmwareFeatures is the reply to CommandFirmwareFeatures.
type FirmwareFeatures struct {
	Abort, Copy  bool
	Head         int // first bytes of the file, that the start takes
	EPL          bool
	Block        int // bytes of a write to the extended payload
	Start, Write time.Duration
	Complete     time.Duration
}

// Bytes is the reply as a module gives it.
func (f FirmwareFeatures) Bytes() []byte {
	b := make([]byte, featuresBytes)
	if f.Abort {
		b[1] |= 1 << 0
	}
	if f.Copy {
		b[1] |= 1 << 1
	}
	b[2], b[4], b[5] = byte(f.Head), byte(f.Block/8-1), 1
	if f.EPL {
		b[5] = 0x11
	}
	for i, d := range [...]time.Duration{f.Start, f.Start, f.Write, f.Complete, f.Complete} {
		binary.BigEndian.PutUint16(b[8+2*i:], uint16(d.Milliseconds()))
	}
	return b
}

// ParseFirmwareFeatures reads it.
func ParseFirmwareFeatures(b []byte) (f FirmwareFeatures, err error) {
	if len(b) < featuresBytes {
		return f, fmt.Errorf("cmis: firmware features: %w", errShort)
	}
	unit := time.Millisecond
	if b[1]&(1<<3) != 0 {
		unit *= 10
	}
	takes := func(at int) time.Duration { return time.Duration(binary.BigEndian.Uint16(b[at:])) * unit }
	f = FirmwareFeatures{Abort: b[1]&1 != 0, Copy: b[1]&2 != 0, Head: int(b[2]), EPL: b[5]&0x10 != 0, Block: 8 * (1 + int(b[4])),
		Start: takes(8), Write: takes(12), Complete: takes(14)}
	if b[5]&0x11 == 0 || f.Head > CDBPayloadBytes-startBytes {
		return f, fmt.Errorf("cmis: firmware features: takes no image by message: mechanism %02xh, head of %d bytes", b[5], f.Head)
	}
	return f, nil
}

// Firmware is the reply to CommandFirmwareInfo: both banks, A and B.
type Firmware struct {
	Running, Committed int // banks; -1: neither
	Valid              [2]bool
	Version            [2]Version
}

// Bytes is the reply as a module gives it.
func (f Firmware) Bytes() []byte {
	b := make([]byte, firmwareBytes)
	for i, v := range f.Version {
		shift := 4 * i
		if f.Running == i {
			b[0] |= 1 << shift
		}
		if f.Committed == i {
			b[0] |= 2 << shift
		}
		if f.Valid[i] {
			b[1] |= 1 << i
		} else {
			b[0] |= 4 << shift
		}
		at := b[2+36*i:]
		at[0], at[1] = v.Major, v.Minor
		binary.BigEndian.PutUint16(at[2:], v.Build)
	}
	return b
}

// ParseFirmware reads it.
func ParseFirmware(b []byte) (Firmware, error) {
	f := Firmware{Running: -1, Committed: -1}
	if len(b) < firmwareBytes {
		return f, fmt.Errorf("cmis: firmware: %w", errShort)
	}
	for i := range f.Version {
		s := b[0] >> (4 * i)
		if s&1 != 0 {
			f.Running = i
		}
		if s&2 != 0 {
			f.Committed = i
		}
		at := b[2+36*i:]
		f.Valid[i] = s&4 == 0 && b[1]>>i&1 != 0
		f.Version[i] = Version{at[0], at[1], binary.BigEndian.Uint16(at[2:])}
	}
	return f, nil
}
