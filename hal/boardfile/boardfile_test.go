package boardfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"ringlight/hal"
)

// Goal: the default boards are within what their chips bear, at every size.
func TestDefaultBoardsAreGood(t *testing.T) {
	for n := 1; n <= hal.MaxBundles; n++ {
		for _, dac := range []hal.Part{hal.LTC2688, hal.AD5676R} {
			b, err := DefaultOf(dac, 4, n, n)
			if err != nil || len(b.Bundles) != n || len(b.Bundles[n-1].Modules) != n || b.GPUs != 4 || len(b.Buses) != 1+4*n || len(b.Lines) != 3*n || len(b.Latches) != (n+3)/4 {
				t.Errorf("%v, %d bundles: %d buses, %d lines, %d latches: %v", dac, n, len(b.Buses), len(b.Lines), len(b.Latches), err)
			}
		}
		for _, mux := range []bool{false, true} {
			b, err := DefaultCMIS(4, n, n, mux)
			if want := map[bool]int{false: n * n, true: n}[mux]; err != nil || len(b.Buses) != want || len(b.Lines) != 3*n {
				t.Errorf("cmis, mux %v, %d bundles: %d buses: %v", mux, n, len(b.Buses), err)
			}
		}
	}
	for _, bad := range [][2]int{{0, 1}, {9, 1}, {1, 0}, {1, 9}} {
		if _, err := Default(4, bad[0], bad[1]); err == nil {
			t.Errorf("default of %v: accepted", bad)
		}
		if _, err := DefaultCMIS(4, bad[0], bad[1], true); err == nil {
			t.Errorf("cmis of %v: accepted", bad)
		}
	}
}

// Goal: each of many wrong files is refused, with the field that is wrong and nothing
// else; whatever the file says of a bus that is too fast names bus and chip.
// Method: one or two places of the default board changed in its JSON.
func TestWrongFilesNameTheField(t *testing.T) {
	for _, c := range wrong {
		text := defaultFile
		for i := 0; i < len(c.edits); i += 2 {
			if !strings.Contains(text, c.edits[i]) {
				t.Fatalf("%s: the default file has no %s", c.field, c.edits[i])
			}
			text = strings.Replace(text, c.edits[i], c.edits[i+1], 1)
		}
		_, _, err := Parse([]byte(text))
		var p *hal.Problem
		switch {
		case err == nil:
			t.Errorf("%s: %s was taken", c.field, c.edits[1])
		case strings.HasPrefix(c.field, "line "):
			if !strings.HasSuffix(err.Error(), ", "+c.field) {
				t.Errorf("%s: %v", c.field, err)
			}
		case !errors.As(err, &p) || p.Field != c.field || strings.Count(err.Error(), "\n") > c.more:
			t.Errorf("%s: %v", c.field, err)
		case p.Limit == "" || p.Text == "":
			t.Errorf("%s: no limit or no text: %v", c.field, err)
		}
	}
	t.Logf("%d wrong files", len(wrong))
}

