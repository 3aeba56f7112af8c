package stored

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/fxamacker/cbor/v2"
)

// Why a document is refused.
var (
	ErrVersion  = errors.New("calibration of another version")
	ErrDamaged  = errors.New("calibration damaged")
	ErrMismatch = errors.New("calibration does not fit the board")
)

var (
	// Marshal is a part of a document, deterministic.
	Marshal = mustMode(cbor.CoreDetEncOptions().EncMode()).Marshal
	decMode = mustMode(cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
		MaxArrayElements: 128, MaxMapPairs: 32, MaxNestedLevels: 8,
	}.DecMode())
)

func mustMode[M any](m M, err error) M {
	if err != nil {
		panic("ocs: " + err.Error())
	}
	return m
}

// Encode is a document of ours as it is kept.
func Encode(document any) []byte {
	b, err := Marshal(document)
	if err != nil {
		panic("ocs: what was measured always encodes: " + err.Error())
	}
	return Seal(b)
}

// Seal appends the checksum to what it is of.
func Seal(b []byte) []byte { return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }

// Decode reads into document what Encode made of one of that version, in at
// most limit bytes. The error matches ErrDamaged, ErrVersion or ErrMismatch.
func Decode(b []byte, version uint8, limit int, document any) error {
	if len(b) < 4 || len(b) > limit {
		return fmt.Errorf("ocs: %d bytes: want 5 to %d: %w", len(b), limit, ErrDamaged)
	}
	body := b[:len(b)-4]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return fmt.Errorf("ocs: %w", ErrDamaged)
	}
	// The version alone first: another one may have another form.
	var head struct {
		Version uint8 `cbor:"0,keyasint"`
	}
	if err := decMode.Unmarshal(body, &head); err != nil {
		return fmt.Errorf("ocs: %w: %w", ErrMismatch, err)
	}
	if head.Version != version {
		return fmt.Errorf("ocs: version %d, want %d: %w", head.Version, version, ErrVersion)
	}
	if err := decMode.Unmarshal(body, document); err != nil {
		return fmt.Errorf("ocs: %w: %w", ErrMismatch, err)
	}
	return nil
}
