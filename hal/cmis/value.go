package cmis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errShort is a reply with fewer bytes than its field has.
var errShort = errors.New("too few bytes")

// errChecksum is a page whose checksum does not fit its content.
var errChecksum = errors.New("page checksum wrong")

// MilliCelsius is a temperature field, of 1/256 of a degree, in thousandths, rounded
// toward zero.
func MilliCelsius(b []byte) int32 { return int32(int16(binary.BigEndian.Uint16(b))) * 1000 / 256 }

// PutMilliCelsius writes the temperature nearest below.
func PutMilliCelsius(b []byte, milli int32) {
	v := milli * 256
	if v >= 0 {
		v /= 1000
	} else {
		v = -((-v + 999) / 1000)
	}
	binary.BigEndian.PutUint16(b, uint16(int16(v)))
}

// Text is a field of ASCII padded with blanks.
func Text(b []byte) string { return strings.TrimRight(string(b), " \x00") }

// durations are the upper bounds that four bits advertise; the codes from 13
// on are reserved.
var durations = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 50 * time.Minute,
}

// Duration is the upper bound that a four-bit code advertises; a reserved one
// means the longest.
func Duration(code uint8) time.Duration {
	return durations[min(int(code&0x0F), len(durations)-1)]
}

// DurationCode is the least code whose bound holds d.
func DurationCode(d time.Duration) uint8 {
	for i, most := range durations {
		if d <= most {
			return uint8(i)
		}
	}
	return uint8(len(durations) - 1)
}

// checked are the pages with a checksum: the first byte summed, and the byte
// that holds it. 01h leaves out the inactive firmware's revision.
var checked = [...]struct{ page, first, at uint8 }{
	{PageAdmin, 128, 222}, {PageAdvertise, 130, 255}, {PageThresholds, 128, 255},
}

// Checksum is the sum that a page, given as its 128 bytes, should carry, and
// the offset at which it lies.
func Checksum(page uint8, content []byte) (sum, at uint8, has bool) {
	for _, c := range checked {
		if c.page == page && len(content) >= 128 {
			for _, b := range content[c.first-128 : c.at-128] {
				sum += b
			}
			return sum, c.at, true
		}
	}
	return 0, 0, false
}

// CheckPage tells whether a page carries its checksum; pages without one do.
func CheckPage(page uint8, content []byte) error {
	if len(content) < 128 {
		return fmt.Errorf("cmis: page %02xh: %d bytes: %w", page, len(content), errShort)
	}
	if sum, at, has := Checksum(page, content); has && content[at-128] != sum {
		return fmt.Errorf("cmis: page %02xh: byte %d is %02x, sum is %02x: %w", page, at, content[at-128], sum, errChecksum)
	}
	return nil
}

// MaxHertz is how fast a module's I2C may be clocked, by its management
// characteristics; a reserved code means the slowest.
func MaxHertz(management byte) int64 {
	switch management >> 2 & 0x0F {
	case 1:
		return 1_000_000
	case 2:
		return 3_400_000
	}
	return 400_000
}

// Limits of a host against a module: how much at once, and how long it may
// hold off.
type Limits struct {
	Read, Write                       int
	PageChange, Volatile, NonVolatile time.Duration
	CDB                               time.Duration
}

// DefaultLimits hold before a module has advertised better.
func DefaultLimits() Limits {
	return Limits{Read: 8, Write: 8, PageChange: 10 * time.Millisecond, Volatile: 10 * time.Millisecond,
		NonVolatile: 80 * time.Millisecond, CDB: 4960 * time.Millisecond}
}

// Advert is what page 01h says, as far as this package uses it.
type Advert struct {
	Limits
	Banks            int
	Diagnostics      bool // pages 13h and 14h
	Monitors         bool // pages 20h-2Fh
	CDBInstances     int
	DPInit, DPDeinit time.Duration
	PowerUp, TurnOn  time.Duration
}

// ParseAdvert reads page 01h; b is its 128 bytes.
func ParseAdvert(b []byte) (Advert, error) {
	if err := CheckPage(PageAdvertise, b); err != nil {
		return Advert{}, err
	}
	at := func(offset int) byte { return b[offset-128] }
	a := Advert{Limits: DefaultLimits()}
	a.Banks = [4]int{1, 2, 4, 4}[at(142)&3]
	a.Diagnostics, a.Monitors = at(142)&(1<<5) != 0, at(142)&(1<<6) != 0
	a.DPInit, a.DPDeinit = Duration(at(144)), Duration(at(144)>>4)
	a.PowerUp, a.TurnOn = Duration(at(167)), Duration(at(168))
	a.CDBInstances = int(at(163) >> 6)
	if at(166)&0x80 != 0 {
		a.CDB = max(1, time.Duration(at(165)&0x1F)) * 160 * time.Millisecond
	} else {
		a.CDB = (80 - min(80, time.Duration(at(166)&0x7F))) * time.Millisecond
	}
	a.PageChange = (10 * time.Millisecond) >> (at(169) & 0x0F)
	if at(251)&3 != 0 {
		a.Read = 128
	}
	return a, nil
}
