package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/cmd/cli/clitest"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim/live"
)

// ctl runs a command line.
func ctl(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	code = run(ctx, args, &o, &e)
	return code, o.String(), e.String()
}

// Goal: wrong command lines are exit 2, name field and limit, and with -json
// say so on stdout in the agreed form.
// Method: a table; nothing listens anywhere.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ args, field string }{
		{"", ""},
		{"rings", "command"},
		{"ring", "ring"},
		{"ring list 3", "ring"},
		{"ring show x", "ring"},
		{"node show -1", ""}, // read as a flag
		{"node show 5000000000", "node"},
		{"why", "why"},
		{"why 1/x", "bundle"},
		{"why 1/16", "bundle"},
		{"pm", "subject"},
		{"pm 1 2", "subject"},
		{"pm 1/x", "subject"},
		{"pm 1/16", "subject"},
		{"pm 1/1/dark", "subject"},
		{"pm 1/1/16", "subject"},
		{"pm 1/1/1/1", "subject"},
		{"pm switch-1/0A", "subject"},
		{"pm switch-1/1C", "subject"},
		{"pm switch-1/4096A", "subject"},
		{"pm switch-x", "switch"},
		{"pm 1 -bins 5m", "bins"},
		{"pm x -bins 5m", "bins"},
		{"watch all", "watch"},
		{"drain", "node"},
		{"undrain x?", "node"},
		{"why x?/1", "node"},
		{"switch lockout a*b left", "node"},
		{"watch -node 1/2", "node"},
		{"switch", "switch"},
		{"switch force 1 left", "request"},
		{"switch lockout 1 middle", "side"},
		{"switch lockout 1 left 3", "peer"},
		{"switch forced 1 left", "peer"},
		{"switch manual 1 left loopback", "peer"},
		{"fabric", "fabric"},
		{"fabric new -k 5", "k"},
		{"fabric new -nodes x", ""},
		{"fabric new -tp 33", "tp"},
		{"fabric new -policy x", "policy"},
		{"fabric new -hold-off-us -1", "hold_off_us"},
		{"ring list -fabric F", "fabric"},
		{"ring list -timeout 0s", "timeout"},
		{"ring list -broker http://x", "broker"},
		{"ring list -broker mqtt://192.0.2.1:1883", "broker"},
		{"ring list -nonsense", ""},
	} {
		args := strings.Fields(c.args)
		code, out, errs := ctl(t, append(args, "-json")...)
		if code != 2 || errs == "" {
			t.Errorf("%q: exit %d, stderr %q", c.args, code, errs)
		}
		if len(args) == 0 {
			continue
		}
		var got struct {
			Error *struct{ Code, Field, Limit, Message string }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Error == nil || got.Error.Field != c.field || got.Error.Message == "" || got.Error.Code == "" {
			t.Errorf("%q: stdout %q, want field %q", c.args, out, c.field)
		}
		if c.field != "" && got.Error != nil && got.Error.Limit == "" && c.field != "broker" {
			t.Errorf("%q: no limit in %q", c.args, out)
		}
	}
	for _, args := range []string{"-h", "ring -h", "node -h", "why -h", "watch -h", "drain -h", "undrain -h", "switch -h", "fabric -h"} {
		if code, out, _ := ctl(t, strings.Fields(args)...); code != 0 || !strings.Contains(out, "ocsctl") {
			t.Errorf("%q: exit %d, %q", args, code, out)
		}
	}
	if code, _, errs := ctl(t, "ring", "list", "-broker", "mqtt://127.0.0.1:1", "-timeout", "300ms"); code != 1 || !strings.Contains(errs, "127.0.0.1:1") {
		t.Errorf("no broker: exit %d, %q", code, errs)
	}
}

