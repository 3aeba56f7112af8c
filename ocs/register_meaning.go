package ocs

import (
	"fmt"
	"strings"

	"ringlight/hal"
	"ringlight/hal/ina219"
	"ringlight/hal/pca953x"
	"ringlight/hal/tmp102"
	"ringlight/ocs/diode"
)

// Meaning is a value of the register in units, as the chip and the board scale
// it; "" where the register alone does not say.
func (r *Register) Meaning(v uint32) string {
	switch r.chip {
	case "guard", "lanes":
		return r.light(v)
	case "temp":
		if r.addr == tmp102.RegConfig {
			return ""
		}
		return fmt.Sprintf("%.2f C", float64(tmp102.Millicelsius([]byte{byte(v >> 8), byte(v)}))/1000)
	case "rail":
		return r.railMeaning(uint16(v))
	case "laser":
		return r.pins(v, "lanes ")
	case "latch":
		return r.pins(v, "pins ")
	}
	if r.chip != "eeprom" && r.dac.Cell >= 0 {
		return fmt.Sprintf("%.3f V on cell %d", float64(hal.HeaterMicrovolt(uint16(v)))/1e6, r.dac.Cell)
	}
	return ""
}

// guardNames are the lights of the guard ADC from hal.GuardLoopUpper on.
var guardNames = [...]string{"loopback, upper half", "loopback, lower half", "external 1, upper half", "external 1, lower half",
	"external 2, upper half", "external 2, lower half", "tap of external 1", "tap of external 2"}

// light is what an ADC's result means on the diode that hangs there.
func (r *Register) light(v uint32) string {
	adc := diode.Guard
	if r.chip == "lanes" {
		adc = diode.Lane
	}
	n, level, ok := diode.Of(r.hw).Light(adc, r.adc, v)
	if !ok {
		return ""
	}
	where := guardNames[n]
	if adc == diode.Lane {
		where = fmt.Sprintf("lane %d", n)
	}
	if level == hal.DarkMilliDBm {
		return "no light on " + where
	}
	return fmt.Sprintf("%.2f dBm, %.3g mW on %s", float64(level)/1000, diode.Milliwatt(level), where)
}

// railMeaning: current and power of the INA219 have the scale of its calibration
// register, so the shunt is what tells the current.
func (r *Register) railMeaning(v uint16) string {
	shunt := r.hw.Optics().RailShuntMilliohm
	switch r.addr {
	case ina219.RegConfig:
		return fmt.Sprintf("shunt up to %d mV, %d us a conversion", ina219.FullScaleMicrovolt(v)/1000, ina219.ConversionMicros(v))
	case ina219.RegShunt:
		uv := ina219.ShuntMicrovolt(v)
		text := fmt.Sprintf("%.2f mV", float64(uv)/1000)
		if shunt > 0 {
			text += fmt.Sprintf(", %.2f mA through %d mOhm", float64(uv)/float64(shunt), shunt)
		}
		return text
	case ina219.RegBus:
		text := fmt.Sprintf("%.3f V", float64(ina219.BusMillivolt(v))/1000)
		if v&ina219.BusOverflow != 0 {
			text += ", current or power overflowed"
		}
		return text
	case ina219.RegCalibration:
		if v&^1 == 0 {
			return "not set: current and power read 0"
		}
	}
	return ""
}

// pins names those that an expander's register says something of.
func (r *Register) pins(v uint32, of string) string {
	var set []string
	for n := range r.Bits {
		if v>>n&1 != 0 {
			set = append(set, fmt.Sprint(n))
		}
	}
	list := of + strings.Join(set, " ")
	switch len(set) {
	case 0:
		list = "none"
	case r.Bits:
		list = "all"
	}
	switch r.addr {
	case pca953x.Polarity:
		return "inverted: " + list
	case pca953x.Config:
		return "inputs: " + list
	}
	return "high: " + list
}
