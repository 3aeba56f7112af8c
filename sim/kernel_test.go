package sim

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/ina219"
	"ringlight/hal/pca953x"
	"ringlight/hal/tmp102"
)

// Goal: the register models are what Linux takes such chips for.
// Method: the kernel's own drivers, unmodified, on adapters that are simulated
// buses: pca954x, at24, tmp102, ina2xx-adc, gpio-pca953x. What they say is
// compared with the model and with our packages' reading of it. It runs where
// RINGLIGHT_VHCI is set, as root, in the kernel of `make bench-kernel`.
func TestKernelDriversDriveTheModels(t *testing.T) {
	if os.Getenv("RINGLIGHT_VHCI") == "" {
		t.Skip("RINGLIGHT_VHCI is not set: no kernel here to drive the models (make bench-kernel has one)")
	}
	r := newRig(t, 1, 2)
	id := r.board(5)
	r.w.SetAmbient(id, 43_000)
	r.run(time.Second) // every chip has converted
	hw := &r.hw.Bundles[0].Modules[1]
	var mu sync.Mutex
	r.on(id)
	r.perfect(id, 0)
	r.latch(id, 0, pathLoopback)
	r.run(5 * time.Millisecond) // heaters stand
	slow := plugUSB(t, &mu, r, id, hw.Slow, 0)
	latches := plugUSB(t, &mu, r, id, r.hw.Latches[0].Bus, 1)

	bind(t, slow.path, "pca9548", hw.Mux)
	channel, err := filepath.EvalSymlinks(filepath.Join("/sys/bus/i2c/devices", filepath.Base(slow.path)[4:]+"-0070", "channel-"+strconv.Itoa(int(hw.MuxChannel))))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("at24", func(t *testing.T) {
		f, err := os.OpenFile(filepath.Join(bind(t, channel, "24c64", hw.EEPROM), "eeprom"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		text := bytes.Repeat([]byte("no two places look alike. "), 40)[:200]
		for i := range text {
			text[i] += byte(i / 26)
		}
		const at = 37 // in the middle of a page
		if _, err := f.WriteAt(text, at); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(text))
		if _, err := f.ReadAt(got, at); err != nil || !bytes.Equal(got, text) {
			t.Errorf("read back otherwise: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, p := range r.w.Memory(id, 0, 1) {
			first := int(p.Number) * at24.Of(hal.AT24C64).PageBytes
			for i, b := range p.Data {
				if k := first + i - at; k >= 0 && k < len(text) && b != text[k] {
					t.Fatalf("byte %d: the model has %02x, written was %02x", first+i, b, text[k])
				}
			}
		}
		t.Logf("%d bytes from %d on: written, read, and in the model", len(text), at)
	})
	// ours is what our packages read of a chip.
	ours := func(addr uint16, w []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		return r.must(id, hw.Slow, hal.Msg{Addr: hw.Mux, W: []byte{1 << hw.MuxChannel}}, hal.Msg{Addr: addr, W: w, R: make([]byte, 2)}).Op.Msgs[1].R
	}
	t.Run("tmp102", func(t *testing.T) {
		dev := bind(t, channel, "tmp102", hw.Temp)
		kernel, err := strconv.Atoi(attribute(t, dev+"/hwmon/hwmon*/temp1_input"))
		own := int(tmp102.Millicelsius(ours(hw.Temp, tmp102.AppendRead(nil, tmp102.RegTemperature))))
		if d := kernel - own; err != nil || d < -63 || d > 63 || kernel < 40_000 {
			t.Errorf("kernel %d, ours %d: %v", kernel, own, err)
		}
		t.Logf("kernel %d mC, ours %d mC", kernel, own)
	})
	t.Run("ina219", func(t *testing.T) {
		dev := bind(t, channel, "ina219", hw.Rail)
		bus, _ := strconv.Atoi(attribute(t, dev+"/iio:device*/in_voltage1_raw"))
		scale, err := strconv.ParseFloat(attribute(t, dev+"/iio:device*/in_voltage1_scale"), 64)
		own := ina219.BusMillivolt(ina219.Value(ours(hw.Rail, ina219.AppendRead(nil, ina219.RegBus))))
		if kernel := int64(float64(bus) * scale); err != nil || kernel != own || own < 1000 {
			t.Errorf("kernel %d x %v mV, ours %d mV: %v", bus, scale, own, err)
		}
		shunt, err := strconv.Atoi(attribute(t, dev+"/iio:device*/in_voltage0_raw"))
		mine := ina219.Value(ours(hw.Rail, ina219.AppendRead(nil, ina219.RegShunt)))
		if d := shunt - int(int16(mine)); err != nil || d < -1 || d > 1 || mine < 100 { // the load moves by a step between two reads
			t.Errorf("shunt: kernel %d, ours %d: %v", shunt, int16(mine), err)
		}
		t.Logf("kernel %d x %v mV and %d steps, ours %d mV and %d steps", bus, scale, shunt, own, int16(mine))
	})
	t.Run("ads7138", func(t *testing.T) {
		const driver = "/sys/bus/i2c/drivers/ads7138"
		if _, err := os.Stat(driver); err != nil {
			t.Skipf("its driver is not in this kernel: %v", err)
		}
		first := &r.hw.Bundles[0].Modules[0]
		bus := plugUSB(t, &mu, r, id, first.ADC, 2)
		dev := filepath.Base(bind(t, bus.path, "ads7138", first.Guard))
		if err := os.WriteFile(driver+"/unbind", []byte(dev), 0); err != nil {
			t.Fatal(err)
		}
		k := &kernelDriver{t: t, driver: driver, device: dev}
		rounds(t, &bus.kernelBus, k, kernelADS7138(k, r, id, &bus.kernelBus, &r.w.module(id, 0, 0).adc[guardADC]), adsDefects)
	})
	t.Run("ltc2688", func(t *testing.T) {
		k := &kernelDriver{t: t, driver: "/sys/bus/spi/drivers/ltc2688", device: "spi0.0"}
		bus := &kernelBus{t: t, mu: &mu, r: r, board: id, bus: hw.SPI, last: time.Now()}
		spiRelay(t, bus, hw.ChipSelects[0])
		rounds(t, bus, k, kernelLTC2688(k, r, id, bus, r.w.module(id, 0, 1).dac[0].(*ltc)), ltcDefects)
	})
	t.Run("latch", func(t *testing.T) {
		la := r.hw.Latches[0]
		chip := func() map[string]bool {
			seen := map[string]bool{}
			list, _ := filepath.Glob("/sys/class/gpio/gpiochip*")
			for _, p := range list {
				seen[p] = true
			}
			return seen
		}
		before := chip()
		bind(t, latches.path, la.Part.String(), la.Addr)
		base := -1
		for p := range chip() { // any order: one is new
			if !before[p] {
				base, _ = strconv.Atoi(attribute(t, p+"/base"))
			}
		}
		if base < 0 {
			t.Fatal("no GPIO chip of the kernel's")
		}
		model := &r.w.boards[id].latches[0]
		for _, pin := range []int{0, 6, 8, 15, 16, 23} {
			if err := os.WriteFile("/sys/class/gpio/export", []byte(strconv.Itoa(base+pin)), 0); err != nil {
				t.Fatal(err)
			}
			line := filepath.Join("/sys/class/gpio", "gpio"+strconv.Itoa(base+pin))
			for _, level := range []string{"high", "low", "high"} {
				if err := os.WriteFile(line+"/direction", []byte(level), 0); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				port, bit := byte(pin>>3), pin&7
				out := model.reg[model.part.Reg(pca953x.Output, port)]>>bit&1 == 1
				driven := model.reg[model.part.Reg(pca953x.Config, port)]>>bit&1 == 0
				mu.Unlock()
				if !driven || out != (level == "high") {
					t.Errorf("pin %d asked to be %s: driven %v, output %v", pin, level, driven, out)
				}
			}
			if v := attribute(t, line+"/value"); v != "1" {
				t.Errorf("pin %d reads %s", pin, v)
			}
		}
		t.Logf("six pins of a %s driven high, low and high, and read back", la.Part)
	})
}
