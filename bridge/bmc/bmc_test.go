package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// stand is a bus of dbus-daemon's with what is shown on it, and an agent that says what it
// is told to.
type stand struct {
	t       *testing.T
	address string
	says    atomic.Pointer[string] // nil: it hangs up
	signals chan *dbus.Signal
	heard   []*dbus.Signal // that nobody has waited for yet, in order
}

func newStand(t *testing.T) *stand {
	for _, tool := range []string{"dbus-daemon", "busctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not here: nobody judges the objects")
		}
	}
	dir := t.TempDir()
	s := &stand{t: t, address: "unix:path=" + filepath.Join(dir, "bus"), signals: make(chan *dbus.Signal, 1000)}
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address", "--address="+s.address)
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Process.Kill(); daemon.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if says := s.says.Load(); says != nil {
				bufio.NewReader(conn).ReadString('\n')
				fmt.Fprintln(conn, *says)
			}
			conn.Close()
		}
	}()
	conn, err := dbus.Connect(s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.AddMatchSignal(dbus.WithMatchPathNamespace("/")); err != nil {
		t.Fatal(err)
	}
	conn.Signal(s.signals)
	return s
}

// shows runs what is to be judged until the test is over.
func (s *stand) shows() {
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		over <- run(ctx, s.address, filepath.Join(filepath.Dir(strings.TrimPrefix(s.address, "unix:path=")), "agent.sock"), 50*time.Millisecond)
	}()
	s.t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			s.t.Error(err)
		}
	})
}

// await waits for a signal of a path; signals of one change come in any order.
func (s *stand) await(name string, path dbus.ObjectPath, word string) {
	s.t.Helper()
	wanted := func(x *dbus.Signal) bool {
		return strings.HasSuffix(x.Name, name) && (x.Path == path || strings.Contains(fmt.Sprint(x.Body), string(path))) && strings.Contains(fmt.Sprint(x.Body), word)
	}
	for limit := time.After(time.Minute); ; {
		if i := slices.IndexFunc(s.heard, wanted); i >= 0 {
			s.heard = slices.Delete(s.heard, i, i+1)
			return
		}
		select {
		case x := <-s.signals:
			s.heard = append(s.heard, x)
		case <-limit:
			s.t.Fatalf("no %s of %s with %q", name, path, word)
		}
	}
}

func (s *stand) busctl(args ...string) string {
	out, err := exec.Command("busctl", append([]string{"--address=" + s.address}, args...)...).CombinedOutput()
	if err != nil {
		return strings.TrimSpace(string(out)) + " (" + err.Error() + ")"
	}
	return strings.TrimSpace(string(out))
}

func (s *stand) is(path, iface, name, want string) {
	s.t.Helper()
	if got := s.busctl("get-property", busName, path, iface, name); got != want {
		s.t.Errorf("%s %s %s: %s, want %s", path, iface, name, got, want)
	}
}

// said is an agent's answer as ocs-agent of a simulated board gives it.
func said(t *testing.T, change func(map[string]any)) *string {
	raw, err := os.ReadFile("testdata/status.json")
	if err != nil {
		t.Fatal(err)
	}
	var x map[string]any
	if err := json.Unmarshal(raw, &x); err != nil {
		t.Fatal(err)
	}
	change(x["status"].(map[string]any))
	raw, _ = json.Marshal(x)
	text := string(raw)
	return &text
}

