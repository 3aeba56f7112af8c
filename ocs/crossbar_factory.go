package ocs

import (
	"errors"
	"fmt"
	"strconv"

	"ringlight/hal"
	"ringlight/proto"
)

// CrossPair is a path through a crossbar, from a port of side A to one of
// side B, both counted from 0.
type CrossPair struct{ A, B uint16 }

// String counts from 1, as the field does: "1A-17B".
func (p CrossPair) String() string {
	return strconv.Itoa(int(p.A)+1) + "A-" + strconv.Itoa(int(p.B)+1) + "B"
}

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
	Losses []FactoryLosses
}

// FactoryLosses are the insertion losses of all paths at one optical frequency
// and one temperature.
type FactoryLosses struct {
	MilliTHz int32
	Celsius  int16
	MilliDB  []uint16 // of the path from a to b, at a*Ports+b
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
func (f *Factory) Loss(p CrossPair, milliTHz, millicelsius int32) proto.MilliDBm {
	near := int32(-1)
	for i := range f.Losses {
		if d := distance(f.Losses[i].MilliTHz, milliTHz); near < 0 || d < near {
			near = d
		}
	}
	at := int(p.A)*f.Ports + int(p.B)
	var below, above *FactoryLosses
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
