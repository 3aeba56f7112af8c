package proto

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Quantity is what a series of records is of.
type Quantity uint8

const (
	CaseTemperature Quantity = iota + 1 // of a module, millikelvin
	RailPower                           // of a module's heaters, microwatt
	RxPower                             // half-sum of a module's receive diodes on the path in use, MilliDBm; both halves
	TxPower                             // tap of a module's external path in use, MilliDBm
	ExcessLoss                          // of a bundle's own light against its calibration, weakest module, thousandths of a dB
	SwitchTime                          // of a bundle or a port's circuit, from the wish to light or the last write, microseconds
	RecoveryTime                        // of a bundle, from light lost to light again, microseconds
	PortPower                           // at a port of a circuit switch, MilliDBm
	InsertionLoss                       // of the circuit that a port is in, thousandths of a dB
)

// NumQuantities is how many there are.
const NumQuantities = int(InsertionLoss)

var quantityNames = [...]string{"", "case_temperature", "rail_power", "rx_power", "tx_power", "excess_loss", "switch_time", "recovery_time", "port_power", "insertion_loss"}

var quantityUnits = [...]string{"", "mK", "uW", "mdBm", "mdBm", "mdB", "us", "us", "mdBm", "mdB"}

func (q Quantity) String() string { return NameOf(quantityNames[:], uint8(q)) }

// Unit is that of the integers of a Bin.
func (q Quantity) Unit() string { return NameOf(quantityUnits[:], uint8(q)) }

// text is a value of a Bin for people.
func (q Quantity) text(v int32) string {
	switch q {
	case CaseTemperature:
		return strconv.FormatFloat(float64(v)/1000-273.15, 'f', 2, 64) + " C"
	case RailPower:
		return strconv.FormatFloat(float64(v)/1000, 'f', 2, 64) + " mW"
	case SwitchTime, RecoveryTime:
		return strconv.Itoa(int(v)) + " us"
	}
	return strconv.FormatFloat(float64(v)/1000, 'f', 2, 64) + " " + q.Unit()[1:]
}

// OfModule tells a quantity of modules from one of bundles and ports.
func (q Quantity) OfModule() bool { return q <= TxPower }

// BinScope is of which series of a device records are asked for.
type BinScope struct {
	_      struct{} `cbor:",toarray"`
	Days   bool     // not quarters of an hour
	Place  int16    // bundle; of a switch twice its port, from 0, and its side; -1: all
	Path   Path     // dark: all
	Module int8     // -1: all
}

// Bin is what a quantity was between two quarters of an hour or two midnights, UTC.
type Bin struct {
	_        struct{} `cbor:",toarray"`
	From     uint64   // seconds since 1970, by the device's clock
	Quantity Quantity
	Min      int32
	Avg      int32
	Max      int32
	Samples  uint32
	Suspect  bool // it was not watched for all of that time
}

// Records are the form of bins that scripts rely on.
type Records struct {
	Subject string    `json:"subject"`
	Bins    []BinJSON `json:"bins"`
}

// BinJSON is one of them.
type BinJSON struct {
	From     string `json:"from"`
	Quantity string `json:"quantity"`
	Unit     string `json:"unit"`
	Min      int32  `json:"min"`
	Avg      int32  `json:"avg"`
	Max      int32  `json:"max"`
	Samples  uint32 `json:"samples"`
	Suspect  bool   `json:"suspect"`
	At       string `json:"at,omitempty"` // which end of a fibre
}

// JSON is the bin for scripts; at says which end of a fibre has it.
func (b *Bin) JSON(at string) BinJSON {
	return BinJSON{b.time().Format(time.RFC3339), b.Quantity.String(), b.Quantity.Unit(), b.Min, b.Avg, b.Max, b.Samples, b.Suspect, at}
}

func (b *Bin) time() time.Time { return time.Unix(int64(b.From), 0).UTC() }

// BinsHead is a head for lines.
const BinsHead = "FROM (UTC)        QUANTITY                  MIN         AVG         MAX  SAMPLES"

// Line is the bin for people, 80 columns.
func (b *Bin) Line() string {
	doubt := ""
	if b.Suspect {
		doubt = "?"
	}
	text := b.Quantity.text
	return fmt.Sprintf("%s  %-16s %11s %11s %11s %7d%s", b.time().Format("2006-01-02 15:04"), b.Quantity, text(b.Min), text(b.Avg), text(b.Max), b.Samples, doubt)
}

// BinsLimit is what a subject may be, after the device.
const BinsLimit = "BUNDLE, BUNDLE/PORT (loopback, external1, external2) or BUNDLE/MODULE; of a circuit switch a port, such as 3A"

// Lengths of bins.
const (
	BinsQuarter = "15m"
	BinsDay     = "1d"
	BinsHelp    = "`LENGTH` of a bin: " + BinsQuarter + " or " + BinsDay
)

// ParseBinScope reads a place on a device: "" all, 1, 1/external2, 1/7 (a module);
// of a switch 17A. Length is that of bins.
func ParseBinScope(text, length string, onSwitch bool) (s BinScope, err error) {
	s.Days, s.Place, s.Module = length == BinsDay, -1, -1
	if length != BinsDay && length != BinsQuarter {
		return s, &Error{Code: Invalid, Field: "bins", Limit: BinsQuarter + " or " + BinsDay, Reason: strconv.Quote(Clip(length))}
	}
	if text == "" {
		return s, nil
	}
	bad := &Error{Code: Invalid, Field: "subject", Limit: BinsLimit, Reason: strconv.Quote(Clip(text))}
	place, rest, part := strings.Cut(text, "/")
	if onSwitch {
		side := strings.IndexByte("AB", place[max(0, len(place)-1)]&^0x20)
		n, err := strconv.ParseUint(place[:max(0, len(place)-1)], 10, 12)
		if err != nil || n == 0 || side < 0 || part {
			return s, bad
		}
		s.Place = int16(2*(n-1)) + int16(side)
		return s, nil
	}
	n, err := strconv.ParseUint(place, 10, 8)
	if err != nil || n >= MaxBundles {
		return s, bad
	}
	s.Place = int16(n)
	if !part {
		return s, nil
	}
	if p, err := ParsePath(rest); err == nil && p != Dark {
		s.Path = p
		return s, nil
	}
	if n, err = strconv.ParseUint(rest, 10, 4); err != nil {
		return s, bad
	}
	s.Module = int8(n)
	return s, nil
}
