package hal

import (
	"errors"
	"fmt"
)

// IdentityBytes is the length of a module's identity, at address 0 of its
// EEPROM: "OCST", format 1, length of the serial number, the number in ASCII,
// zeros, and a CRC-16 (0x1021, from 0xFFFF) over what comes before, high byte
// first.
const IdentityBytes = 32

const (
	identityFormat    = 1
	identitySerialMax = IdentityBytes - 8
)

// errIdentity is an EEPROM without a readable identity.
var errIdentity = errors.New("no module identity")

// Identity builds the identity of a module.
func Identity(serial string) (id [IdentityBytes]byte, err error) {
	if serial == "" || len(serial) > identitySerialMax {
		return id, fmt.Errorf("%w: serial number of %d bytes: want 1 to %d", ErrOutOfRange, len(serial), identitySerialMax)
	}
	copy(id[:], "OCST")
	id[4], id[5] = identityFormat, byte(len(serial))
	copy(id[6:], serial)
	crc := crc16(id[:IdentityBytes-2])
	id[IdentityBytes-2], id[IdentityBytes-1] = byte(crc>>8), byte(crc)
	return id, nil
}

// ParseIdentity reads the serial number out of an identity.
func ParseIdentity(id []byte) (serial string, err error) {
	switch {
	case len(id) < IdentityBytes:
		return "", fmt.Errorf("%w: %d bytes", errIdentity, len(id))
	case string(id[:4]) != "OCST":
		return "", fmt.Errorf("%w: starts with %q", errIdentity, id[:4])
	case crc16(id[:IdentityBytes-2]) != uint16(id[IdentityBytes-2])<<8|uint16(id[IdentityBytes-1]):
		return "", fmt.Errorf("%w: %w", errIdentity, ErrCRC)
	case id[4] != identityFormat || id[5] == 0 || id[5] > identitySerialMax:
		return "", fmt.Errorf("%w: format %d, length %d", errIdentity, id[4], id[5])
	}
	return string(id[6 : 6+id[5]]), nil
}

func crc16(p []byte) uint16 {
	crc := uint16(0xFFFF)
	for _, b := range p {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
