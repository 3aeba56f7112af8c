package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/ltc2688"
)

// What is driven by drivers that no kernel of Debian has built: ltc2688 and
// ti-ads7138, from its source packages (.ci/kernel.sh). They are tried in whole
// rounds, each from the driver's own reset on, so that a planted defect of the
// model must show in a round too.

// kernelDriver is a driver and the device that it is bound to for a round.
type kernelDriver struct {
	t      testing.TB
	driver string // its folder in sysfs
	device string
	iio    string // the device's folder, while bound
	brief  bool   // a round with a defect: some of what has many values will do
	wrong  []string
}

// round is the driver's work between bind and unbind; it returns what was wrong.
func (k *kernelDriver) round(work func()) []string {
	k.wrong = nil
	if err := os.WriteFile(filepath.Join(k.driver, "bind"), []byte(k.device), 0); err != nil {
		return []string{err.Error()}
	}
	dirs, _ := filepath.Glob(filepath.Join(k.driver, k.device, "iio:device*"))
	if len(dirs) != 1 {
		k.t.Fatalf("%s: %d IIO devices", k.device, len(dirs))
	}
	k.iio = dirs[0]
	work()
	if err := os.WriteFile(filepath.Join(k.driver, "unbind"), []byte(k.device), 0); err != nil {
		k.t.Fatal(err)
	}
	return k.wrong
}

