package sim

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
)

// Physics is what a simulated board's optics, converters and calls are like.
// docs/board.md says of each figure where it comes from. It may be compared.
type Physics struct {
	LaserWander  float64 `json:"laser_wander_ratio" span:"0 0.2" doc:"most that the power of a laser wanders off its mean, each laser by itself; 0: not at all"`
	LaserWanderS float64 `json:"laser_wander_s" unit:"s" span:"0.001 100000" doc:"time in which a wandering laser goes up and down"`
	LaserStep    float64 `json:"laser_step_ratio" span:"0 0.2" doc:"most that the power of a laser steps off its mean, each laser by itself, as with its current; 0: not at all"`
	LaserStepS   float64 `json:"laser_step_s" unit:"s" span:"0.01 100000" doc:"time between two such steps"`
	LaserRIN     float64 `json:"laser_rin_ratio" span:"0 0.05" doc:"noise of the laser within the bandwidth of an ADC sample, rms, of the light on it"`
	LaserAgeing  float64 `json:"laser_ageing_db" unit:"dB" span:"0 10" doc:"what all lasers have lost since they were made"`
	ADCOffset    float64 `json:"adc_offset_codes" unit:"codes" span:"0 200" doc:"most that an ADC channel is off at dark, of 4,096 codes"`
	ADCGain      float64 `json:"adc_gain_ratio" span:"0 0.3" doc:"most that the scale of an ADC channel is off"`
	ADCBow       float64 `json:"adc_bow_codes" unit:"codes" span:"0 200" doc:"most that an ADC channel is off its straight line at half of its range, either way"`
	ADCNoise     float64 `json:"adc_noise_factor" span:"0 20" doc:"noise of diode amplifier and ADC, times 0.6 codes rms"`
	DACBow       float64 `json:"dac_bow_mv" unit:"mV" span:"0 200" doc:"what a DAC output is over its straight line at half of its span of 10 V"`
	HeaterOhm    float64 `json:"heater_ohm" unit:"ohm" span:"100 10000" doc:"heater at rest, within 5 %"`
	HeaterTCR    float64 `json:"heater_tcr_ratio" span:"0 0.5" doc:"how much more resistance a heater has at full drive, 60 mW"`
	PPi          float64 `json:"p_pi_mw" unit:"mW" span:"5 100" doc:"heater power for a phase of pi"`
	PPiSpread    float64 `json:"p_pi_spread_ratio" span:"0 0.5" doc:"most that a heater's power for pi is off that"`
	TauUS        float64 `json:"tau_us" unit:"us" span:"1 500" doc:"time constant of a heater that cools; one that warms takes three quarters of it"`
	Tail         float64 `json:"thermal_tail_ratio" span:"0 0.3" doc:"share of a heater's phase that follows slowly"`
	TailMS       float64 `json:"thermal_tail_ms" unit:"ms" span:"0.01 1000" doc:"time constant of that share"`
	Crosstalk    float64 `json:"crosstalk_ratio" span:"0 0.3" doc:"a heater's phase on the next cell, of its own; a quarter of that a pitch further, within 20 %"`
	Skew         float64 `json:"crosstalk_skew_ratio" span:"0 1" doc:"how much more of it goes to the cells behind than is stated, and less to those before"`
	CrosstalkRow float64 `json:"crosstalk_row_ratio" span:"0 0.3" doc:"the same on the cells 8 before and behind, next to it in a layout of rows of 8"`
	CommonK      float64 `json:"common_k_per_w" unit:"K/W" span:"0 50" doc:"how much all cells warm with the power of all heaters of a module, at 0.02 rad/K"`
	Saturation   float64 `json:"diode_saturation_mw" unit:"mW" span:"0 1000" doc:"light at which a photodiode shows half of it; 0: never"`
	CaseDay      float64 `json:"case_day_k" unit:"K" span:"0 40" doc:"most that a case is over or under its mean in the course of a day"`
	CaseHour     float64 `json:"case_hour_k" unit:"K" span:"0 20" doc:"the same in the course of an hour, besides: fans, load"`
	LateCall     float64 `json:"late_call_ratio" span:"0 0.5" doc:"share of bus calls that come late"`
	LateCallUS   float64 `json:"late_call_us" unit:"us" span:"0 1000000" doc:"by how much those are late"`
}

// DefaultPhysics is that of the default board.
func DefaultPhysics() Physics {
	return Physics{LaserWanderS: 10, LaserStepS: 10, ADCNoise: 1, HeaterOhm: 1000, PPi: 25, PPiSpread: 0.10, TauUS: 20, TailMS: 1,
		Crosstalk: 0.02, LateCallUS: 3000}
}

// Validate tells of each figure that is out of its span by its key.
func (ph *Physics) Validate(bad func(key string, value float64, low, high string)) {
	v := reflect.ValueOf(ph).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		low, high, _ := strings.Cut(f.Tag.Get("span"), " ")
		least, errLow := strconv.ParseFloat(low, 64)
		most, errHigh := strconv.ParseFloat(high, 64)
		if x := v.Field(i).Float(); errLow != nil || errHigh != nil || !(x >= least && x <= most) {
			bad(f.Tag.Get("json"), x, low, high)
		}
	}
}

// defaultPhysics are those of modules for which no others are given.
var defaultPhysics = DefaultPhysics()

func orDefault(ph *Physics) *Physics {
	if ph == nil {
		return &defaultPhysics
	}
	return ph
}

