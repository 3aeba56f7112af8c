package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/planner/view"
	"ringlight/proto"
	"ringlight/proto/metric"
	"ringlight/proto/metric/promtool"
	"ringlight/proto/metric/self"
)

// pagesOf gives both pages of a planner that runs.
func pagesOf(t *testing.T, fab *fabric.Fabric) (fabricPage, nodesPage string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	url, ended := make(chan string, 1), make(chan error, 1)
	cfg := Config{Fabric: fab, Listen: "127.0.0.1:0", State: filepath.Join(t.TempDir(), "p.db"), Version: "test", HTTP: "127.0.0.1:0", HTTPReady: func(u string) { url <- u }}
	go func() { ended <- Run(ctx, cfg) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	at := <-url
	get := func(path string) string {
		r, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 || r.Header.Get("Content-Type") != metricsType {
			t.Fatalf("%s: %s, %s, %v", path, r.Status, r.Header.Get("Content-Type"), err)
		}
		return string(text)
	}
	return get(metricsPath), get(nodesPath)
}

// Goal: a monitoring system reads both pages of a planner that runs.
// Method: every family of the tables is on its page, each node has its samples,
// and promtool finds nothing to say of either.
func TestPagesAreRead(t *testing.T) {
	fab := testFabric()
	pages := [2]string{}
	pages[0], pages[1] = pagesOf(t, fab)
	var names [2][]string
	for i := range planner.Measures {
		names[0] = append(names[0], planner.Measures[i].Name)
	}
	for i := range Measures {
		names[0] = append(names[0], Measures[i].Name)
	}
	for i := range self.Measures {
		names[0] = append(names[0], self.Measures[i].Name)
	}
	for i := range planner.NodeMeasures {
		names[1] = append(names[1], planner.NodeMeasures[i].Name)
	}
	for k, page := range pages {
		for _, name := range names[k] {
			if !strings.Contains(page, "# TYPE "+name+" ") {
				t.Errorf("page %d lacks %s", k, name)
			}
		}
	}
	for _, want := range []string{"\nringlight_devices{kind=\"node\",state=\"unheard\"} " + fmt.Sprint(fab.Nodes) + "\n", "\nringlight_build_info{program=\"ocs-planner\",version=\"test\",",
		"\nringlight_gpus " + fmt.Sprint(fab.Nodes*fab.GPUsPerNode) + "\n", "\nringlight_bypass_seconds_bucket{losses=\"1\",le=\"0.001\"} 0\n", "\nringlight_step_seconds_count ", "\nringlight_view_viewers 0\n"} {
		if !strings.Contains(pages[0], want) {
			t.Errorf("page lacks %q", want)
		}
	}
	if n := strings.Count(pages[1], "\nringlight_node_online{"); n != fab.Nodes {
		t.Errorf("%d nodes, want %d", n, fab.Nodes)
	}
	for k, page := range pages {
		t.Run(fmt.Sprint("promtool ", k), func(t *testing.T) { promtool.Judge(t, page, "check", "metrics") })
	}
}

// naive answers a planner in the place of all nodes: whatever is prepared is
// taken, and what is decided is reported with light on every bundle.
type naive struct {
	p      *planner.Planner
	topics proto.Topics
	staged map[proto.NodeID]proto.Desired
	seq    uint64
	now    time.Duration
}

func (w *naive) say(topic string, m any) {
	payload, err := proto.Encode(m)
	if err != nil {
		panic(err)
	}
	w.step(planner.Event{Kind: planner.Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload}})
}

func (w *naive) step(ev planner.Event) {
	ev.At, ev.WallMillis = w.now, 1
	for _, a := range w.p.Step(ev, nil) {
		switch topic, _ := proto.ParseTopic(a.Packet.Topic); {
		case a.Kind == planner.Persist:
			w.step(planner.Event{Kind: planner.Persisted, Persist: a.Persist})
		case a.Kind != planner.Send:
		case topic.Kind == proto.TopicDesired:
			var m proto.Desired
			if _, err := proto.Decode(a.Packet.Payload, &m); err != nil {
				panic(err)
			}
			w.staged[m.Node] = m
		case topic.Kind == proto.TopicDecision:
			var m proto.Decision
			if _, err := proto.Decode(a.Packet.Payload, &m); err != nil {
				panic(err)
			}
			for _, d := range w.staged { // any order: each tells of itself
				if d.Plan == m.Plan && len(d.Rings) == 1 && d.Rings[0].Ring == m.Ring {
					w.report(d)
				}
			}
		}
	}
}

