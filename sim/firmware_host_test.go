package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ringlight/hal/cmis"
)

// Goal: a switch's own software gives the simulated module other firmware: downloads, runs,
// commits and aborts; a broken image is refused, and what ran goes on.
// Method: SONiC's cdb_fw and the calls that its sfputil makes, unmodified, over
// testdata/cmis_firmware.py; by extended and by local payload alone.
func TestMCIFirmwareInTheHandsOfSONiC(t *testing.T) {
	sonic := sonicOr(t)
	for _, local := range []bool{false, true} {
		timing := DefaultMCITiming()
		timing.NoEPL = local
		r := newMCIRig(t, 1, false, timing)
		dir := t.TempDir()
		broken := FirmwareImage(cmis.Version{Major: 1, Minor: 2}, 5000)
		broken[4000] ^= 1
		var files []string
		for i, image := range [][]byte{FirmwareImage(cmis.Version{Major: 1, Minor: 1, Build: 7}, 5000), broken, FirmwareImage(cmis.Version{Major: 2}, 3000)} {
			files = append(files, filepath.Join(dir, fmt.Sprint(i)))
			if err := os.WriteFile(files[i], image, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		line := r.host(sonic, "cmis_firmware.py", files...)
		t.Logf("%s", line)
		var seen struct {
			Before, Features, Downloaded, Ran, Committed, AfterBroken, After []any
			Download, Run, Commit, Broken, RunBroken, Begun, Aborted         bool
			Complete, Upgrade                                                bool
			Active                                                           map[string]string
		}
		if err := json.Unmarshal([]byte(line), &seen); err != nil {
			t.Fatal(err)
		}
		if !seen.Download || !seen.Run || !seen.Commit || seen.Broken || seen.RunBroken || !seen.Begun || !seen.Aborted || seen.Complete || !seen.Upgrade {
			t.Errorf("%+v", seen)
		}
		for _, x := range []struct {
			what string
			got  []any
			want string // A: version, running, committed, invalid; B; active, inactive
		}{
			{"before", seen.Before, "[1.0.0 1 1 0 N/A 0 0 1 1.0.0 N/A]"},
			{"features", seen.Features, fmt.Sprintf("[16 %d %v false 128]", map[bool]int{false: 2048, true: 116}[local], local)},
			{"downloaded", seen.Downloaded, "[1.0.0 1 1 0 1.1.7 0 0 0 1.0.0 1.1.7]"},
			{"run", seen.Ran, "[1.0.0 0 1 0 1.1.7 1 0 0 1.1.7 1.0.0]"},
			{"committed", seen.Committed, "[1.0.0 0 0 0 1.1.7 1 1 0 1.1.7 1.0.0]"},
			{"after a broken one", seen.AfterBroken, "[N/A 0 0 1 1.1.7 1 1 0 1.1.7 N/A]"},
			{"after an upgrade", seen.After, "[2.0.0 1 1 0 1.1.7 0 0 0 2.0.0 1.1.7]"},
		} {
			if got := fmt.Sprint(x.got); got != x.want {
				t.Errorf("local payload %v: %s: %s, want %s", local, x.what, got, x.want)
			}
		}
		if seen.Active["active_firmware"] != "2.0.0" {
			t.Errorf("%v", seen.Active)
		}
	}
}