func (k *kernelDriver) differ(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

func (k *kernelDriver) set(name string, v int) {
	if err := os.WriteFile(filepath.Join(k.iio, name), strconv.AppendInt(nil, int64(v), 10), 0); err != nil {
		k.differ("%v", err)
	}
}

func (k *kernelDriver) text(name string) string {
	s, err := readAttribute(filepath.Join(k.iio, name))
	if err != nil {
		k.differ("%s: %v", name, err)
	}
	return s
}

func (k *kernelDriver) number(name string) float64 {
	v, err := strconv.ParseFloat(k.text(name), 64)
	if err != nil {
		k.differ("%s: %v", name, err)
	}
	return v
}

// same holds what the driver reads against what the model has.
func (k *kernelDriver) same(name string, model int) {
	if v := k.number(name); v != float64(model) {
		k.differ("%s: kernel %v, model %d", name, v, model)
	}
}

// defect is one of a model, as the bus shows it, and rounds must show.
type defect struct {
	name  string
	spoil func(w, r []byte)
}

// rounds asks for one without a difference and then one with each defect, which
// must have some.
func rounds(t *testing.T, bus *kernelBus, k *kernelDriver, work func(), defects []defect) {
	for _, w := range k.round(work) {
		t.Error(w)
	}
	k.brief = true
	for _, d := range defects {
		bus.mu.Lock()
		bus.spoil = d.spoil
		bus.mu.Unlock()
		wrong := k.round(work)
		bus.mu.Lock()
		bus.spoil = nil
		bus.mu.Unlock()
		if len(wrong) == 0 {
			t.Errorf("planted: %s: not found", d.name)
			continue
		}
		t.Logf("planted: %s: %d differences, the first: %s", d.name, len(wrong), wrong[0])
	}
}

// spiRelay carries what the kernel sends on its SPI controller that is a process
// (.ci/kernel/spi_relay.c) to the chip at a select.
func spiRelay(t testing.TB, k *kernelBus, chip uint16) {
	f, err := os.OpenFile("/dev/spi-relay", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no SPI controller for it: %v", err)
	}
	go func() {
		var b [256]byte
		for {
			n, err := f.Read(b[:])
			if err != nil {
				return
			}
			back := make([]byte, n)
			if k.do(hal.Msg{Addr: chip, Frame: uint8(n), W: b[:n], R: back}) != nil {
				clear(back)
			}
			if _, err := f.Write(back); err != nil {
				return
			}
		}
	}()
}

// Channels of the LTC2688 in .ci/kernel/models.dtso, by what they are for.
const (
	dacTGP0 = iota // as a heater of MZI1: 0 to 10 V, toggled by a pin
	dacTGP1
	dacRegister // toggled by a register
	dacDither
	dacPlain  // from here on
	dacClocks = 128_000
)

// dacSpans is what the device tree makes of each channel, in millivolts; 5 V of
// one sign is what the others are.
var dacSpans = map[int]float64{dacTGP0: 10_000, dacTGP1: 10_000, dacDither: 10_000, 4: 10_000, 5: 20_000, 6: 30_000, 7: 10_500}

// kernelLTC2688 is all that the driver can do, told from the model's outputs.
func kernelLTC2688(k *kernelDriver, r *rig, id BoardID, bus *kernelBus, chip *ltc) func() {
	model := func(f func()) {
		bus.mu.Lock()
		defer bus.mu.Unlock()
		f()
	}
	nets := func(bits byte) { model(func() { r.latch(id, 0, bits) }) }
	// output holds what a channel puts out against a code on the kernel's scale.
	output := func(ch int, code int, what string) {
		out := fmt.Sprintf("out_voltage%d_", ch)
		scale, offset := k.number(out+"scale"), k.number(out+"offset")
		var volts float64
		model(func() { volts = chip.volts(ch, chip.nets) })
		if want := (float64(code) + offset) * scale; volts*1000 < want-scale/2 || volts*1000 > want+scale/2 {
			k.differ("%s%s: kernel %.3f mV, model %.3f mV", out, what, want, volts*1000)
		}
	}
	return func() {
		nets(pathLoopback)
		for ch := range ltc2688.Channels {
			span := dacSpans[ch]
			if span == 0 {
				span = 5000
			}
			if s := k.number(fmt.Sprintf("out_voltage%d_scale", ch)) * 65536; s < span-0.1 || s > span+0.1 {
				k.differ("channel %d: the device tree has a span of %v mV, the chip says %v mV", ch, span, s)
			}
		}
		for ch := dacPlain; ch < ltc2688.Channels; ch++ {
			out, code := fmt.Sprintf("out_voltage%d_", ch), 40_000+1001*ch
			k.set(out+"raw", code)
			k.same(out+"raw", code)
			output(ch, code, "raw")
			k.set(out+"powerdown", 1)
			output(ch, -int(k.number(out+"offset")), "powerdown")
			k.set(out+"powerdown", 0)
			output(ch, code, "powered again")
			k.set(out+"calibbias", 3*ch)
			k.set(out+"calibscale", 5*ch)
			k.same(out+"calibbias", 3*ch)
			k.same(out+"calibscale", 5*ch)
			model(func() {
				if o, g := chip.trimmed().offset[ch]>>2, chip.trimmed().gain[ch]; int(o) != 3*ch || int(g) != 5*ch {
					k.differ("%scalib: kernel %d and %d, model %d and %d", out, 3*ch, 5*ch, o, g)
				}
			})
		}
		for _, ch := range []int{dacTGP0, dacTGP1, dacRegister} {
			out := fmt.Sprintf("out_voltage%d_", ch)
			move := func(high bool) {
				if ch == dacRegister {
					k.set(out+"symbol", boolToInt(high))
					return
				}
				nets(map[bool]byte{true: byte(hal.LatchToggle0) << ch}[high]) // this pin alone
			}
			k.set(out+"raw0", 10_000)
			k.set(out+"raw1", 50_000)
			k.same(out+"raw0", 10_000)
			k.same(out+"raw1", 50_000)
			k.set(out+"toggle_en", 1)
			output(ch, 10_000, "raw0")
			move(true)
			output(ch, 50_000, "raw1")
			k.set(out+"raw0", 20_000) // staged, for the next edge
			output(ch, 50_000, "raw1 while raw0 is staged")
			move(false)
			output(ch, 20_000, "raw0 staged")
			k.set(out+"toggle_en", 0)
			move(true)
			output(ch, 20_000, "raw0 with toggle off")
			move(false)
		}
		k.dither(chip, model)
	}
}

// dither has a channel dither at every frequency and phase.
func (k *kernelDriver) dither(chip *ltc, model func(func())) {
	out := fmt.Sprintf("out_voltage%d_", dacDither)
	for _, f := range strings.Fields(k.text(out + "dither_frequency_available")) {
		hertz, _ := strconv.Atoi(f)
		k.set(out+"dither_frequency", hertz)
		model(func() {
			if n := ltc2688.Clocks(chip.setting[dacDither]); n*hertz != dacClocks {
				k.differ("dither at %d Hz: a period of %d clocks of %d Hz", hertz, n, dacClocks)
			}
		})
	}
	for quarter, phase := range []string{"0", "1.5708", "3.14159", "4.71239"} {
		if err := os.WriteFile(filepath.Join(k.iio, out+"dither_phase"), []byte(phase), 0); err != nil {
			k.differ("%v", err)
		}
		model(func() {
			if q := ltc2688.Quarter(chip.setting[dacDither]); q != quarter {
				k.differ("dither phase %s: quarter %d", phase, q)
			}
		})
	}
	k.set(out+"dither_raw", 1000)
	k.set(out+"dither_en", 1)
	model(func() {
		if a := chip.in[dacDither][1] & ltc2688.DitherAmplitudeMask >> 2; a != 1000 || !chip.dithering(dacDither) {
			k.differ("dither of 1000: amplitude %d, on %v", a, chip.dithering(dacDither))
		}
	})
	k.set(out+"dither_en", 0)
}

var ltcDefects = []defect{
	{"the select of register A or B is lost", func(w, r []byte) { ignore(w, r, ltc2688.CmdABSelect) }},
	{"toggling is not enabled", func(w, r []byte) { ignore(w, r, ltc2688.CmdToggleEnable) }},
	{"a code that is written with an update waits for one", func(w, r []byte) {
		if r == nil && w[0]&0xF0 == ltc2688.CmdCodeUpdate {
			w[0] = ltc2688.CmdCode | w[0]&15
		}
	}},
	{"the spans of 5 and 10 V are exchanged", func(w, r []byte) {
		if r == nil && w[0]&0xF0 == ltc2688.CmdSetting {
			w[2] ^= 1
		}
	}},
	{"the toggle pins are exchanged", func(w, r []byte) {
		if s := w[2] >> ltc2688.SourceShift & 3; r == nil && w[0]&0xF0 == ltc2688.CmdSetting && s-1 < 2 {
			w[2] ^= 3 << ltc2688.SourceShift
		}
	}},
	{"a register is read low byte first", func(w, r []byte) {
		if len(r) == ltc2688.FrameBytes {
			r[1], r[2] = r[2], r[1]
		}
	}},
}

// ignore makes a command one that does nothing.
func ignore(w, r []byte, cmd byte) {
	if r == nil && w[0] == cmd {
		w[0] = ltc2688.CmdNoop
	}
}

// kernelADS7138 is the same of an ADC, held against the light that it sees.
func kernelADS7138(k *kernelDriver, r *rig, id BoardID, bus *kernelBus, chip *adc) func() {
	light := func() [ads7138.Channels]float64 {
		bus.mu.Lock()
		defer bus.mu.Unlock()
		seen := r.guard(id, 0, 0)
		for ch := range seen {
			seen[ch] *= ads7138.CodeFull / r.w.module(id, 0, 0).wired.full[guardADC][ch]
		}
		return seen
	}
	// near holds all results against the light, within codes of twelve bits.
	near := func(what string, codes float64) {
		for ch, want := range light() {
			in := fmt.Sprintf("in_voltage%d_", ch)
			raw := k.number(in+"raw") / 16
			if raw < want-codes || raw > want+codes {
				k.differ("%sraw %s: kernel %.2f codes, light for %.2f", in, what, raw, want)
			}
			low, high := k.number(in+"trough_raw")/16, k.number(in+"peak_raw")/16
			if low == 0 && want > codes { // a busy kernel may ask before the statistics that it begins have a result
				bus.mu.Lock()
				r.run(20 * time.Millisecond)
				bus.mu.Unlock()
				low, high = k.number(in+"trough_raw")/16, k.number(in+"peak_raw")/16
			}
			if low > raw+codes || raw > high+codes || high > want+codes+4 || low < want-codes-4 {
				k.differ("%s%s: kernel %.2f codes, from %.2f to %.2f", in, what, raw, low, high)
			}
		}
	}
	return func() {
		near("at once", 4)
		for i, f := range strings.Fields(k.text("in_voltage_sampling_frequency_available")) {
			if k.brief && i%5 != 0 {
				continue
			}
			hertz, _ := strconv.Atoi(f)
			k.set("in_voltage_sampling_frequency", hertz)
			k.same("in_voltage_sampling_frequency", hertz)
			ns := ads7138.CycleNanos(chip.reg[ads7138.RegOpMode])
			if d := float64(ns)*float64(hertz)/1e9 - 1; d < -0.005 || d > 0.005 {
				k.differ("at %d Hz a conversion takes the model %d ns", hertz, ns)
			}
		}
		for _, f := range strings.Fields(k.text("in_voltage_oversampling_ratio_available")) {
			n, _ := strconv.Atoi(f)
			k.set("in_voltage_oversampling_ratio", n)
			k.same("in_voltage_oversampling_ratio", n)
			if m := chip.oversample(); int(m) != n {
				k.differ("of %d conversions each: the model averages %d", n, m)
			}
		}
		bus.mu.Lock()
		r.run(20 * time.Millisecond) // results of 128 conversions, eight channels, at a million a second
		bus.mu.Unlock()
		near("of 128", 1)
		window := func(ch int) ads7138.Window {
			at := ads7138.WindowReg(ch)
			return ads7138.ParseWindow([4]byte(chip.reg[at:at+4]), false)
		}
		for ch := range ads7138.Channels {
			ev := fmt.Sprintf("events/in_voltage%d_thresh_", ch)
			k.same(ev+"rising_value", ads7138.CodeFull)
			k.same(ev+"falling_value", 0)
			k.set(ev+"rising_value", 3001+ch)
			k.set(ev+"falling_value", 1001+ch)
			k.set(ev+"either_hysteresis", ch+3)
			k.set(ev+"either_en", 1)
			w := window(ch)
			k.same(ev+"rising_value", int(w.High))
			k.same(ev+"falling_value", int(w.Low))
			k.same(ev+"either_hysteresis", int(w.Hysteresis)/ads7138.HysteresisStep)
			if w.High != uint16(3001+ch) || w.Low != uint16(1001+ch) || w.Hysteresis != uint16(ch+3)*ads7138.HysteresisStep {
				k.differ("channel %d: the model has %+v", ch, w)
			}
			if on := chip.reg[ads7138.RegAlertSel]; on != 1<<(ch+1)-1 {
				k.differ("channels 0 to %d alert, the model has %08b", ch, on)
			}
		}
		k.set("events/in_voltage3_thresh_either_en", 0)
		if on := chip.reg[ads7138.RegAlertSel]; on != 0xF7 {
			k.differ("all but channel 3 alert, the model has %08b", on)
		}
	}
}

var adsDefects = []defect{
	{"bits that are to be set are written", func(w, r []byte) {
		if r == nil && w[0] == ads7138.OpSetBits {
			w[0] = ads7138.OpWrite
		}
	}},
	{"a result is read high byte first", func(w, r []byte) {
		if len(r) == 2 && len(w) == 2 && w[1] >= ads7138.RegMax {
			r[0], r[1] = r[1], r[0]
		}
	}},
	{"results are a channel further on", func(w, r []byte) {
		if r == nil && w[0] == ads7138.OpReadBlock && w[1] >= ads7138.RegMax {
			w[1] += 2
		}
	}},
	{"the clock is divided by the next step", func(w, r []byte) {
		if r == nil && w[0] == ads7138.OpWrite && w[1] == ads7138.RegOpMode && w[2]&ads7138.OpModeDivMask < 15 {
			w[2]++
		}
	}},
	{"a block that is written ends after a byte", func(w, r []byte) {
		if r == nil && w[0] == ads7138.OpWriteBlock {
			w[0] = ads7138.OpWrite
		}
	}},
	{"averages of one conversion more", func(w, r []byte) {
		if r == nil && w[0] == ads7138.OpWrite && w[1] == ads7138.RegOversample {
			w[2] ^= 1
		}
	}},
}
