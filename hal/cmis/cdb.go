package cmis

import (
	"encoding/binary"
	"fmt"
)

// Offsets on page 9Fh, the command data block.
const (
	CDBCommand      = 128
	CDBEPLLength    = 130
	CDBReplyLength  = 134
	CDBReplyCheck   = 135
	CDBPayload      = 136
	CDBPayloadBytes = 120
)

// Commands that every module with a CDB has.
const (
	CommandQueryStatus = 0x0000
	CommandFeatures    = 0x0040
)

// Bits and codes of the CDB status, byte 37.
const (
	CDBBusy         = 1 << 7
	CDBFailed       = 1 << 6
	CDBSuccess      = 0x01
	CDBExecuting    = CDBBusy | 0x03
	CDBUnknown      = CDBFailed | 0x01
	CDBBadValue     = CDBFailed | 0x02
	CDBBadCheckCode = CDBFailed | 0x05
	CDBNotNow       = CDBFailed | 0x07 // what the module does forbids it
	CDBBadImage     = CDBFailed | 0x20 // of this command alone
)

// CheckReading is one of two ways to read the specification's check code.
type CheckReading uint8

const (
	OnesComplement CheckReading = iota // inverted sum: public host implementations
	TwosComplement                     // negated sum: so an example of CMIS 5.0 can be read
)

// CheckCode is the check code over the bytes of a command or reply. The two
// readings differ by one, and a module takes either.
func CheckCode(b []byte, as CheckReading) byte {
	sum := byte(0)
	for _, v := range b {
		sum += v
	}
	if as == TwosComplement {
		return -sum
	}
	return ^sum
}

// ParseCDBCommand reads a command as a module does: the 8 bytes of the header
// and the payload behind it.
func ParseCDBCommand(b []byte) (id uint16, payload []byte, reading CheckReading, err error) {
	if len(b) < 8 {
		return 0, nil, 0, fmt.Errorf("cmis: command of %d bytes: %w", len(b), errShort)
	}
	n := int(b[4])
	if n > CDBPayloadBytes || len(b) < 8+n {
		return 0, nil, 0, fmt.Errorf("cmis: command with a payload of %d bytes in %d: %w", n, len(b), errShort)
	}
	sum := append([]byte(nil), b[:8+n]...)
	sum[5], sum[6], sum[7] = 0, 0, 0
	for _, as := range []CheckReading{OnesComplement, TwosComplement} {
		if CheckCode(sum, as) == b[5] {
			return binary.BigEndian.Uint16(b), sum[8:], as, nil
		}
	}
	return 0, nil, 0, fmt.Errorf("cmis: command %04xh: check code %02x: %w", binary.BigEndian.Uint16(b), b[5], errChecksum)
}