// answer takes what was prepared.
func (w *naive) answer() {
	for id, d := range w.staged { // any order: the last answer decides, whoever gives it
		if d.Generation > 0 {
			w.say(w.topics.Ack(id), &proto.Ack{Version: proto.Version, Node: id, Session: 5, Phase: proto.PhasePrepare,
				Term: d.Term, Generation: d.Generation, Plan: d.Plan, CurrentTerm: d.Term})
		}
	}
}

func (w *naive) report(d proto.Desired) {
	w.seq++
	m := proto.Reported{Version: proto.Version, Node: d.Node, Session: 5, Seq: w.seq, Mode: proto.ModeService, SeenTerm: d.Term, Term: d.Term,
		Generation: d.Generation, Plan: d.Plan, Rings: d.Rings, Sides: []proto.SideReport{}, Alarms: []proto.Alarm{}, Bundles: []proto.BundleReport{}}
	for b := range 2 {
		m.Bundles = append(m.Bundles, proto.BundleReport{Bundle: proto.BundleID(b), Path: proto.Loopback, State: proto.Tuned, Expected: -4600, Measured: -4712})
	}
	for _, r := range d.Rings {
		for side, list := range [2][]proto.Candidate{r.Left, r.Right} {
			if len(list) == 0 {
				continue
			}
			c := list[[2]uint8{r.LeftWorking, r.RightWorking}[side]]
			m.Bundles[c.Bundle].Path = c.Path
			m.Sides = append(m.Sides, proto.SideReport{Ring: r.Ring, Side: proto.Side(side), State: proto.SideWork, Peer: c.Peer})
		}
	}
	w.say(w.topics.Reported(d.Node), &m)
}

// serving gives a planner whose rings are all in service.
func serving(tb testing.TB, nodes int) *planner.Planner {
	fab, err := fabric.New(fabric.Params{Name: "f1", Nodes: nodes, GPUsPerNode: 4, K: 2, TP: 32})
	if err != nil {
		tb.Fatal(err)
	}
	cfg, err := planner.Start(nil, fab, 7)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Alone = true
	w := &naive{p: planner.New(cfg), topics: proto.Topics{Fabric: "f1"}, staged: map[proto.NodeID]proto.Desired{}}
	w.step(planner.Event{Kind: planner.LinkUp})
	for n := range nodes {
		w.say(w.topics.Presence(proto.NodeID(n)), &proto.Presence{Version: proto.Version, Node: proto.NodeID(n), Session: 5, Online: true, Mode: proto.ModeService, GPUs: 4, Bundles: 2})
		w.report(proto.Desired{Node: proto.NodeID(n)})
		w.say(w.topics.Health(proto.NodeID(n)), &proto.Health{Version: proto.Version, Node: proto.NodeID(n), Session: 5, Seq: 1,
			Samples: []proto.Sample{{Bundle: 1, Module: 2, Sensor: proto.SensorCase, Value: 318_150}}})
	}
	for w.now < time.Minute && planner.CensusOf(w.p).Rings[proto.RingInService] < nodes/8 {
		w.now += 100 * time.Millisecond
		w.step(planner.Event{Kind: planner.Tick})
		w.answer()
	}
	if got := planner.CensusOf(w.p); got.Rings[proto.RingInService] != nodes/8 || got.LinksConfirmed != got.Links || got.GPUsWasted != 0 {
		tb.Fatalf("%+v", got)
	}
	return w.p
}

