package mems

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/stored"
	"ringlight/proto"
)

// Factory is what the maker of a mirror board measured: where the mirrors must
// stand, and what each path then loses. It is shared and never written.
type Factory struct {
	Ports int
	// Drive of the path from a to b, at a*Ports+b: how far the electrodes stand
	// from hal.MirrorBias, x and y of the mirror of A, x and y of that of B.
	Drive [][4]int16
	// Park is where a mirror of a port of either side points at nothing.
	Park [hal.NumSides][][2]int16
	// Losses by condition.
	Losses []Losses
}

// Losses are the insertion losses of all paths at one optical frequency
// and one temperature.
type Losses struct {
	MilliTHz int32
	Celsius  int16
	MilliDB  []uint16 // of the path from a to b, at a*Ports+b
}

// Maker measures a board: where the mirrors of a path must stand, where one
// points at nothing, and what a path loses in a condition.
type Maker interface {
	Drive(a, b int) [4]int16
	Park(side, port int) [2]int16
	Loss(a, b int, milliTHz, millicelsius int32) (milliDB int32)
}

// Measure every path of a board in the conditions in which makers do.
func Measure(m Maker, ports int) *Factory {
	f := &Factory{Ports: ports, Losses: []Losses{{MilliTHz: 193_100, Celsius: 20}, {MilliTHz: 193_100, Celsius: 60}, {MilliTHz: 230_000, Celsius: 40}}}
	for a := range ports {
		for b := range ports {
			f.Drive = append(f.Drive, m.Drive(a, b))
			for i := range f.Losses {
				l := &f.Losses[i]
				l.MilliDB = append(l.MilliDB, uint16(m.Loss(a, b, l.MilliTHz, int32(l.Celsius)*1000)))
			}
		}
		for side := range f.Park {
			f.Park[side] = append(f.Park[side], m.Park(side, a))
		}
	}
	return f
}

var errFactory = errors.New("factory data do not fit the board")

func (f *Factory) check(ports int) error {
	n := f.Ports * f.Ports
	if f.Ports != ports || len(f.Drive) != n || len(f.Park[hal.SideA]) != ports || len(f.Park[hal.SideB]) != ports || len(f.Losses) == 0 {
		return fmt.Errorf("ocs: %d ports, %d paths, %d conditions: %w", f.Ports, len(f.Drive), len(f.Losses), errFactory)
	}
	for i := range f.Losses {
		if len(f.Losses[i].MilliDB) != n {
			return fmt.Errorf("ocs: condition %d: %d paths: %w", i, len(f.Losses[i].MilliDB), errFactory)
		}
	}
	return nil
}

// Loss is what a path ought to lose: of the conditions measured, those of the
// nearest frequency, and between the two nearest temperatures a straight line;
// outside of them the nearest.
func (f *Factory) Loss(p circuit.Pair, milliTHz, millicelsius int32) proto.MilliDBm {
	near := int32(-1)
	for i := range f.Losses {
		if d := distance(f.Losses[i].MilliTHz, milliTHz); near < 0 || d < near {
			near = d
		}
	}
	at := int(p.A)*f.Ports + int(p.B)
	var below, above *Losses
	for i := range f.Losses {
		l := &f.Losses[i]
		if distance(l.MilliTHz, milliTHz) != near {
			continue
		}
		if c := int32(l.Celsius) * 1000; c <= millicelsius {
			if below == nil || l.Celsius > below.Celsius {
				below = l
			}
		} else if above == nil || l.Celsius < above.Celsius {
			above = l
		}
	}
	switch {
	case below == nil:
		return proto.MilliDBm(above.MilliDB[at])
	case above == nil:
		return proto.MilliDBm(below.MilliDB[at])
	}
	lo, hi := int64(below.MilliDB[at]), int64(above.MilliDB[at])
	part, whole := int64(millicelsius)-int64(below.Celsius)*1000, int64(above.Celsius-below.Celsius)*1000
	return proto.MilliDBm(lo + (hi-lo)*part/whole)
}

func distance(a, b int32) int32 {
	if a > b {
		return a - b
	}
	return b - a
}

// storedFactory is the form on disk: numbers in rows of bytes, big-endian, as a
// board of 576 ports has a third of a million paths.
type storedFactory struct {
	Version uint8                `cbor:"0,keyasint"`
	Ports   uint16               `cbor:"1,keyasint"`
	Drive   []byte               `cbor:"2,keyasint"`
	Park    [hal.NumSides][]byte `cbor:"3,keyasint"`
	Losses  []storedLosses       `cbor:"4,keyasint"`
}

type storedLosses struct {
	MilliTHz int32  `cbor:"1,keyasint"`
	Celsius  int16  `cbor:"2,keyasint"`
	MilliDB  []byte `cbor:"3,keyasint"`
}

const (
	factoryVersion = 1
	// maxFactory bounds what DecodeFactory looks at: 576 ports at 16 conditions.
	maxFactory = 16 << 20
)

// Encode is f as it is kept.
func (f *Factory) Encode() []byte {
	s := storedFactory{Version: factoryVersion, Ports: uint16(f.Ports)}
	for _, d := range f.Drive {
		s.Drive = appendWords(s.Drive, d[:])
	}
	for side := range f.Park {
		for _, d := range f.Park[side] {
			s.Park[side] = appendWords(s.Park[side], d[:])
		}
	}
	for _, l := range f.Losses {
		s.Losses = append(s.Losses, storedLosses{l.MilliTHz, l.Celsius, appendWords(nil, l.MilliDB)})
	}
	return stored.Encode(s)
}

func appendWords[T int16 | uint16](dst []byte, words []T) []byte {
	for _, w := range words {
		dst = binary.BigEndian.AppendUint16(dst, uint16(w))
	}
	return dst
}

// DecodeFactory reads what Encode made. The error matches stored.ErrDamaged,
// ErrVersion or ErrMismatch.
func DecodeFactory(b []byte) (*Factory, error) {
	var s storedFactory
	if err := stored.Decode(b, factoryVersion, maxFactory, &s); err != nil {
		return nil, err
	}
	n := int(s.Ports)
	fits := n > 0 && n <= hal.MaxCrossbarPorts && len(s.Drive) == 8*n*n && len(s.Losses) > 0
	for side := range s.Park {
		fits = fits && len(s.Park[side]) == 4*n
	}
	for i := range s.Losses {
		fits = fits && len(s.Losses[i].MilliDB) == 2*n*n
	}
	if !fits {
		return nil, fmt.Errorf("ocs: %d ports: %w: %w", n, stored.ErrMismatch, errFactory)
	}
	return s.factory(n), nil
}

// factory unpacks what was found to fit.
func (s *storedFactory) factory(n int) *Factory {
	f := &Factory{Ports: n, Drive: make([][4]int16, n*n)}
	word := func(b []byte, i int) uint16 { return binary.BigEndian.Uint16(b[2*i:]) }
	for i := range f.Drive {
		for k := range f.Drive[i] {
			f.Drive[i][k] = int16(word(s.Drive, 4*i+k))
		}
	}
	for side := range f.Park {
		f.Park[side] = make([][2]int16, n)
		for i := range f.Park[side] {
			f.Park[side][i] = [2]int16{int16(word(s.Park[side], 2*i)), int16(word(s.Park[side], 2*i+1))}
		}
	}
	for _, l := range s.Losses {
		row := Losses{MilliTHz: l.MilliTHz, Celsius: l.Celsius, MilliDB: make([]uint16, n*n)}
		for i := range row.MilliDB {
			row.MilliDB[i] = word(l.MilliDB, i)
		}
		f.Losses = append(f.Losses, row)
	}
	return f
}
