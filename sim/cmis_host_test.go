package sim

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
)

// Goal: a switch's own software brings the simulated module up through its data
// path, reads its flags and what came of its configuration.
// Method: SONiC's CMIS code, unmodified, from a checkout of
// sonic-net/sonic-platform-common that RINGLIGHT_SONIC names, over
// testdata/cmis_host.py on the module's own clock.
func TestMCIInTheHandsOfSONiC(t *testing.T) {
	sonic := sonicOr(t)
	r := newMCIRig(t, 1, false, DefaultMCITiming())
	line := r.host(sonic, "cmis_host.py")
	var seen struct {
		API, State, StateAtStart                              string
		HighPower, Deinit                                     bool
		ApplicationAtStart                                    int
		Down, Config, Initialized, Activated                  []string
		Pending                                               []bool
		Advertised                                            map[string]map[string]any
		Status, StatusFlags, DomFlags, ModuleFlags, Info, Dom map[string]any
		Hot                                                   map[string]bool
		Vdm                                                   map[string]map[string][]float64
		Loopback                                              map[string]bool
	}
	if err := json.Unmarshal([]byte(line), &seen); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", line)
	all := func(what string, got []string, want string) {
		if len(got) != cmis.Lanes || slices.ContainsFunc(got, func(s string) bool { return s != want }) {
			t.Errorf("%s: %v, want %s on all lanes", what, got, want)
		}
	}
	all("held down", seen.Down, "DataPathDeactivated")
	all("configuration", seen.Config, "ConfigSuccess")
	all("released", seen.Initialized, "DataPathInitialized")
	all("outputs enabled", seen.Activated, "DataPathActivated")
	if seen.API != "CmisApi" || seen.StateAtStart != "ModuleLowPwr" || !seen.HighPower || seen.State != "ModuleReady" || !seen.Deinit || seen.ApplicationAtStart != 1 {
		t.Errorf("%+v", seen)
	}
	for lane := range cmis.Lanes {
		if power, _ := seen.Dom[fmt.Sprintf("tx%dpower", lane+1)].(float64); power < -3 {
			t.Errorf("lane %d launches %v dBm", lane, seen.Dom[fmt.Sprintf("tx%dpower", lane+1)])
		}
		// Nobody sends to it: half of the bits are wrong, and the high alarm is 2.4e-4.
		if x := seen.Vdm["Pre-FEC BER Current Value Media Input"][fmt.Sprint(lane+1)]; len(x) < 5 || x[0] != 0.5 || fmt.Sprintf("%.1e %.1e", x[1], x[3]) != "2.4e-04 2.4e-05" || x[2] != 0 {
			t.Errorf("lane %d: pre-FEC %v", lane, x)
		}
		if on := fmt.Sprintf("rx%dOutputStatusHostlane", lane+1); seen.Status[on] != true {
			t.Errorf("%s: %v", on, seen.Status[on])
		}
	}
	per := r.w.Personality(r.id, 0, 0)
	for key, want := range map[string]any{"serial": per.Serial(), "manufacturer": "RINGLIGHT", "model": "OCSTRX-8", "vendor_oui": "02-52-4c",
		"cmis_rev": "5.3", "host_lane_count": 8.0, "media_lane_count": 8.0, "vdm_supported": true} { // any order: independent
		if got, ok := seen.Info[key].(string); ok && strings.TrimSpace(got) == want || seen.Info[key] == want {
			continue
		}
		t.Errorf("%s: %v, want %v", key, seen.Info[key], want)
	}
	if len(seen.Advertised) != 2 || seen.Advertised["2"]["host_electrical_interface_id"] != "100GAUI-1-L C2M (Annex 120G)" || seen.Advertised["2"]["host_lane_assignment_options"] != 255.0 {
		t.Errorf("advertised: %v", seen.Advertised)
	}
	if seen.StatusFlags["module_state_changed"] != true || seen.StatusFlags["tx1fault"] != false {
		t.Errorf("flags: %v", seen.StatusFlags)
	}
	if len(seen.Loopback) != 7 || seen.Loopback["media_side_input_loopback_supported"] {
		t.Errorf("page 13h: %v", seen.Loopback)
	}
	if !seen.Hot["case_temp_high_warn_flag"] || !seen.Hot["case_temp_high_alarm_flag"] || seen.Hot["case_temp_low_alarm_flag"] {
		t.Errorf("at 90 degrees: %v", seen.Hot)
	}
}

