package mci

import (
	"encoding/binary"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
)

// calibratingAgain is between two looks at a module that calibrates itself. chosen.
const calibratingAgain = 500 * time.Millisecond

// OwnLight is what the diodes of a module's lanes show when all is well, by path from
// loopback on and lane, in tenths of a microwatt.
type OwnLight [hal.NumLOS][hal.Lanes]uint16

// CalibrateItself has a dark module find its codes, and tells what light it has with them.
func (m *Module) CalibrateItself(then func(now time.Duration, light OwnLight, err error)) {
	var light OwnLight
	var limit time.Duration
	end := func(now time.Duration, err error) { then(now, light, err) }
	ask := func(id uint16, payload []byte, took func(now time.Duration, reply []byte) error) {
		m.command(id, payload, 0, 0, func(now time.Duration, reply []byte, err error) {
			if err == nil {
				err = took(now, reply)
			}
			if err != nil {
				end(now, err)
			}
		})
	}
	var measure func(path int)
	measure = func(path int) {
		ask(cmis.CommandOwnMeasure, []byte{byte(1 + path)}, func(now time.Duration, reply []byte) error {
			if len(reply) < 2*hal.Lanes {
				return fmt.Errorf("%w: light of %d bytes", ErrState, len(reply))
			}
			for lane := range light[path] {
				light[path][lane] = binary.BigEndian.Uint16(reply[2*lane:])
			}
			if path++; path == len(light) {
				end(now, nil)
			} else {
				measure(path)
			}
			return nil
		})
	}
	var look func()
	look = func() {
		ask(cmis.CommandOwnInfo, nil, func(now time.Duration, reply []byte) error {
			o, err := cmis.ParseOwn(reply)
			switch {
			case err != nil:
				return err
			case o.State == cmis.OwnReady:
				measure(0)
				return nil
			case limit == 0:
				limit = now + 2*o.Calibration
			}
			if o.State != cmis.OwnCalibrating || now >= limit {
				return fmt.Errorf("%w: its calibration of itself fails", ErrState)
			}
			m.Wait(now+calibratingAgain, func(time.Duration) { look() })
			return nil
		})
	}
	ask(cmis.CommandOwnCalibrate, nil, func(time.Duration, []byte) error { look(); return nil })
}
