package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/planner/view/browser"
	"ringlight/proto"
)

// Goal: a viewer of Chrome's traces that is not ours takes a trace without a
// complaint and shows every thread of it; a trace with slices that do not nest, or
// without an end, it complains of.
// Method: speedscope in a real Chromium (make bench-trace SPEEDSCOPE=DIR), which
// fetches the file as its users do.
func TestTraceInAViewerThatIsNotOurs(t *testing.T) {
	dir := os.Getenv("RINGLIGHT_SPEEDSCOPE")
	if dir == "" {
		t.Skip("skipped: RINGLIGHT_SPEEDSCOPE names no dist/release of speedscope")
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	const listen = `<script>window.said=[];for(const k of ['warn','error']){const f=console[k];console[k]=(...a)=>{said.push(a.map(String).join(' '));f(...a)}};window.alert=(a)=>said.push(String(a))</script>`
	page = bytes.Replace(page, []byte("<head>"), []byte("<head>"+listen), 1)
	if !bytes.Contains(page, []byte(listen)) {
		page = append([]byte(listen), page...)
	}
	good, err := json.Marshal(chromeTrace(generationMarks()))
	if err != nil {
		t.Fatal(err)
	}
	change := func(edit func(e map[string]any)) []byte {
		var file map[string][]map[string]any
		var all map[string]json.RawMessage
		if json.Unmarshal(good, &all) != nil || json.Unmarshal([]byte(`{"traceEvents":`+string(all["traceEvents"])+`}`), &file) != nil {
			t.Fatal("not read back")
		}
		for _, e := range file["traceEvents"] {
			if e["name"] == "prepare" && e["pid"] == float64(pidPlanner) {
				edit(e)
			}
		}
		out, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	traces := map[string][]byte{"/good.json": good,
		"/overlap.json": change(func(e map[string]any) { e["dur"] = e["dur"].(float64) + 1500; e["ts"] = e["ts"].(float64) - 700 }),
		"/open.json":    change(func(e map[string]any) { e["ph"] = "B"; delete(e, "dur") })}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch text := traces[r.URL.Path]; {
		case text != nil:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text)
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write(page)
		default:
			http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
		}
	}))
	defer web.Close()
	for name, well := range map[string]bool{"/good.json": true, "/overlap.json": false, "/open.json": false} { // any order: each by itself
		b := browser.Start(t, 1200, 700)
		b.Open(web.URL + "/?" + name + "#profileURL=" + web.URL + name)
		b.Until(`said.length > 0 || document.body.innerText.includes("(1/")`)
		var said []string
		var shown string
		b.Eval(`said`, &said)
		b.Eval(`document.body.innerText`, &shown)
		t.Logf("%s: %q, shows %q", name, said, shown)
		if (len(said) == 0) != well {
			t.Errorf("%s: it says %q", name, said)
		}
		if well && !strings.Contains(shown, "(1/6)") {
			t.Errorf("it shows %q", shown)
		}
	}
}

// generationMarks are those of a generation of two nodes and a late third, and two
// bypasses, one of which began before all else.
func generationMarks() []proto.TraceMark {
	id := func(n proto.NodeID) *proto.NodeID { return &n }
	return []proto.TraceMark{
		{Stage: proto.TraceAsked, AtMicros: 70_000_000, Text: "ring 3 without node 19"}, {Stage: proto.TracePrepare, AtMicros: 70_005_000},
		{Stage: proto.TraceDecided, AtMicros: 70_009_000}, {Stage: proto.TraceStored, AtMicros: 70_012_000},
		{Stage: proto.TracePrepared, AtMicros: 70_006_000, Node: id(18)}, {Stage: proto.TracePrepared, AtMicros: 70_009_000, Node: id(20)},
		{Stage: proto.TraceApplied, AtMicros: 70_012_500, Node: id(18)}, {Stage: proto.TraceConfirmed, AtMicros: 70_220_000, Node: id(18)},
		{Stage: proto.TraceConfirmed, AtMicros: 70_230_000, Node: id(20)},
		{Stage: proto.TracePrepared, AtMicros: 70_300_000, Node: id(22)}, {Stage: proto.TraceConfirmed, AtMicros: 70_310_000, Node: id(22)},
		{Stage: proto.TraceSwitched, AtMicros: 69_999_000, Node: id(18), Peer: 20, Side: proto.Right, Ledger: &traceLedger},
		{Stage: proto.TraceSwitched, AtMicros: 69_999_100, Node: id(20), Peer: 18, Ledger: &traceLedger},
	}
}

var traceLedger = proto.Ledger{DetectMicros: 96, HoldoffMicros: 5, DecideMicros: 8, BusMicros: 61, SettleMicros: 48, ConfirmMicros: 194}