// Goal: what a ring has is on the pages.
func TestMetricsOfRingsInService(t *testing.T) {
	p := serving(t, 32)
	var page metric.Page
	metric.AppendAll(&page, planner.Measures, planner.CensusOf(p))
	metric.AppendAll(&page, planner.NodeMeasures, planner.NodesOf(p, nil))
	for _, want := range []string{`ringlight_rings{state="in_service"} 4`, `ringlight_leader 1`, `ringlight_links 28`, `ringlight_links_unconfirmed 0`, `ringlight_gpus_wasted 0`,
		`ringlight_commit_seconds_count{of="rings"} 1`, `ringlight_margin_decibels{node="31",bundle="1"} 2.888`, `ringlight_node_case_celsius{node="0"} 45`, `ringlight_node_usable{node="5"} 1`} {
		if !strings.Contains(string(page.Text), "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, page.Text)
		}
	}
}

// BenchmarkScrapeOf10000Nodes is both pages, read out of a planner's goroutine
// and written to who asked, over a socket; all rings are in service.
func BenchmarkScrapeOf10000Nodes(b *testing.B) {
	s := &server{reads: make(chan func(*planner.Planner)), ended: make(chan struct{}), meters: newMeters()}
	p := serving(b, 10_000)
	kept, reads := time.Duration(0), 0
	go func() {
		for read := range s.reads {
			began := time.Now()
			read(p)
			kept, reads = kept+time.Since(began), reads+1
		}
	}()
	mux := http.NewServeMux()
	s.scrapes(mux, func() view.Load { return view.Load{} })
	web := httptest.NewServer(mux)
	defer web.Close()
	b.ReportAllocs()
	var bytes int64
	before := cpu(b)
	for b.Loop() {
		bytes = 0
		for _, path := range []string{metricsPath, nodesPath} {
			r, err := http.Get(web.URL + path)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil || r.StatusCode != 200 {
				b.Fatal(r.Status, err)
			}
			bytes += n
			r.Body.Close()
		}
	}
	took := cpu(b) - before
	b.ReportMetric(float64(bytes)/1e6, "MB/scrape")
	b.ReportMetric(float64(took.Microseconds())/1000/float64(b.N), "cpu-ms/scrape")
	b.ReportMetric(float64(took)/float64(b.N)/float64(15*time.Second)*100, "%-of-a-core-every-15s")
	b.ReportMetric(float64(kept.Microseconds())/1000/float64(reads), "planner-ms/page")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Goal: a planner tells how a generation came into force, in order, and of one that
// it does not keep says which it does.
func TestTraceOfAGeneration(t *testing.T) {
	p := serving(t, 32)
	ask := func(gen proto.Generation) (r proto.OpReply) {
		payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1}, TTLMillis: 1000, Noun: proto.NounTrace, Bundle: -1, Generation: gen})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Step(planner.Event{Kind: planner.Packet, At: 2 * time.Minute, Packet: proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: "f1"}.Request("c"), Payload: payload}}, nil) {
			if topic, _ := proto.ParseTopic(a.Packet.Topic); a.Kind == planner.Send && topic.Kind == proto.TopicReply {
				if _, err := proto.Decode(a.Packet.Payload, &r); err != nil {
					t.Fatal(err)
				}
			}
		}
		return r
	}
	var n [proto.TraceSwitched + 1]int
	at := [proto.TraceSwitched + 1]uint64{}
	for _, m := range ask(1).Trace {
		n[m.Stage]++
		at[m.Stage] = max(at[m.Stage], m.AtMicros)
	}
	if n != [proto.TraceSwitched + 1]int{0, 1, 1, 32, 1, 1, 0, 32, 0} {
		t.Errorf("marks %v", n)
	}
	if at[proto.TraceAsked] > at[proto.TracePrepare] || at[proto.TracePrepare] > at[proto.TracePrepared] || at[proto.TracePrepared] > at[proto.TraceStored] || at[proto.TraceStored] > at[proto.TraceConfirmed] {
		t.Errorf("moments %v", at)
	}
	if r := ask(9); r.Code != proto.NotFound || r.Field != "generation" || r.Limit != "one of the last 1, 1 to 1" {
		t.Errorf("%+v", r)
	}
}
