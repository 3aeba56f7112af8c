package bench

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim/solo"
)

// needs finds a program, or skips and says what is missing.
func needs(t *testing.T, names ...string) string {
	t.Helper()
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	t.Skipf("no %s here: the dump is not read by another program", names[0])
	return ""
}

// ethtool is what ethtool prints of a module whose memory is image: text by
// name of the field.
func ethtool(t *testing.T, image []byte) map[string]string {
	t.Helper()
	tool := needs(t, "ethtool", "/usr/sbin/ethtool", "/sbin/ethtool")
	cc := needs(t, "cc")
	dir := t.TempDir()
	kernel, file := filepath.Join(dir, "kernel.so"), filepath.Join(dir, "module.bin")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", kernel, filepath.Join("testdata", "ethtool_kernel.c")).CombinedOutput(); err != nil {
		t.Skipf("no headers of the kernel's here: %v: %s", err, out)
	}
	if err := os.WriteFile(file, image, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "-m", "ocstrx0")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+kernel, "MODULE_IMAGE="+file, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("ethtool: %v: %s", err, out)
	}
	fields := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " : "); ok {
			fields[strings.Join(strings.Fields(name), " ")] = strings.TrimSpace(value)
		}
	}
	return fields
}

// Goal: a public CMIS parser reads the dump of a simulated module: identity,
// revision, states, temperature, levels of every lane, thresholds.
// Method: ethtool, which finds the image behind a kernel of our own; a module
// that shines in loopback, outwards, and not at all. What ethtool does not look
// at, the lanes' data-path states and the pages' check sums, is read by
// sim/testdata/cmis_view.py.
func TestEthtoolReadsTheDump(t *testing.T) {
	// Its maker has calibrated the module with its chips at hand.
	chips, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	maker, err := solo.New(solo.Config{Board: &chips, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	var cals []*ocs.Calibration
	if r, err := (BringUp{Calibrate: true, Calibrated: func(_, _ int, c *ocs.Calibration) { cals = append(cals, c) }}).Run(Alone(maker),
		[]Station{{Board: &chips, Seed: 8}}); err != nil || len(cals) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	hw, err := boardfile.DefaultCMIS(4, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := solo.New(solo.Config{Board: &hw, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(Alone(b), []Station{{Board: &hw, Calibrations: cals, Seed: 8}})
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	world := b.World()
	world.SetAmbient(b.ID(), 43_000)
	for _, path := range []proto.Path{proto.Loopback, proto.External1, proto.Dark} {
		if err := l.sel(l.all(), func(*driven) proto.Path { return path }); err != nil {
			t.Fatal(err)
		}
		image, err := l.dump(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := ethtool(t, image)
		for name, want := range map[string]string{
			"Identifier":                    "0x18 (QSFP-DD Double Density 8X Pluggable Transceiver (INF-8628))",
			"Revision compliance":           "Rev. 5.3",
			"Vendor name":                   "RINGLIGHT",
			"Vendor PN":                     "OCSTRX-8",
			"Vendor SN":                     world.Personality(b.ID(), 0, 0).Serial(),
			"Module State":                  "0x03 (ModuleReady)",
			"Max power":                     "8.00W",
			"Transmitter technology":        "0x04 (1310 nm DFB)",
			"Laser wavelength":              "1310.000nm",
			"Module voltage":                "3.3000 V",
			"Module temperature high alarm": "Off",
			"Module temperature high alarm threshold":  "75.00 degrees C / 167.00 degrees F",
			"Module temperature low warning threshold": "0.00 degrees C / 32.00 degrees F",
			"Module voltage high alarm threshold":      "3.4650 V",
			"Laser output power high alarm threshold":  "2.0000 mW / 3.01 dBm",
			"Laser rx power low alarm threshold":       "0.0250 mW / -16.02 dBm",
		} { // any order: independent
			if got[name] != want {
				t.Errorf("%v: %s: %q, want %q", path, name, got[name], want)
			}
		}
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(strings.Fields(got[name] + " ?")[0], 64)
			if err != nil {
				t.Errorf("%v: %s: %q", path, name, got[name])
			}
			return v
		}
		if c := number("Module temperature"); c < 43 || c > 65 {
			t.Errorf("%v: %.2f C in air of 43", path, c)
		}
		for lane := 1; lane <= hal.Lanes; lane++ {
			mw := number("Transmit avg optical power (Channel " + strconv.Itoa(lane) + ")")
			rx := number("Rcvr signal avg optical power (Channel " + strconv.Itoa(lane) + ")")
			// In loopback the light stays inside; outside nobody answers.
			if (path == proto.External1) != (mw > 0.1) || (path == proto.Loopback) != (rx > 0.02) {
				t.Errorf("%v: lane %d sends %.4f mW, receives %.4f", path, lane, mw, rx)
			}
		}
	}
}
