package cmis

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Offsets on PageCalibrate; the layout is in the package comment.
const (
	CalMode   = 128
	CalAnswer = 129
	CalLasers = 130
	CalTimes  = 132
	CalDriven = 136
	CalDrive  = 160 // + 2 cell
	CalLanes  = 232 // + 2 lane
	CalTaps   = 248
	CalRail   = 252

	// CalRailStepMicroampere is the unit of the rail current.
	CalRailStepMicroampere = 20
)

// Calibrating is what bytes 128-136 of PageCalibrate say.
type Calibrating struct {
	On     bool
	Answer Answer
	// How long after a drive the levels and the rail current are of it alone.
	Levels, Rail time.Duration
}

// CalibratingBytes is how many bytes ParseCalibrating reads, from CalMode on.
const CalibratingBytes = CalDriven + 1 - CalMode

// ParseCalibrating reads CalibratingBytes bytes from CalMode on.
func ParseCalibrating(b []byte) (Calibrating, error) {
	if len(b) < CalibratingBytes {
		return Calibrating{}, fmt.Errorf("cmis: %d bytes of page B4h: %w", len(b), errShort)
	}
	return Calibrating{On: b[0] == 1, Answer: Answer(b[CalAnswer-CalMode]),
		Levels: time.Duration(binary.BigEndian.Uint16(b[CalTimes-CalMode:])) * time.Microsecond,
		Rail:   time.Duration(binary.BigEndian.Uint16(b[CalTimes+2-CalMode:])) * time.Microsecond}, nil
}