// Goal: what fabric new writes is what the others read.
func TestFabricNew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	if code, _, errs := ctl(t, "fabric", "new", "-nodes", "20", "-gpus", "8", "-k", "3", "-tp", "32", "-spares", "2", "-topology", "ring", "-name", "lab", "-o", file); code != 0 {
		t.Fatal(errs)
	}
	code, out, _ := ctl(t, "fabric", "new")
	if code != 0 || out != string(fabric.Default().Encode()) {
		t.Errorf("exit %d, %.200s", code, out)
	}
	if _, err := fabric.Parse([]byte(out)); err != nil {
		t.Error(err)
	}
}

func TestSpans(t *testing.T) {
	if got := spans([]proto.NodeID{62, 63, 0, 1, 3}); got != "62-63,0-1,3" {
		t.Error(got)
	}
}

// rig is a planner with an embedded broker and four simulated nodes.
func rig(t *testing.T) (broker string) {
	t.Helper()
	f, err := fabric.New(fabric.Params{Name: "lab", Nodes: 4, GPUsPerNode: 4, K: 2, TP: 12, Spares: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	t.Cleanup(func() { cancel(); wait.Wait() })
	url := make(chan string, 1)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	wait.Go(func() {
		err := server.Run(ctx, server.Config{Fabric: f, State: filepath.Join(t.TempDir(), "p.db"), Listen: "127.0.0.1:0", Log: quiet,
			Ready: func(broker string, _ planner.Config) { url <- broker }})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	broker = <-url
	wait.Go(func() {
		err := live.Agents(ctx, live.ClusterConfig{Fabric: f, Modules: 1, Seed: 1, Health: time.Hour, Broker: mqtt.Config{Broker: broker}, Progress: io.Discard, Log: quiet})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	return broker
}

// Goal: the commands against a running planner, broker and simulated nodes.
// Method: ask until the ring is in service, then everything once.
func TestAgainstARunningFabric(t *testing.T) {
	t.Parallel()
	broker := rig(t)
	type rings struct{ Rings []map[string]any }
	var got rings
	for deadline := time.Now().Add(50 * time.Second); ; {
		code, out, errs := ctl(t, "ring", "list", "-json", "-broker", broker)
		got = rings{}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("exit %d: %v: %s %s", code, err, out, errs)
		}
		if len(got.Rings) == 1 && got.Rings[0]["state"] == "in_service" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("never in service: %s", out)
		}
	}
	r := got.Rings[0]
	if len(r) != 7 || r["ring"] != 1.0 || len(r["nodes"].([]any)) != 3 || r["gpus_total"] != 12.0 || r["generation"] != 1.0 || r["links"] != 2.0 || r["links_confirmed"] != 2.0 {
		t.Errorf("%v", r)
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"ring list", "in_service", 0},
		{"ring show 1 -json", `"links_confirmed":2`, 0},
		{"ring show 9 -json", `"code":"not_found","field":"ring","limit":"1 to 1"`, 2},
		{"node list", "service", 0},
		{"node list -json", `{"nodes":[{"node":0,"online":true,"mode":"service","usable":true,"ring":1,`, 0},
		{"node show 3", "loopback", 0},
		{"node show 1 -json -fabric lab", `"state":"tuned"`, 0},
		{"node show 4 -json", `"limit":"0 to 3"`, 2},
		{"why 1 -all", "placement", 0},
		{"why 1", "wrong: nothing", 0},
		{"why gpu-a -json", "the fabric's description has no node_names", 2},
		{"fabric show -fabric lab", "4 of 4 nodes online", 0},
		{"fabric show -json -fabric lab", `"messages_refused":0,"unknown_keys":0,"messages_shed":0,"planner":`, 0},
		{"fabric show twice -fabric lab", "", 2},
		{"why 1/0 -json", `"rule":"bundle"`, 0},
		{"pm 1 -json", `"quantity":"switch_time","unit":"us","min":`, 0},
		{"pm 1/1/external1 -bins 1d -json", `{"subject":"1/1/external1","bins":[{"from":"` + time.Now().UTC().Format("2006-"), 0},
		{"pm 1/1", "switch_time", 0},
		{"pm 0-1 -json", `"at":"1/0/external1"`, 0},
		{"pm 0-9 -json", "the fabric's description has no node_names", 2},
		{"pm 4 -json", `"field":"node","limit":"0 to 3"`, 2},
		{"pm 1/7 -json", `"field":"bundle","limit":"0 to 1"`, 2},
		{"pm 1/1/1 -json", `"field":"module","limit":"0 to 0"`, 2},
		{"pm switch-0/3A -json", `"field":"node"`, 2},
		{"drain 1 -dry-run -json -fabric lab", `"dry_run":true,"done":false,"rings":[1],"jobs":1,`, 0},
		{"switch forced 0 right 3 -fabric lab", "", 2},
		{"switch forced 0 right 2 -dry-run -fabric lab", "would touch 1 job and", 0},
		{"switch lockout 0 right -fabric lab", "done", 0},
		{"switch manual 0 right 2 -json -fabric lab", `"code":"conflict","field":"request"`, 1},
		{"switch clear 0 right -json -fabric lab", `"done":true`, 0},
		{"undrain 1 -json -fabric lab", `"code":"invalid","field":"node","limit":"a drained node"`, 2},
		{"drain 1 -reason RMA-4711 -fabric lab", "node 1 is drained: 1 ring (1) touched, 1 in service, ", 0},
		{"node show 1 -fabric lab", "RMA-4711", 0},
		{"node show 1 -json -fabric lab", `"reason":"RMA-4711","since_ms":`, 0},
		{"why 1 -json", "1 ring and 4 links touched", 0},
		{"undrain 1 -dry-run -fabric lab", "node 1 would be let in again: no ring is touched\n", 0},
		{"undrain 1 -reason new-fan -fabric lab", "node 1 is let in again: ", 0},
		{"audit -what undrain -fabric lab", "asks: undrain node 1 (new-fan)", 0},
		{"ring list -json -fabric other -timeout 1s", `"field":"fabric","limit":"one of lab"`, 2},
	} {
		code, out, errs := ctl(t, append(strings.Fields(c.args), "-broker", broker)...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit %d\n%s%s", c.args, code, out, errs)
		}
	}
	answersFit(t, broker)
	var s statusJSON
	if _, out, _ := ctl(t, "status", "-json", "-broker", broker); json.Unmarshal([]byte(out), &s) != nil || s.Nodes.Total != 4 || s.Rings.Total != 1 || !s.Broker.Connected || !s.Planner.Leader || s.Planner.ID == 0 ||
		!strings.Contains(out, `"alarms":[`) || !strings.Contains(out, `"breaks_next":[`) || !strings.Contains(out, `"standbys":[]`) {
		t.Errorf("status: %s", out)
	}
	editOne(t, broker)
	// A second fabric on the broker makes the name necessary,
	link, err := mqtt.Dial(mqtt.Config{Broker: broker, ClientID: "stray"})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	for p := range link.Recv() {
		if p.Kind == proto.LinkUp {
			break
		}
	}
	payload, err := proto.Encode(&proto.Presence{Version: proto.Version, Session: 1, Online: true})
	if err != nil {
		t.Fatal(err)
	}
	stray := proto.Packet{Topic: proto.Topics{Fabric: "stray"}.Presence(0), Payload: payload, QoS: 1, Retain: true}
	if err := link.Send(stray); err != nil {
		t.Fatal(err)
	}
	// ... when both have a planner; else the one that has is meant.
	for _, both := range []bool{true, false} {
		state, err := proto.Encode(&proto.PlannerState{Version: proto.Version, Planner: 7, Life: 8, Host: "head", Term: 1, Online: both, PeriodMillis: 2000, Fabric: "stray"})
		if err != nil {
			t.Fatal(err)
		}
		if err := link.Send(proto.Packet{Topic: proto.Topics{Fabric: "stray"}.Planner(), Payload: state, QoS: 1, Retain: true}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; {
			code, out, _ := ctl(t, "node", "list", "-json", "-broker", broker)
			if both && code == 2 && strings.Contains(out, `"limit":"one of lab, stray"`) || !both && code == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("both %v: exit %d, %s", both, code, out)
			}
		}
	}
	aloneOne(t, broker, link)
	watchOne(t, broker, link)
}

// aloneOne: a fabric without a planner still has a status, of what the broker keeps.
func aloneOne(t *testing.T, broker string, link *mqtt.Link) {
	t.Helper()
	candidate := []proto.Candidate{{Peer: 1, Path: proto.External1}}
	for i, r := range []proto.Reported{
		{Node: 0, Mode: proto.ModeService, Generation: 7, Rings: []proto.RingAssignment{{Ring: 3, Generation: 7, Size: 2, Right: candidate}}, Sides: []proto.SideReport{{Ring: 3, Side: proto.Right, Peer: 1}},
			Alarms: []proto.Alarm{{Kind: proto.EvLightLost, Severity: proto.SeverityWarning, Text: "warm"}}},
		{Node: 1, Mode: proto.ModeService, Generation: 7, Rings: []proto.RingAssignment{{Ring: 3, Generation: 7, Size: 2, Position: 1}}, Sides: []proto.SideReport{{Ring: 3, Peer: 0}}},
		{Node: 2, Mode: proto.ModeIsolated}, // when it was there
	} {
		r.Version, r.Session, r.Seq = proto.Version, 1, 1
		payload, err := proto.Encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		presence, err := proto.Encode(&proto.Presence{Version: proto.Version, Node: r.Node, Session: 1, Online: i < 2})
		if err != nil {
			t.Fatal(err)
		}
		topics := proto.Topics{Fabric: "stray"}
		for topic, body := range map[string][]byte{topics.Reported(r.Node): payload, topics.Presence(r.Node): presence} { // any order: kept
			if err := link.Send(proto.Packet{Topic: topic, Payload: body, QoS: 1, Retain: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	var s statusJSON
	for deadline := time.Now().Add(20 * time.Second); ; { // the last of them may be on its way
		code, out, errs := ctl(t, "status", "-json", "-fabric", "stray", "-broker", broker)
		s = statusJSON{}
		if err := json.Unmarshal([]byte(out), &s); err != nil || code != 1 || !strings.Contains(errs, "no planner answers for fabric stray") {
			t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
		}
		if s.Nodes.Total == 3 || time.Now().After(deadline) {
			break
		}
	}
	if s.Planner.Leader || s.Nodes != (proto.NodeCounts{Total: 3, Online: 2, Silent: 1}) || s.Rings != (proto.RingCounts{Total: 1, InService: 1}) || s.Links != (linksJSON{1, 1, 0}) ||
		s.Health != "not_in_service" || slices.ContainsFunc(s.Checks, func(c checkJSON) bool { return c.State == "ok" }) ||
		len(s.Alarms) != 3 || s.Alarms[1].Why != "warm" || *s.Alarms[2].Node != 2 || len(s.Missing) != 4 || s.Planner.Generation != 7 {
		t.Errorf("%+v", s)
	}
	code, out, _ := ctl(t, "status", "-fabric", "stray", "-broker", broker)
	if clitest.Fits(t, "status", out); code != 1 || !strings.HasPrefix(out, "stray not_in_service: ") || !strings.Contains(out, "none answers; head (000008) is gone") || !strings.Contains(out, "1: 1 in service") || !strings.Contains(out, "not known without a planner: nodes") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// editOne: the description is fetched, edited and applied; what would cost
// light wants a word more, what no edit can change is refused as input.
func editOne(t *testing.T, broker string) {
	file := filepath.Join(t.TempDir(), "f.json")
	f := new(fabric.Fabric)
	edit := func(change func()) {
		change()
		if err := os.WriteFile(file, f.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(code int, want string, args ...string) {
		t.Helper()
		got, out, errs := ctl(t, append(append([]string{"fabric"}, args...), "-broker", broker)...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Errorf("%v: exit %d, %s%s, want %d, %q", args, got, out, errs, code, want)
		}
	}
	run(0, "", "get", "-o", file)
	text, err := os.ReadFile(file)
	if err == nil {
		f, err = fabric.Parse(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(0, "nothing differs", "diff", file)
	edit(func() { f.NodeNames = []string{"r1/u1", "r1/u2", "r1/u3", "r1/u4"} })
	run(0, `node_names of node 0: "0", then`, "diff", file)
	run(0, `"dry_run":true,"changes":["node_names`, "apply", file, "-dry-run", "-json")
	run(0, `"changes":["node_names of node 0`, "apply", file, "-json")
	run(0, "nothing differs", "apply", file)
	namedOne(t, broker)
	edit(func() { f.TP, f.Spares = 16, 0 })
	run(1, "ring 1 of 12 GPUs runs, and none of that size is wanted: let it end with -end 1", "apply", file)
	run(0, "it can be applied: 0 rings sent again, 1 end", "diff", file, "-end", "1")
	run(0, "the fabric is changed", "apply", file, "-end", "1")
	for deadline := time.Now().Add(50 * time.Second); ; {
		if _, out, _ := ctl(t, "ring", "list", "-json", "-broker", broker); strings.Contains(out, `"gpus_total":16,"state":"in_service"`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the ring of the edited fabric never has light")
		}
	}
	run(2, "end: ", "apply", file, "-end", "x")
	edit(func() { f.Name = "lab2" })
	run(2, `name: "lab2"`, "apply", file, "-fabric", "lab")
}

// namedOne: a node's name stands for its number, one that there is not for those
// that are near.
func namedOne(t *testing.T, broker string) {
	t.Helper()
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"node show r1/u2 -json", `{"node":1,"name":"r1/u2"`, 0},
		{"why r1/u2 -json", `{"node":1,"bundle":null`, 0},
		{"why r1/u2/0 -json", `{"node":1,"bundle":0`, 0},
		{"drain r1/u2 -dry-run -json", `{"node":1,"verb":"drain"`, 0},
		{"switch forced r1/u1 right r1/u3 -dry-run", "right side of r1/u1 would touch", 0},
		{"drain r1/u2 -dry-run", "r1/u2 would be drained: ", 0},
		{"drain 1 -dry-run", "node 1 would be drained: ", 0},
		{"why r1/u2", "r1/u2: ", 0},
		{"clear r1/u3 -json", `{"node":2,"was":"nothing kept it out"`, 0},
		{"drain r1/u9", "did you mean r1/u1 or r1/u2 or r1/u3?", 2},
		{"why rack-7", `there is no node \"rack-7\"`, 2},
		{"why r1/u2/16", `"field":"bundle"`, 2},
	} {
		args := append(strings.Fields(c.args), "-broker", broker)
		if c.code != 0 && !strings.Contains(c.args, "-json") {
			args = append(args, "-json")
		}
		code, out, errs := ctl(t, args...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, errs)
		}
	}
}

// watchOne: what happens shows as one JSON object a line.
func watchOne(t *testing.T, broker string, link *mqtt.Link) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	lines := make(chan string, 1)
	go func() {
		var out bytes.Buffer
		_ = watch(ctx, &clientFlags{flags: flag.NewFlagSet("watch", flag.ContinueOnError)}, []string{"-json", "-n", "1", "-fabric", "stray", "-broker", broker}, &out)
		lines <- out.String()
	}()
	payload, err := proto.Encode(&proto.Event{Version: proto.Version, Session: 1, Seq: 7, Kind: proto.EvAlarm, Count: 1, Text: "warm"})
	if err != nil {
		t.Fatal(err)
	}
	again := time.NewTicker(100 * time.Millisecond) // the watcher may not have subscribed yet
	defer again.Stop()
	for {
		select {
		case <-again.C:
			_ = link.Send(proto.Packet{Topic: proto.Topics{Fabric: "stray"}.Event(0), Payload: payload, QoS: 1})
		case line := <-lines:
			var got watchJSON
			if err := json.Unmarshal([]byte(line), &got); err != nil || got.Kind != "event" || got.Seq != 7 || got.Text != "warm" || strings.Count(line, "\n") != 1 {
				t.Errorf("%v: %q", err, line)
			}
			return
		}
	}
}