// wrong are changes to the default file, and the first field that is to be named; more
// is how many others may be.
var wrong = []struct {
	field string
	more  int
	edits []string
}{
	{"format", 0, []string{`"format": 1`, `"format": 2`}},
	{"name", 0, []string{`"name": "default"`, `"name": ""`}},
	{"gpus", 0, []string{`"gpus": 4`, `"gpus": 9`}},
	{"line 4", 0, []string{`"gpus": 4`, `"gpu": 4`}},
	{"line 6", 0, []string{`"hz": 1000000`, `"hz": "1 MHz"`}},
	{"line 168", 0, []string{"\n ]\n}\n", "\n ]\n}\n{}"}},
	{"buses[0].name", 2, []string{`{"name": "latch", "kind"`, `{"name": "", "kind"`}},
	{"buses[1].name", 9, []string{`{"name": "b0.dac", "kind"`, `{"name": "latch", "kind"`}},
	{"buses[0].kind", 2, []string{`"latch", "kind": "i2c"`, `"latch", "kind": "i3c"`}},
	{"buses[0].device", 0, []string{`"/dev/i2c-0"`, `"/dev/i2c"`}},
	{"buses[1].device", 0, []string{`"/dev/spidev0."`, `"/dev/spidev0.0"`}},
	{"buses[2].device", 0, []string{`"/dev/i2c-1"`, `"/dev/i2c-0"`}},
	{"buses[0].device", 0, []string{`"/dev/i2c-0"`, `"periph:"`}},
	{"buses[0].device", 0, []string{`"/dev/i2c-0"`, `"periph:usb:1"`}},
	{"buses[1].device", 0, []string{`"/dev/spidev0."`, `"periph:FT232H"`}},
	{"buses[0].hz", 0, []string{`"/dev/i2c-0", "hz": 1000000`, `"/dev/i2c-0", "hz": 9000`}},
	{"buses[0].hz", 1, []string{`"latch0", "part": "pcal6524"`, `"latch0", "part": "pca9535"`}},
	{"buses[4].hz", 40, []string{`"hz": 400000`, `"hz": 1000000`}},
	{"buses[1].hz", 23, []string{`"hz": 20000000`, `"hz": 60000000`}},
	{"buses[0].channel", 0, []string{`"/dev/i2c-0", "hz"`, `"/dev/i2c-0", "channel": 2, "hz"`}},
	{"buses[0].device", 1, []string{`"/dev/i2c-0", "hz"`, `"/dev/i2c-0", "mux": "b0.mux", "hz"`}},
	{"buses[1].recovery", 0, []string{`"/dev/spidev0.",`, `"/dev/spidev0.", "recovery": {"scl": {"line": "A"}, "sda": {"line": "B"}},`}},
	{"buses[0].recovery.sda", 0, []string{`"/dev/i2c-0",`, `"/dev/i2c-0", "recovery": {"scl": {"line": "A"}, "sda": {}},`}},
	{"buses[0].recovery.sda", 0, []string{`"/dev/i2c-0",`, `"/dev/i2c-0", "recovery": {"scl": {"line": "A"}, "sda": {"line": "A"}},`}},
	{"muxes[0].part", 0, []string{`"part": "pca9548"`, `"part": "pca9535"`}},
	{"muxes[0].bus", 0, []string{`"bus": "b0.slow", "addr"`, `"bus": "b0", "addr"`}},
	{"muxes[0].addr", 0, []string{`"addr": "0x70"`, `"addr": "0x68"`}},
	{"muxes[0].addr", 0, []string{`"addr": "0x70"`, `"addr": "70"`}},
	{"latches[0].part", 0, []string{`"latch0", "part": "pcal6524"`, `"latch0", "part": "pcal"`}},
	{"latches[1].addr", 0, []string{`"addr": "0x21"`, `"addr": "0x20"`}},
	{"latches[0].addr", 0, []string{`"addr": "0x20"`, `"addr": "0x24"`}},
	{"types[0].control", 0, []string{`"control": "chips"`, `"control": "dips"`}},
	{"types[0].matrix", 0, []string{`"benes-8x8"`, `"crossbar"`}},
	{"types[0].couplers", 0, []string{`"cells": 36`, `"cells": 36, "couplers": [[0, 1]]`}},
	{"types[0].couplers", 0, []string{`"benes-8x8"`, `"couplers"`}},
	{"types[0].couplers[1]", 0, []string{`"benes-8x8"`, `"couplers", "couplers": [[0, 4], [1, 8]]`}},
	{"types[0].couplers[0]", 0, []string{`"benes-8x8"`, `"couplers", "couplers": [[3, 3]]`}},
	{"types[0].couplers", 0, []string{`"benes-8x8"`, `"couplers", "couplers": [` + strings.Repeat("[0, 1], ", 28) + `[0, 1]]`}},
	{"types[0].cells", 0, []string{`"cells": 36`, `"cells": 64`}},
	{"types[0].dac", 0, []string{`"dac": "ltc2688"`, `"dac": "dac80508"`}},
	{"types[0].heaters[0]", 1, []string{`["mzi1/0", `, `[`}},
	{"types[0].heaters[0][1]", 1, []string{`"mzi1/1"`, `"mzi1/0"`}},
	{"types[0].heaters", 0, []string{`"mzi1/7"`, `""`}},
	{"types[0].guard[7].sees", 0, []string{`"tap/2"`, `"tap/1"`}},
	{"types[0].lanes", 0, []string{`{"sees": "lane/0", "full_scale_mdbm": 3000},`, ``}},
	{"types[0].lanes[0].full_scale_mdbm", 0, []string{`"lane/0", "full_scale_mdbm": 3000`, `"lane/0", "full_scale_mdbm": 300000`}},
	{"types[0].rail_shunt_milliohm", 0, []string{`"rail_shunt_milliohm": 500, `, ``}},
	{"types[0].los_clear_mdbm", 0, []string{`"los_clear_mdbm": -14000`, `"los_clear_mdbm": -16000`}},
	{"types[0].settle_us", 0, []string{`"settle_us": 70`, `"settle_us": 0`}},
	{"types[0].heater.max_mv", 0, []string{`"max_mv": 8500`, `"max_mv": 10001`}},
	{"types[0].heater.most_ohm", 0, []string{`"most_ohm": 2200`, `"most_ohm": 449`}},
	{"bundles[0].latch", 0, []string{`{"latch": "latch0", "first_pin": 0`, `{"latch": "latch9", "first_pin": 0`}},
	{"bundles[0].first_pin", 0, []string{`"first_pin": 0`, `"first_pin": 22`}},
	{"bundles[1].first_pin", 0, []string{`"first_pin": 4`, `"first_pin": 0`}},
	{"bundles[0].los.loopback", 0, []string{`{"loopback": {"chip": "gpiochip0", "offset": 0}`, `{"loopback": {}`}},
	{"bundles[0].los.external1", 0, []string{`"external1": {"chip": "gpiochip0", "offset": 1}`, `"external1": {"chip": "gpiochip0", "offset": 0}`}},
	{"bundles[0].modules[0].type", 0, []string{`"modules": [
   {"type": "ocstrx"`, `"modules": [
   {"type": "osfp"`}},
	{"bundles[0].modules[0].spi", 3, []string{`"spi": "b0.dac"`, `"spi": "b0.slow"`}},
	{"bundles[0].modules[0].selects", 0, []string{`"selects": [0, 1, 2]`, `"selects": [0, 1]`}},
	{"bundles[0].modules[1].selects[0]", 0, []string{`"selects": [3, 4, 5]`, `"selects": [2, 4, 5]`}},
	{"bundles[0].modules[0].lanes", 0, []string{`"lanes": "0x11"`, `"lanes": "0x10"`}},
	{"bundles[0].modules[0].guard", 0, []string{`"guard": "0x10"`, `"guard": "0x18"`}},
	{"bundles[0].modules[0].mux", 0, []string{`"mux": "b0.mux"`, `"mux": "b1.mux"`}},
	{"bundles[0].modules[1].temperature", 4, []string{`"channel": 1,`, `"channel": 0,`}},
	{"bundles[0].modules[0].mci", 0, []string{`"spi": "b0.dac"`, `"mci": "b0.slow", "spi": "b0.dac"`}},
	{"bundles[0].modules[0].rail", 0, []string{`"rail": "0x40", `, ``}},
}