// sonicOr is where SONiC's code is, or the test is skipped.
func sonicOr(t *testing.T) string {
	sonic := os.Getenv("RINGLIGHT_SONIC")
	if sonic == "" {
		t.Skip("RINGLIGHT_SONIC names no checkout of sonic-net/sonic-platform-common: no switch software has the module")
	}
	return sonic
}

// host lets a script of testdata have the first module, and is what it saw.
func (r *mciRig) host(sonic, script string, args ...string) string {
	t := r.t
	t.Helper()
	cmd := exec.Command("python3", append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+sonic, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := ""
	for lines := bufio.NewReader(out); ; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("it ended after %q: %v, %v", line, err, cmd.Wait())
		}
		if strings.HasPrefix(line, "seen ") {
			break
		}
		fmt.Fprintln(in, r.answerHost(line))
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return line[5:]
}

// answerHost does what one line of testdata/cmis_host.py asks for.
func (r *mciRig) answerHost(line string) string {
	r.t.Helper()
	var at, n int
	var data string
	if _, err := fmt.Sscanf(line, "read %d %d", &at, &n); err == nil {
		return hex.EncodeToString(r.hostRead(at, n))
	}
	if _, err := fmt.Sscanf(line, "write %d %s", &at, &data); err == nil {
		page, offset := hostPlace(at)
		b, err := hex.DecodeString(data)
		if err != nil {
			r.t.Fatal(err)
		}
		// The wire waits for a module that is away, as a kernel's driver does.
		if err := r.request(0, cmis.Request{Write: true, Page: page, Offset: offset, Data: b, Patience: time.Second}); err != nil {
			r.t.Fatalf("write %02xh %d: %v", page, offset, err)
		}
		return "ok"
	}
	if _, err := fmt.Sscanf(line, "sleep %d", &n); err == nil {
		r.run(time.Duration(n) * time.Microsecond)
		return ""
	}
	if line == "warm\n" {
		r.w.SetAmbient(r.id, 90_000)
		return ""
	}
	if line != "now\n" {
		r.t.Fatalf("%q is no question", line)
	}
	return fmt.Sprint(r.w.Now().Microseconds())
}

// hostRead reads as a host that knows nothing of readers of flags; bytes of a
// page that is not there are nil.
func (r *mciRig) hostRead(at, n int) (all []byte) {
	ask := func(w []byte, n int) []byte {
		for {
			c := r.do(r.id, r.hw.Bundles[0].Modules[0].MCI, hal.Msg{Addr: hal.MCIAddr, W: w, R: make([]byte, n)})
			if c.Err == nil {
				return c.Op.Msgs[0].R
			}
			r.run(100 * time.Microsecond) // it holds off
		}
	}
	r.ports[0].Forget()
	for n > 0 {
		page, offset := hostPlace(at)
		if offset >= 128 {
			ask([]byte{cmis.BankSelect, 0, page}, 0)
			if ask([]byte{cmis.PageSelect}, 1)[0] != page {
				return nil
			}
		}
		part := min(n, 128-at%128)
		all = append(all, ask([]byte{offset}, part)...)
		at, n = at+part, n-part
	}
	return all
}

// hostPlace is where a byte of the linear image lies.
func hostPlace(at int) (page, offset uint8) {
	if at < 128 {
		return 0, uint8(at)
	}
	return uint8(at/128 - 1), uint8(128 + at%128)
}