func (ph *Physics) steps(seed uint64, t int64) float64 {
	if ph.LaserStep == 0 {
		return 0
	}
	n := max(t, 0) / int64(ph.LaserStepS*float64(time.Second))
	return between(derive(detmath.Mix(seed), uint64(n)), -ph.LaserStep, ph.LaserStep)
}

// swings is by how much a laser's power wanders off at a time: knots drawn evenly within
// the ratio, and smooth ways between them.
func (ph *Physics) swings(seed uint64, t int64) float64 {
	span := int64(ph.LaserWanderS * float64(time.Second) / 2)
	t = max(t, 0)
	n, x := t/span, float64(t%span)/float64(span)
	a := between(derive(seed, uint64(n)), -1, 1)
	b := between(derive(seed, uint64(n)+1), -1, 1)
	part := float64(x*x) * (3 - float64(2*x))
	return float64(ph.LaserWander * (a + float64(part*(b-a))))
}

// swing is how much warmer a case is at a time than its mean, in kelvin.
func (ph *Physics) swing(t time.Duration) (kelvin float64) {
	for _, x := range [...]struct {
		most float64
		span time.Duration
	}{{ph.CaseDay, 24 * time.Hour}, {ph.CaseHour, time.Hour}} {
		if x.most > 0 {
			kelvin += float64(x.most * detmath.Sin(2*pi*float64(t%x.span)/float64(x.span)))
		}
	}
	return kelvin
}

// late is by how much a call is late, given a hash of which one it is.
func (ph *Physics) late(h uint64) time.Duration {
	if ph.LateCall > 0 && unit(h) < ph.LateCall {
		return micros(ph.LateCallUS)
	}
	return 0
}

// bowed is what a DAC puts out for a voltage that it is told.
func (ph *Physics) bowed(v float64) float64 {
	if ph.DACBow > 0 {
		x := v / dacSpanVolt
		v += float64(float64(ph.DACBow/1000) * float64(4*float64(x*(1-x))))
	}
	return v
}

const dacSpanVolt = hal.HeaterFullScaleMicrovolt / 1e6

// fullDriveMilliwatt is the power for which heater_tcr_ratio is given.
const fullDriveMilliwatt = 60.0

// heat is what heater k takes at a voltage. Its resistance rises with its
// power, R = ohm*(1 + tcr*P/full), and P*R is the voltage squared; what the
// neighbours' heat adds to the resistance is left out.
func (p *Personality) heat(k int, v float64) (milliamp, milliwatt float64) {
	milliamp = 1000 * v / p.cells[k].ohm
	milliwatt = v * milliamp
	if tcr := p.phys.HeaterTCR; tcr > 0 && v > 0 {
		x := tcr / fullDriveMilliwatt
		milliwatt = (sqrt(1+float64(4*float64(x*milliwatt))) - 1) / (2 * x)
		milliamp = milliwatt / v
	}
	return milliamp, milliwatt
}

// warmthOf is the warmth that a voltage told to heater k leads to.
func (p *Personality) warmthOf(k int, v float64) float64 {
	_, milliwatt := p.heat(k, p.phys.bowed(v))
	return milliwatt / p.cells[k].piPower
}

// rowPitch is how far in number cells lie that are neighbours across rows.
const rowPitch = 8

// apart is what heaters beyond the band add to the phase of cell k, in pi.
// warm[crosstalkBand] is the warmth of cell 0.
func (p *Personality) apart(k int, warm *padded) (sum float64) {
	if p.phys.CrosstalkRow > 0 {
		if n := k - rowPitch; n >= 0 {
			sum += float64(p.row[k][0] * warm[n+crosstalkBand])
		}
		if n := k + rowPitch; n < hal.CellsPerMod {
			sum += float64(p.row[k][1] * warm[n+crosstalkBand])
		}
	}
	return sum
}

// wanders: a laser's power is not the same at any time.
func (ph *Physics) wanders() bool { return ph.LaserWander > 0 || ph.LaserStep > 0 }

// common is the phase that all heaters of a module together add to each cell.
func (p *Personality) common(warm *padded) float64 {
	milliwatt := 0.0
	for k := range p.cells {
		milliwatt += float64(p.cells[k].piPower * warm[k+crosstalkBand])
	}
	return float64(float64(caseRadPerK*p.phys.CommonK) * float64(milliwatt/1000))
}

// saturated is what diodes, so many to a channel, show of light on them.
func (ph *Physics) saturated(milliwatt float64, diodes int) float64 {
	if ph.Saturation > 0 && milliwatt > 0 {
		milliwatt /= 1 + milliwatt/(ph.Saturation*float64(diodes))
	}
	return milliwatt
}

// adcError is what an ADC channel is off.
type adcError struct{ gain, offset, bow float64 }

// of is the code that it makes of one.
func (e *adcError) of(code float64) float64 {
	x := code / ads7138.CodeFull
	return float64(code*e.gain) + e.offset + float64(e.bow*float64(4*float64(x*(1-x))))
}

// converterErrors draws those of a module; nil: none is off.
func (ph *Physics) converterErrors(seed uint64) *[numADCs][8]adcError {
	if ph.ADCGain == 0 && ph.ADCOffset == 0 && ph.ADCBow == 0 {
		return nil
	}
	e := new([numADCs][8]adcError)
	for c := range e {
		for ch := range e[c] {
			h := derive(seed, uint64(c)<<8|uint64(ch))
			e[c][ch] = adcError{gain: 1 + between(h, -ph.ADCGain, ph.ADCGain), offset: between(detmath.Mix(h^detmath.Golden), -ph.ADCOffset, ph.ADCOffset),
				bow: between(derive(h, 1), -ph.ADCBow, ph.ADCBow)}
		}
	}
	return e
}