// Goal: a circuit switch is a file too; what is wrong with one is named.
func TestMirrors(t *testing.T) {
	raw, err := os.ReadFile("testdata/atrium.json")
	if err != nil {
		t.Fatal(err)
	}
	_, b, err := Parse(raw)
	if err != nil || b.Ports() != 12 || len(b.Mirrors.DACs) != 4 || b.Mirrors.Temp.Part != hal.TMP102 || b.Buses[b.Mirrors.Monitors[hal.SideB][11].Bus].Name != "out" {
		t.Fatalf("%+v, %v", b.Mirrors, err)
	}
	first := fmt.Sprint(b.Mirrors.Arrays[hal.SideA][0].Electrodes[0])
	for _, c := range []struct{ field, old, new string }{
		{"mirrors.dac", `"dac": "ad5535b"`, `"dac": "ltc2688"`},
		{"mirrors.adc", `"adc": "ads7138"`, `"adc": "ad7998"`},
		{"mirrors.temperature.bus", `"bus": "carrier"`, `"bus": "hv"`},
		{"mirrors.temperature", `"0x4a"`, `"0x4c"`},
		{"mirrors.dacs[0].spi", `{"spi": "hv", "select": 0}`, `{"spi": "in", "select": 0}`},
		{"mirrors.dacs[2]", `"select": 5`, `"select": 0`},
		{"mirrors.a[0].electrodes", `"electrodes": [` + first + `, `, `"electrodes": [`},
		{"mirrors.a[0].electrodes[0]", `"electrodes": [` + first + `, `, `"electrodes": [128, `},
		{"buses[1].hz", `10000000`, `40000000`},
		{"gpus", `"format": 1,`, `"format": 1, "gpus": 4,`},
	} {
		var p *hal.Problem
		if _, _, err := Parse([]byte(strings.Replace(string(raw), c.old, c.new, 1))); !errors.As(err, &p) || p.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

// Goal: a bus may be one that is registered with periph.
func TestRegisteredBuses(t *testing.T) {
	text := strings.Replace(strings.Replace(defaultFile, `"/dev/i2c-0"`, `"periph:FT232H"`, 1), `"/dev/spidev0."`, `"periph:FT232H."`, 1)
	if _, b, err := Parse([]byte(text)); err != nil || b.Buses[0].Device != "periph:FT232H" || b.Buses[1].Device != "periph:FT232H." {
		t.Errorf("%v", err)
	}
}

// Goal: a file that is written out again is the board that it was.
func TestShownFilesAreRead(t *testing.T) {
	f, b, err := Parse([]byte(defaultFile))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	x, _ := json.Marshal(b)
	y, _ := json.Marshal(again)
	if string(x) != string(y) {
		t.Error("the board that was written out is another")
	}
}

// FuzzParse: whatever a file says, it is a board that passes its own check or it is
// refused, and nothing else happens.
func FuzzParse(f *testing.F) {
	raw, err := os.ReadFile("testdata/cage.json") // small: a fuzzer is slow on a long one
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"format":1,"types":[{"control":"cmis"}],"bundles":[{"modules":[{}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, b, err := Parse(raw)
		if err == nil && (len(b.Bundles) == 0 && b.Mirrors == nil || b.Check() != nil) {
			t.Errorf("a board that is none was taken: %v", b.Check())
		}
	})
}
