package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/proto"
)

// command runs the command line and gives its exit code and output.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	type capture struct {
		file *os.File
		text chan string
	}
	redirect := func(to **os.File) (capture, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := capture{w, make(chan string, 1)}
		go func() { raw, _ := io.ReadAll(r); c.text <- string(raw) }()
		old := *to
		*to = w
		return c, old
	}
	out, oldOut := redirect(&os.Stdout)
	errs, oldErr := redirect(&os.Stderr)
	code = program().Run(context.Background(), args, cli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	os.Stdout, os.Stderr = oldOut, oldErr
	out.file.Close()
	errs.file.Close()
	return code, <-out.text, <-errs.text
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigurationErrorsNameTheirKeys(t *testing.T) {
	// Goal: everything that is wrong is said at once, with its key; nothing is
	// attempted.
	for name, c := range map[string]struct {
		text string
		want []string
	}{ // any order: independent rows
		"unknown key":    {`{"board":{"fabrik":"f1"}}`, []string{`board: there is no key "fabrik", line 1`}},
		"wrong type":     {"{\n\n\"node\":\"seven\"}", []string{`node: want a number, got "seven", line 3`}},
		"not JSON":       {`hello`, []string{"invalid character"}},
		"something else": {`{} {}`, []string{"data follows"}},
		"values": {`{"fabric":"F 1","broker":"http://x","cert":"c","state":"","health_ms":-1,"log_level":"loud",
			"board":{"kind":"tin","gpus":1,"bundles":9,"modules":0}}`,
			[]string{"fabric:", "broker:", "cert:", "state:", "health_ms:", "log_level:", "board.kind:", "board.gpus:", "board.bundles:", "board.modules:"}},
		"switch":            {`{"board":{"ports":577,"factory":"f"}}`, []string{"board.ports:"}},
		"real switch":       {`{"board":{"kind":"linux","ports":32}}`, []string{"board.factory:"}},
		"scpi of a node":    {`{"scpi":"127.0.0.1:5025"}`, []string{"scpi:"}},
		"restconf to all":   {`{"restconf":"0.0.0.0:8443","board":{"ports":8}}`, []string{"restconf:"}},
		"scpi to the world": {`{"scpi":"0.0.0.0:5025","board":{"ports":8}}`, []string{"scpi:"}},
		"box of SONiC":      {`{"board":{"kind":"box","ports":8,"protocol":"sonic-ocs","address":"http://10.0.0.9:80","dialect":"both","box":{"cert":"x"}}}`, []string{`board.box.address: "http://10.0.0.9:80": plain http is for this machine alone`, `board.box.dialect: "both": want auto, tables or states`, "board.box.cert: ca, cert and key"}},
		"box":               {`{"board":{"kind":"box","box":{"protocol":"smoke","address":"here","deadline_ms":70000}}}`, []string{"board.ports:", "board.box.address:", "board.box.protocol:", "board.box.deadline_ms: 70000: want 100 to 60000"}},
		"alarms": {`{"board":{"ports":8,"alarm_a":{"on":true,"low":1,"degrade":0},"alarm_b":{"on":true,"clear_ms":-1}}}`,
			[]string{"board.alarm_a:", "board.alarm_b.clear_ms:"}},
		"factory of a node": {`{"board":{"factory":"f"}}`, []string{"board.factory:"}},
		"faults and fibres": {`{"board":{"faults":["stuck:0"],"fibres":["0/dark-1/external1"]}}`, []string{"board.faults[0]", "board.fibres[0]"}},
		"linux": {`{"board":{"kind":"linux","buses":[{"device":""}],"lines":[{"chip":"","offset":1}]}}`,
			[]string{"board.buses:", "board.buses[0].device", "board.lines:", "board.lines[0]"}},
		"socket": {`{"board":{"kind":"socket"}}`, []string{"board.path:"}},
		"physics": {`{"board":{"physics":{"p_pi_mw":4,"tau_us":501,"late_call_ratio":-0.1}}}`,
			[]string{"board.physics.p_pi_mw: 4: want 5 to 100", "board.physics.tau_us:", "board.physics.late_call_ratio:"}},
		"physics of no simulated board": {`{"board":{"kind":"linux","physics":{"tau_us":40}}}`, []string{"board.physics:"}},
		"physics of another world":      {`{"board":{"physics":{"gravity":2}}}`, []string{"gravity"}},
	} {
		code, out, errs := command(t, "config", "-json", "-config", write(t, "c.json", c.text))
		if code != 2 {
			t.Errorf("%s: exit %d", name, code)
		}
		var answer struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Error.Code != "invalid" {
			t.Errorf("%s: stdout %q (%v)", name, out, err)
		}
		for _, w := range c.want {
			if !strings.Contains(errs, w) {
				t.Errorf("%s: stderr does not name %q: %s", name, w, errs)
			}
		}
	}
}

func TestEffectiveConfigurationReadsBack(t *testing.T) {
	code, out, _ := command(t, "config", "-state", "/var/lib/x")
	if code != 0 {
		t.Fatal(code)
	}
	code, again, errs := command(t, "config", "-config", write(t, "c.json", out))
	if code != 0 || again != out || !strings.Contains(out, `"/var/lib/x"`) {
		t.Errorf("exit %d, %s\n%s\nbecame\n%s", code, errs, out, again)
	}
	_, doc, _ := command(t, "config", "-doc")
	for _, k := range keys() {
		if k.Text == "" || !strings.Contains(doc, k.Key) {
			t.Errorf("key %s is not documented", k.Key)
		}
	}
	if len(keys()) != 94 {
		t.Errorf("%d keys", len(keys()))
	}
}

func TestWrongUsageIsExit2(t *testing.T) {
	for _, args := range [][]string{{}, {"fly"}, {"path"}, {"path", "set"}, {"path", "set", "0"}, {"path", "get", "0", "dark"},
		{"path", "set", "x", "dark"}, {"path", "set", "0", "sideways"}, {"status", "now"}, {"run", "-warp"}, {"host"}, {"host", "maybe"}, {"port"}, {"port", "seize", "3A"}, {"port", "hold"},
		{"calibrate", "-b", "7"}, {"status", "-config", "/nowhere/c.json"}, {"run", "-node", "3", "-fabric", "F F"}} {
		if code, _, errs := command(t, args...); code != 2 || errs == "" {
			t.Errorf("%v: exit %d, %q", args, code, errs)
		}
	}
	for _, args := range [][]string{{"-h"}, {"run", "-h"}, {"path", "set", "-h"}, {"host", "-h"}, {"port", "-h"}, {"version"}} {
		if code, out, _ := command(t, args...); code != 0 || out == "" {
			t.Errorf("%v: exit %d, %q", args, code, out)
		}
	}
}

func TestUncalibratedBoardRefusesPathsUntilCalibrated(t *testing.T) {
	// Goal: the whole way by hand on a simulated board: refused, calibrated,
	// set; state and exit codes as scripts see them.
	state := t.TempDir()
	board := write(t, "c.json", `{"board":{"kind":"sim","seed":3,"calibrated":false,"modules":1}}`)
	args := func(a ...string) []string { return append(a, "-config", board, "-state", state, "-json") }
	code, out, errs := command(t, args("path", "set", "0", "external1")...)
	if code != 1 || !strings.Contains(out, `"not_calibrated"`) || !strings.Contains(errs, "run calibrate first") {
		t.Fatalf("exit %d, %s, %s", code, out, errs)
	}
	code, out, errs = command(t, args("calibrate", "-b", "0")...)
	if code != 0 {
		t.Fatalf("calibrate: exit %d, %s", code, errs)
	}
	var done struct {
		Bundles []calibratedBundle
		Modules []calibratedModule
	}
	if err := json.Unmarshal([]byte(out), &done); err != nil || len(done.Bundles) != 1 || len(done.Modules) != 1 {
		t.Fatalf("%s (%v)", out, err)
	}
	b := done.Bundles[0]
	m := done.Modules[0]
	if b.BoardMS < 100 || b.Measurements < 1000 || len(m.ExtinctionMB) != 36 || m.Result != resultCalibrated || m.Cell != nil {
		t.Errorf("calibrated %+v, %+v", b, m)
	}
	for _, f := range []*opticsFigures{m.Own, m.Truth} {
		if f == nil || f.MZI < 25 || f.Matrix < 25 || f.PathLoss > 0.5 {
			t.Errorf("own %+v, truth %+v", m.Own, m.Truth)
			break
		}
	}
	for _, p := range []string{"external1", "loopback", "dark"} {
		code, out, errs = command(t, args("path", "set", "0", p)...)
		if code != 0 || !strings.Contains(out, `"path": "`+p+`"`) {
			t.Errorf("%s: exit %d, %s %s", p, code, out, errs)
		}
	}
	if code, _, _ = command(t, args("path", "set", "1", "loopback")...); code != 1 {
		t.Errorf("bundle 1 was never calibrated: exit %d", code)
	}
	if code, _, _ = command(t, args("path", "set", "4", "loopback")...); code != 2 {
		t.Errorf("no bundle 4: exit %d", code)
	}
	if code, out, _ = command(t, args("status")...); code != 1 || !strings.Contains(out, `"running": false`) || !strings.Contains(out, `"mode": "unplanned"`) || strings.Contains(out, "-2147483648") || !strings.Contains(out, `"calibrated": true`) {
		t.Errorf("status: exit %d, %s", code, out)
	}
	empty := t.TempDir()
	real := write(t, "real.json", `{"board":{"kind":"socket","path":"`+filepath.Join(empty, "board.sock")+`"}}`)
	if code, _, errs = command(t, "status", "-config", real, "-state", empty); code != 1 || !strings.Contains(errs, "no agent runs at "+empty) {
		t.Errorf("status of a real board without an agent: exit %d, %s", code, errs)
	}
	if left, _ := filepath.Glob(filepath.Join(empty, "*")); len(left) > 0 {
		t.Errorf("who only looks has written %v", left)
	}
	if code, _, errs = command(t, args("host", "fault")...); code != 1 || !strings.Contains(errs, "no agent runs") {
		t.Errorf("host without an agent: exit %d, %s", code, errs)
	}
}

func TestBoardOfMirrorsIsASwitch(t *testing.T) {
	// Goal: ports in the configuration make the agent that of a switch, numbered
	// as the fabric numbers it; what is for nodes is refused.
	board := write(t, "c.json", `{"node":3,"board":{"kind":"sim","ports":16,"seed":3}}`)
	state := t.TempDir()
	code, out, errs := command(t, "status", "-config", board, "-state", state, "-json")
	var s struct {
		Switch   *agent.SwitchStatus
		Reported struct{ Node proto.NodeID }
	}
	if err := json.Unmarshal([]byte(out), &s); code != 1 || err != nil || s.Switch == nil || s.Switch.Ports != 16 || s.Reported.Node != proto.FirstSwitch+3 || !strings.Contains(errs, "no agent runs") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	if code, out, _ := command(t, "status", "-config", board, "-state", state); code != 1 || !strings.Contains(out, "switch 3  no planner contact") || !strings.Contains(out, "16 ports a side, 0 circuits") {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, _, errs := command(t, "path", "set", "0", "loopback", "-config", board, "-state", state); code != 1 || !strings.Contains(errs, "not for a switch") {
		t.Errorf("path on a switch: exit %d, %s", code, errs)
	}
}

// Goal: a board of CMIS modules is one key of the configuration away, on its own
// segments and behind a mux, and its paths can be set by hand.
// Method: the command line on the virtual clock; wrong combinations are refused.
func TestBoardOfCMISModules(t *testing.T) {
	for _, mux := range []string{"false", "true"} {
		cfg := write(t, "cmis.json", `{"broker":"","state":"`+t.TempDir()+`","board":{"kind":"sim","module_kind":"cmis","mux":`+mux+`,"bundles":1,"modules":1}}`)
		for _, path := range []string{"loopback", "external2", "dark"} {
			if code, out, errs := command(t, "path", "set", "0", path, "-config", cfg); code != 0 || !strings.Contains(out, "bundle 0 is on "+path) {
				t.Errorf("mux %s: %s: exit %d, %q, %q", mux, path, code, out, errs)
			}
		}
		if code, out, errs := command(t, "calibrate", "-config", cfg); code != 0 || !strings.Contains(out, "switch") {
			t.Errorf("mux %s: calibrate: exit %d, %q, %q", mux, code, out, errs)
		}
	}
	for _, board := range []string{`"module_kind":"cmos"`, `"mux":true`, `"slow_mci":true`, `"dac":"ltc2689"`, `"module_kind":"cmis","dac":"ad5676r"`} {
		cfg := write(t, "bad.json", `{"board":{"kind":"sim",`+board+`}}`)
		if code, _, errs := command(t, "config", "-config", cfg); code != 2 || !strings.Contains(errs, "board.") {
			t.Errorf("%s: exit %d, %q", board, code, errs)
		}
	}
}

// Goal: the configuration shown says which DAC is meant, and none where modules have
// a controller or the board is a switch.
// Method: boards with and without the key.
func TestConfigNamesTheDAC(t *testing.T) {
	for board, want := range map[string]string{`{}`: "ltc2688", `{"dac":"ad5676r"}`: "ad5676r", `{"module_kind":"cmis"}`: "", `{"ports":8}`: ""} { // any order: independent
		code, out, errs := command(t, "config", "-config", write(t, "c.json", `{"board":`+board+`}`))
		if code != 0 || !strings.Contains(out, `"dac": "`+want+`"`) {
			t.Errorf("%s: exit %d, %s, %s", board, code, out, errs)
		}
	}
}

// Goal: a board with another DAC is one key of the configuration away: calibrated
// from nothing, and its paths set by hand.
// Method: the command line on the virtual clock.
func TestBoardWithAnotherDAC(t *testing.T) {
	cfg := write(t, "dac.json", `{"broker":"","state":"`+t.TempDir()+`","board":{"kind":"sim","dac":"ad5676r","bundles":1,"modules":1}}`)
	if code, out, errs := command(t, "calibrate", "-config", cfg); code != 0 || !strings.Contains(out, "switch") {
		t.Errorf("calibrate: exit %d, %q, %q", code, out, errs)
	}
	for _, path := range []string{"loopback", "external2", "dark"} {
		if code, out, errs := command(t, "path", "set", "0", path, "-config", cfg); code != 0 || !strings.Contains(out, "bundle 0 is on "+path) {
			t.Errorf("%s: exit %d, %q, %q", path, code, out, errs)
		}
	}
}

func TestStuckHeaterIsNamed(t *testing.T) {
	board := write(t, "c.json", `{"board":{"kind":"sim","seed":3,"calibrated":false,"modules":2,"bundles":1,"faults":["stuck:0/1/17"]}}`)
	state := t.TempDir()
	code, _, errs := command(t, "calibrate", "-config", board, "-state", state)
	if code != 1 || !strings.Contains(errs, "module 1") || !strings.Contains(errs, "cell 17") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(state, "calibration.0")); err == nil {
		t.Error("a failed calibration was kept")
	}
}

func TestSelfTestPasses(t *testing.T) {
	code, out, errs := command(t, "selftest", "-seed", "5")
	if code != 0 || !strings.Contains(out, "selftest passed") {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}

// Who ends an agent while its simulated board is calibrated is heard at once, and
// nothing of that calibration is kept.
func TestEndDuringACalibration(t *testing.T) {
	state := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var said strings.Builder
	config := write(t, "c.json", `{"broker":"","state":"`+state+`","socket":"`+state+`/s","board":{"kind":"sim","bundles":1,"modules":1}}`)
	old := os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = w
	code := program().Run(ctx, []string{"run", "-config", config}, cli.Terminal{In: strings.NewReader(""), Out: io.Discard, Err: w})
	os.Stderr = old
	w.Close()
	if _, err := io.Copy(&said, r); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(state + "/calibration*")
	if code != cli.Done || !strings.Contains(said.String(), "ended while the simulated board was calibrated") || len(kept) > 0 || err != nil {
		t.Errorf("exit %d, kept %v, %v: %s", code, kept, err, said.String())
	}
	var why strings.Builder // as ocs-agent calibrate is ended
	code = program().Run(ctx, []string{"calibrate", "-config", config}, cli.Terminal{In: strings.NewReader(""), Out: io.Discard, Err: &why})
	if kept, err := filepath.Glob(state + "/calibration*"); code != cli.Failed || !strings.Contains(why.String(), "interrupted") || len(kept) > 0 || err != nil {
		t.Errorf("calibrate: exit %d, kept %v, %v: %s", code, kept, err, why.String())
	}
}

// Goal: who looks at an agent is told that its board says nothing any more, and of one
// that answers, or is being calibrated, nothing of the kind.
// Method: agents at a socket that say how long ago they read it.
func TestStatusOfASilentBoard(t *testing.T) {
	for _, c := range []struct {
		read   time.Duration
		step   string
		silent bool
	}{{3 * time.Second, "", false}, {19 * time.Second, "", false}, {42 * time.Second, "", true}, {42 * time.Second, "heaters", false}} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err == nil {
				json.NewDecoder(conn).Decode(new(agent.Question))
				json.NewEncoder(conn).Encode(&agent.Answer{Status: &agent.Status{Bundles: []agent.BundleStatus{{State: "tuned", Step: c.step, ReadUS: c.read.Microseconds()}}}})
				conn.Close()
			}
		}()
		_, out, _ := command(t, "status", "-config", write(t, "c.json", `{"socket":"`+path+`","board":{"kind":"sim"}}`))
		l.Close()
		if strings.Contains(out, "answered nothing of bundle 0 for 42s") != c.silent || !strings.Contains(out, "tuned") {
			t.Errorf("read %v ago: %s", c.read, out)
		}
	}
}