// Goal: adapter, ports, cables, modules, sensors and alarms are on the bus as busctl reads
// them; what changes is told by a signal; an agent that is gone leaves nothing that looks
// well; nothing can be written.
// Method: dbus-daemon and busctl, unmodified; the agent's part is a stored answer of one.
func TestOnTheBus(t *testing.T) {
	s := newStand(t)
	s.says.Store(said(t, func(map[string]any) {}))
	s.shows()
	s.await("InterfacesAdded", root, "FabricAdapter")
	tree := s.busctl("tree", "--list", busName)
	for _, path := range []string{root, root + "/bundle0", root + "/bundle0_external1", root + "/bundle0_external2_cable", root + "/bundle1_module1",
		sensors + "/temperature/ringlight_bundle0_module1", sensors + "/power/ringlight_bundle1_light"} {
		if !strings.Contains(tree, path+"\n") && !strings.HasSuffix(tree, path) {
			t.Errorf("%s is not in the tree:\n%s", path, tree)
		}
	}
	temperature, light := sensors+"/temperature/ringlight_bundle0_module1", sensors+"/power/ringlight_bundle0_light"
	if got := s.busctl("get-property", busName, root, adapter, "x"); !strings.Contains(got, "there is none at") {
		t.Errorf("an unknown property: %s", got)
	}
	s.is(root, item, "PrettyName", `s "Ringlight f1 node 0"`)
	s.is(root, operational, "Functional", "b true")
	s.is(root+"/bundle0_external1", associated, "Associations", `a(sss) 1 "connected_to" "connecting" "`+root+`"`)
	s.is(root+"/bundle0_external1_cable", item, "Present", "b false")
	s.is(temperature, value, "Value", "d 41.5")
	s.is(temperature, value, "Unit", `s "`+value+`.Unit.DegreesC"`)
	s.is(temperature, critical, "CriticalHigh", "d 75")
	s.is(temperature, critical, "CriticalAlarmHigh", "b false")
	s.is(light, critical, "CriticalLow", "d 0.0001")
	s.is(light, critical, "CriticalAlarmLow", "b false")
	if got := s.busctl("introspect", busName, temperature); !strings.Contains(got, ".CriticalHigh ") || !strings.Contains(got, critical) {
		t.Errorf("introspect:\n%s", got)
	}
	if got := s.busctl("call", busName, temperature, propertiesOf, "GetAll", "s", ""); !strings.Contains(got, `"Value" d 41.5`) || !strings.Contains(got, `"CriticalHigh" d 75`) {
		t.Errorf("properties of all interfaces: %s", got)
	}
	if got := s.busctl("call", busName, sensors, managerOf, "GetManagedObjects"); !strings.HasPrefix(got, "a{oa{sa{sv}}} 6 ") {
		t.Errorf("managed: %s", got)
	}
	if got := s.busctl("set-property", busName, root, item, "Present", "b", "false"); !strings.Contains(got, "read only") {
		t.Errorf("set: %s", got)
	}

	s.says.Store(said(t, func(st map[string]any) { // a module gets hot, light goes, an alarm stands
		for _, x := range st["samples"].([]any) {
			if x := x.(map[string]any); x["Bundle"] == 0.0 && x["Module"] == 1.0 && x["Sensor"] == 1.0 {
				x["Value"] = 353150.0
			}
		}
		st["bundles"].([]any)[0].(map[string]any)["measured_mdbm"] = -11000.0
		st["reported"].(map[string]any)["Alarms"] = []any{map[string]any{"Severity": 2.0, "Bundle": 1.0, "SinceMicros": 5.0, "Text": "laser 3 is dead"}}
	}))
	s.await("InterfacesAdded", alarms+"/0", "laser 3 is dead")
	s.await("PropertiesChanged", dbus.ObjectPath(root), "Functional")
	s.is(temperature, critical, "CriticalAlarmHigh", "b true")
	s.is(light, critical, "CriticalAlarmLow", "b true")
	s.is(root+"/bundle1", operational, "Functional", "b false")
	s.is(root, operational, "Functional", "b false")
	s.is(alarms+"/0", ofAlarm, "Severity", `s "critical"`)

	s.says.Store(said(t, func(map[string]any) {}))
	s.await("InterfacesRemoved", alarms+"/0", ofAlarm)
	if got := s.busctl("get-property", busName, alarms+"/0", ofAlarm, "Text"); !strings.Contains(got, "exit status") {
		t.Errorf("the alarm is over: %s", got)
	}

	s.says.Store(nil)
	s.await("PropertiesChanged", dbus.ObjectPath(temperature), "NaN")
	s.is(temperature, value, "Value", "d nan")
	s.is(temperature, available, "Available", "b false")
	s.is(root, operational, "Functional", "b false")
}

// Goal: without a bus it ends at once, and well; a name that another has is told.
func TestNoBus(t *testing.T) {
	s := newStand(t)
	other, err := dbus.Connect(s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.RequestName(busName, 0); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), s.address, "none", time.Second); err == nil || !strings.Contains(err.Error(), "another program has the name") {
		t.Error(err)
	}
	if err := run(context.Background(), "unix:path=/nonexistent", "none", time.Second); err == nil {
		t.Error("no bus, and it runs")
	}
}
