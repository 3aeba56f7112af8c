package gnmi

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	wire "google.golang.org/protobuf/proto"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// source is a planner in service that hears of nodes what a test says, on a clock that
// stands but for its own timers.
type source struct {
	t    testing.TB
	mu   sync.Mutex
	host *planner.Host
	now  time.Duration
	acts []proto.OpRequest
	role proto.Role
	lies func(page uint64) uint64 // of the next page of records
}

func (s *source) may(_ *x509.Certificate, q *proto.OpRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Needs() > s.role {
		return &proto.Error{Code: proto.Denied, Field: "author", Reason: s.role.String()}
	}
	return nil
}

func (s *source) Now() (time.Duration, uint64) {
	return s.now, 1_000_000 + uint64(s.now.Milliseconds())
}
func (s *source) Log(*planner.Line) {}
func (s *source) Send(proto.Packet) {}

func (s *source) run(d time.Duration) {
	for end := s.now + d; ; {
		for {
			if _, due := s.host.Transaction(); due {
				s.host.Stored()
			} else if _, more := s.host.Step(); !more {
				break
			}
		}
		if next := s.host.Next(); next > end {
			s.now = end
			return
		} else {
			s.now = max(s.now, next)
		}
		s.host.Tick()
	}
}

func (s *source) Read(_ context.Context, f func(*planner.Planner)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.host.Planner())
	return nil
}

func (s *source) Ask(_ context.Context, q proto.OpRequest) (*proto.OpReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acts = append(s.acts, q)
	r := &proto.OpReply{}
	if q.Noun == proto.NounBins {
		r.Bins = []proto.Bin{{From: 1_800_000_000 + q.Page*900, Quantity: proto.TxPower, Min: -3456, Avg: -3400, Max: -3300, Samples: 90}}
		if q.Page == 0 && !q.Bins.Days {
			r.Next = 1
		}
		if s.lies != nil {
			r.Next = s.lies(q.Page)
		}
	}
	return r, nil
}

const nodes = 24

// say delivers a message to the planner, and runs it for a second.
func (s *source) say(topic string, m any) {
	payload, err := proto.Encode(m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host.Deliver(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload})
	s.run(time.Second)
}

var topics = proto.Topics{Fabric: "f1"}

// tell has a node be born, and report.
func (s *source) tell(id proto.NodeID, seq uint64, state proto.PortState, power proto.MilliDBm) {
	s.say(topics.Presence(id), &proto.Presence{Version: proto.Version, Node: id, Session: 1, Online: true, Boot: 1, GPUs: 4, Bundles: 2, Modules: 8, Mode: proto.ModeService})
	light := proto.BundleReport{Path: proto.Loopback, State: state, Measured: power, Expected: -3000, Lit: 1 << proto.Loopback, Calibration: proto.Digest{1}}
	other := light
	other.Bundle = 1
	s.say(topics.Reported(id), &proto.Reported{Version: proto.Version, Node: id, Session: 1, Seq: seq, Mode: proto.ModeService, Bundles: []proto.BundleReport{light, other}})
	for n := range uint64(2) {
		s.say(topics.Event(id), &proto.Event{Version: proto.Version, Node: id, Session: 1, Seq: 2*seq - 1 + n, Kind: proto.EvLightLost, Cause: proto.CauseLightLost, Path: proto.Loopback, Count: 1})
	}
	s.say(topics.Health(id), &proto.Health{Version: proto.Version, Node: id, Session: 1, Seq: seq, Reported: seq, Samples: []proto.Sample{
		{Bundle: 0, Module: 3, Sensor: proto.SensorCase, Value: 313_450}, {Bundle: 0, Module: 1, Sensor: proto.SensorTxTap, Value: 8214}, {Bundle: 0, Module: 1, Sensor: proto.SensorLowerPath, Value: -3456},
		{Bundle: 0, Module: 0, Sensor: proto.SensorUpperBias, Value: 39_500}, {Bundle: 0, Module: 1, Sensor: proto.SensorUpperBias, Value: 40_000}}})
}

// served is such a planner over gRPC.
func served(t testing.TB) (pb.GNMIClient, *source, *Server) {
	t.Helper()
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: nodes, GPUsPerNode: 4, K: 2, TP: 32,
		Core: &fabric.Core{Pods: 2, LeavesPerPod: 2, SpinesPerPod: 2, SpinePorts: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 2, Wiring: fabric.Interleaved, IotaMille: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := planner.Start(nil, f, 7)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Alone = true
	s := &source{t: t, role: proto.RoleAdmin}
	s.host = planner.NewHost(cfg, s)
	s.host.Deliver(proto.Packet{Kind: proto.LinkUp})
	s.run(time.Second)
	srv, err := Start(Config{Addr: "127.0.0.1:0", Source: s, May: s.may})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(srv.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); srv.Close() })
	return pb.NewGNMIClient(conn), s, srv
}

// at reads a path such as fabric/nodes/node[id=7].
func at(path string) *pb.Path {
	p := &pb.Path{}
	for word := range strings.SplitSeq(path, "/") {
		name, key, keyed := strings.Cut(strings.TrimSuffix(word, "]"), "[")
		e := &pb.PathElem{Name: name}
		if keyed {
			k, v, _ := strings.Cut(key, "=")
			e.Key = map[string]string{k: v}
		}
		p.Elem = append(p.Elem, e)
	}
	return p
}

func text(elems []*pb.PathElem) (out string) {
	for _, e := range elems {
		out += "/" + e.GetName()
		for _, v := range e.GetKey() { // any order: there is one
			out += "[" + v + "]"
		}
	}
	return out
}

func subscribe(mode pb.SubscriptionList_Mode, of pb.SubscriptionMode, as pb.Encoding, paths ...string) *pb.SubscribeRequest {
	list := &pb.SubscriptionList{Mode: mode, Encoding: as}
	for _, p := range paths {
		list.Subscription = append(list.Subscription, &pb.Subscription{Path: at(p), Mode: of})
	}
	return &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list}}
}

// tree is what a stream has told.
type tree map[string]string

func (x tree) take(n *pb.Notification) {
	for _, d := range n.GetDelete() {
		gone := text(n.GetPrefix().GetElem()) + text(d.GetElem())
		maps.DeleteFunc(x, func(p, _ string) bool { return p == gone || strings.HasPrefix(p, gone+"/") })
	}
	for _, u := range n.GetUpdate() {
		x[text(n.GetPrefix().GetElem())+text(u.GetPath().GetElem())] = u.GetVal().String()
	}
}

// until reads a stream up to its sync, or what stop says.
func until(t testing.TB, rpc pb.GNMI_SubscribeClient, x tree, stop func(*pb.Notification) bool) {
	t.Helper()
	for {
		r, err := rpc.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.GetSyncResponse() {
			if stop == nil {
				return
			}
			continue
		}
		if x.take(r.GetUpdate()); stop != nil && stop(r.GetUpdate()) {
			return
		}
	}
}

func once(t testing.TB, c pb.GNMIClient, paths ...string) tree {
	t.Helper()
	rpc, err := c.Subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := rpc.Send(subscribe(pb.SubscriptionList_ONCE, 0, pb.Encoding_PROTO, paths...)); err != nil {
		t.Fatal(err)
	}
	x := tree{}
	until(t, rpc, x, nil)
	if _, err := rpc.Recv(); err != io.EOF {
		t.Errorf("after the sync of ONCE: %v", err)
	}
	return x
}

// Goal: all that is served is in the models, has the type that they say, and is served by
// every way to ask. Method: each leaf's path against the schema; Get as JSON through
// yanglint with the published file; Get leaf by leaf against ONCE.
func TestServedIsPublished(t *testing.T) {
	c, s, _ := served(t)
	for id := range proto.NodeID(nodes) {
		s.tell(id, 1, proto.Tuned, -3200)
	}
	all := once(t, c, "fabric", "components")
	if len(all) < nodes*30 {
		t.Fatalf("%d leaves", len(all))
	}
	for path, want := range map[string]string{ // any order
		"/fabric/state/online": `uint_val:24`, "/fabric/nodes/node[7]/bundles/bundle[1]/state/measured": `double_val:-3.2`,
		"/components/component[node-3/bundle-0]/state/temperature/instant":                                                 `double_val:40.3`,
		"/components/component[node-3/bundle-0]/transceiver/physical-channels/channel[0]/state/output-power/instant":       `double_val:8.21`,
		"/components/component[node-3/bundle-0]/transceiver/physical-channels/channel[0]/state/laser-bias-current/instant": `double_val:40`,
		"/components/component[node-3/bundle-0]/transceiver/physical-channels/channel[1]/state/input-power/instant":        `double_val:-3.45`,
		"/components/component[node-3/bundle-1]/state/parent":                                                              `string_val:"node-3"`,
	} {
		if got := strings.ReplaceAll(all[path], ": ", ":"); got != want {
			t.Errorf("%s: %q, want %s", path, got, want)
		}
	}
	if _, invented := all["/components/component[node-3/bundle-1]/state/temperature/instant"]; invented {
		t.Error("a temperature that nobody told of")
	}
	got, err := c.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at("fabric"), at("components")}, Encoding: pb.Encoding_PROTO})
	if err != nil {
		t.Fatal(err)
	}
	x := tree{}
	for _, n := range got.GetNotification() {
		x.take(n)
		for _, u := range n.GetUpdate() {
			if _, sch, err := find(u.GetPath().GetElem()); err != nil || !sch.leaf {
				t.Errorf("%s is not in the models: %v", text(u.GetPath().GetElem()), err)
			}
		}
	}
	if !maps.Equal(x, all) {
		t.Errorf("Get has %d leaves, ONCE %d", len(x), len(all))
	}
	doc, err := c.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at("fabric")}, Encoding: pb.Encoding_JSON_IETF})
	if err != nil {
		t.Fatal(err)
	}
	raw := fmt.Sprintf(`{"ringlight-fabric:fabric":%s}`, doc.GetNotification()[0].GetUpdate()[0].GetVal().GetJsonIetfVal())
	lint, err := exec.LookPath("yanglint")
	if err != nil {
		t.Skip("no yanglint (package libyang-tools): the model and what is served are not judged by it")
	}
	judge := func(raw string) error {
		name := filepath.Join(t.TempDir(), "fabric.json")
		if err := os.WriteFile(name, []byte(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(lint, "-t", "get", "ringlight-fabric.yang", name).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := judge(raw); err != nil {
		t.Error(err)
	}
	for _, spoil := range []string{`"path-state":"tuned"|"path-state":"shiny"`, `"online":true|"online":"yes"`, `"generation":"0"|"generation":0`, `"measured":"-3.200"|"measured":-3.2`,
		`"severity":"|"severity":"x`, `"number":"|"number":"-`, `"bundle":[|"bundles":[`, `"a-node":1|"a-node":70000000000`} {
		was, is, _ := strings.Cut(spoil, "|")
		if !strings.Contains(raw, was) {
			t.Errorf("nothing to spoil with %s", spoil)
		} else if judge(strings.Replace(raw, was, is, 1)) == nil {
			t.Errorf("yanglint takes %s", is)
		}
	}
}

// eventsOf are the numbers of the events that are told.
func eventsOf(n *pb.Notification) (out []uint64) {
	for _, u := range n.GetUpdate() {
		path := slices.Concat(n.GetPrefix().GetElem(), u.GetPath().GetElem())
		if len(path) == 5 && path[2].GetName() == "event" && path[4].GetName() == "number" {
			out = append(out, u.GetVal().GetUintVal())
		}
	}
	return out
}

// Goal: who streams knows at each moment what one knows who asks, each event once and in
// order, deletions too. Method: nodes are born, report and go; what the stream told is held
// against ONCE at the end.
func TestStreamTellsEachChange(t *testing.T) {
	c, s, _ := served(t)
	for id := range proto.NodeID(8) {
		s.tell(id, 1, proto.Tuned, -3200)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a change that is not told ends the test
	defer cancel()
	rpc, err := c.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := rpc.Send(subscribe(pb.SubscriptionList_STREAM, pb.SubscriptionMode_ON_CHANGE, pb.Encoding_PROTO, "fabric/nodes", "fabric/events", "fabric/links", "fabric/rings", "components")); err != nil {
		t.Fatal(err)
	}
	x, last := tree{}, uint64(0)
	until(t, rpc, x, nil)
	numbers := func(n *pb.Notification) bool {
		for _, no := range eventsOf(n) {
			if last != 0 && no != last+1 {
				t.Errorf("event %d after %d", no, last)
			}
			last = no
		}
		return false
	}
	for id := range proto.NodeID(nodes) {
		s.tell(id, 2, proto.Tuned, -3100-proto.MilliDBm(id))
		if id%3 == 0 {
			s.say(topics.Presence(id), &proto.Presence{Version: proto.Version, Node: id, Session: 1})
		}
	}
	var end uint64
	_ = s.Read(t.Context(), func(p *planner.Planner) { end = planner.Last(p) })
	until(t, rpc, x, func(n *pb.Notification) bool { numbers(n); return last == end })
	s.tell(1, 3, proto.Tuning, proto.NoPower)
	until(t, rpc, x, func(*pb.Notification) bool {
		return strings.Contains(x["/fabric/nodes/node[1]/bundles/bundle[1]/state/path-state"], "tuning")
	})
	if _, there := x["/fabric/nodes/node[1]/bundles/bundle[1]/state/measured"]; there {
		t.Error("a power that is not measured any more is still told")
	}
	want := once(t, c, "fabric/nodes", "fabric/links", "fabric/rings")
	same := func(*pb.Notification) bool { // what is left of the look comes yet
		for p, v := range want { // any order: each by itself
			if x[p] != v {
				return false
			}
		}
		return true
	}
	if !same(nil) {
		until(t, rpc, x, same)
	}
	if err := rpc.CloseSend(); err != nil {
		t.Fatal(err)
	}
}

// Goal: what cannot be answered is refused by the code of gRPC that fits, with the field
// and the limit. Method: a table.
func TestRefusals(t *testing.T) {
	c, _, _ := served(t)
	get := func(r *pb.GetRequest) error { _, err := c.Get(t.Context(), r); return err }
	first := func(r *pb.SubscribeRequest) error {
		rpc, err := c.Subscribe(t.Context())
		if err != nil {
			return err
		}
		if err := rpc.Send(r); err != nil {
			return err
		}
		for {
			if _, err := rpc.Recv(); err != nil {
				return err
			}
		}
	}
	sample := func(every uint64) *pb.SubscribeRequest {
		r := subscribe(pb.SubscriptionList_STREAM, pb.SubscriptionMode_SAMPLE, pb.Encoding_PROTO, "fabric")
		r.GetSubscribe().Subscription[0].SampleInterval = every
		return r
	}
	of := func(paths ...string) *pb.GetRequest {
		r := &pb.GetRequest{}
		for _, p := range paths {
			r.Path = append(r.Path, at(p))
		}
		return r
	}
	for _, x := range []struct {
		err  error
		code codes.Code
		says string
	}{
		{get(of("fabrik")), codes.InvalidArgument, "path: there is no /fabrik"},
		{get(of("fabric/nodes/node[id=3]/state/online/off")), codes.InvalidArgument, "nothing below it"},
		{get(of("fabric/nodes/node[number=3]")), codes.InvalidArgument, "key id"},
		{get(of("fabric/nodes/node[id=99]")), codes.NotFound, "99"},
		{get(of(strings.Repeat("fabric/", 40) + "x")), codes.InvalidArgument, "at most 32 elements"},
		{get(of(slices.Repeat([]string{"fabric/state"}, 129)...)), codes.InvalidArgument, "at most 128"},
		{get(&pb.GetRequest{Path: []*pb.Path{at("fabric")}, Encoding: pb.Encoding_ASCII}), codes.Unimplemented, "JSON_IETF"},
		{get(&pb.GetRequest{Path: []*pb.Path{at("fabric")}, UseModels: []*pb.ModelData{{Name: "x"}}}), codes.InvalidArgument, "use_models"},
		{get(&pb.GetRequest{Path: []*pb.Path{{Origin: "cli", Elem: at("fabric").Elem}}}), codes.InvalidArgument, "origin"},
		{get(of("fabric/" + strings.Repeat("x", 2<<20))), codes.ResourceExhausted, "larger than max"},
		{first(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}}), codes.InvalidArgument, "subscribe, first of all"},
		{first(&pb.SubscribeRequest{}), codes.InvalidArgument, "subscribe, first of all"},
		{first(subscribe(pb.SubscriptionList_ONCE, 0, pb.Encoding_PROTO)), codes.InvalidArgument, "1 to 128"},
		{first(subscribe(7, 0, pb.Encoding_PROTO, "fabric")), codes.InvalidArgument, "STREAM, ONCE or POLL"},
		{first(subscribe(pb.SubscriptionList_STREAM, 7, pb.Encoding_PROTO, "fabric")), codes.InvalidArgument, "ON_CHANGE or SAMPLE"},
		{first(sample(1000)), codes.InvalidArgument, "sample_interval"},
		{first(sample(1 << 63)), codes.InvalidArgument, "sample_interval"},
	} {
		if s := status.Convert(x.err); s.Code() != x.code || !strings.Contains(s.Message(), x.says) {
			t.Errorf("%v: %q, want %v with %q", s.Code(), s.Message(), x.code, x.says)
		}
	}
}

// Goal: beyond loopback nobody is served without certificates.
func TestOnlyLoopbackIsPlain(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:0": true, "[::1]:0": true, "0.0.0.0:0": false, "192.0.2.1:9339": false, "x": false} { // any order
		if err := (&Config{Addr: addr}).Check(); (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// Goal: a Set is one act of an operator, whole, by the role that it takes; what is not one,
// has a wrong type or names what is not there is refused with what would do, and nothing is
// asked. Method: a table of updates and deletes, as what operators ask for.
func TestSetIsOneAct(t *testing.T) {
	c, s, _ := served(t)
	str := func(v string) *pb.TypedValue { return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: v}} }
	doc := func(v string) *pb.TypedValue { return jsonValue([]byte(v), pb.Encoding_JSON_IETF) }
	yes := &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: true}}
	up := func(path string, v *pb.TypedValue) *pb.Update { return &pb.Update{Path: at(path), Val: v} }
	set := func(u ...*pb.Update) *pb.SetRequest { return &pb.SetRequest{Update: u} }
	of := func(target string, r *pb.SetRequest) *pb.SetRequest { r.Prefix = &pb.Path{Target: target}; return r }
	del := func(path ...string) (r *pb.SetRequest) {
		r = &pb.SetRequest{}
		for _, p := range path {
			r.Delete = append(r.Delete, at(p))
		}
		return r
	}
	const node, side, port, path = "fabric/nodes/node[id=7]", "fabric/nodes/node[id=7]/sides/side[name=left]", "sonic-ocs/OCS_PORT/OCS_PORT_LIST[simplex_port_id=2B]", "sonic-ocs/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST[cross_connect_id=1A-2B]"
	peer, circuit := proto.NodeID(5), doc(`{"a_side":"1A","b_side":"2B"}`)
	for _, x := range []struct {
		r    *pb.SetRequest
		code codes.Code
		says string
		act  proto.OpRequest
	}{
		{r: set(up(node+"/config/drained", yes)), act: proto.OpRequest{Noun: proto.NounDrain, Node: 7}},
		{r: set(up(node+"/config", doc(`{"ringlight-fabric:id":7,"drained":true,"reason":"fan"}`))), act: proto.OpRequest{Noun: proto.NounDrain, Node: 7, Reason: "fan"}},
		{r: set(up(node, doc(`{"config":{"drained":false}}`))), act: proto.OpRequest{Noun: proto.NounUndrain, Node: 7}},
		{r: del(node + "/config/drained"), act: proto.OpRequest{Noun: proto.NounUndrain, Node: 7}},
		{r: set(up(side+"/config/request", str("forced_switch")), up(side+"/config/peer", doc("5"))), act: proto.OpRequest{Noun: proto.NounRequest, Node: 7, Side: proto.Left, Request: proto.ForcedSwitch, Peer: &peer}},
		{r: del(side + "/config/request"), act: proto.OpRequest{Noun: proto.NounRequest, Node: 7, Side: proto.Left}},
		{r: set(up("fabric/jobs/job[name=a]/config/wish", str(`{"tp":32}`))), act: proto.OpRequest{Noun: proto.NounSubmit, Name: "a", Text: `{"tp":32}`}},
		{r: del("fabric/jobs/job[name=a]"), act: proto.OpRequest{Noun: proto.NounRelease, Name: "a"}},
		{r: of("switch-3", set(up(port+"/config_status", str("force_blocked")))), act: proto.OpRequest{Noun: proto.NounDrain, Name: "switch3/b1", Reason: "set over gNMI"}},
		{r: of("switch-3", set(up("sonic-ocs:"+port, doc(`{"simplex_port_id":"2B","config_status":"normal"}`)))), act: proto.OpRequest{Noun: proto.NounUndrain, Name: "switch3/b1", Reason: "set over gNMI"}},
		{r: of("switch-3", set(up(path, circuit))), act: proto.OpRequest{Noun: proto.NounConnect, Node: proto.FirstSwitch + 3, Names: []string{"1A-2B"}, Reason: "set over gNMI"}},
		{r: of("switch-3", del(path)), act: proto.OpRequest{Noun: proto.NounConnect, Node: proto.FirstSwitch + 3, Gone: []string{"1A-2B"}, Reason: "set over gNMI"}},
		{r: of("switch-3", &pb.SetRequest{Delete: []*pb.Path{at(strings.Replace(path, "1A", "7A", 1))}, Update: []*pb.Update{up(path+"/a_side", str("1A")), up(path+"/b_side", str("2B"))}}),
			act: proto.OpRequest{Noun: proto.NounConnect, Node: proto.FirstSwitch + 3, Names: []string{"1A-2B"}, Gone: []string{"7A-2B"}, Reason: "set over gNMI"}},

		{r: &pb.SetRequest{}, code: codes.InvalidArgument, says: "1 to 128"},
		{r: set(up(node+"/state/online", yes)), code: codes.InvalidArgument, says: "is state"},
		{r: set(up(node+"/config/drained", str("true"))), code: codes.InvalidArgument, says: `"true" of drained (limit: boolean)`},
		{r: set(up(node+"/config", doc(`{"drained":"true"}`))), code: codes.InvalidArgument, says: `"true" of drained (limit: boolean)`},
		{r: set(up(node+"/config", doc(`{"drained":true,"reason":7}`))), code: codes.InvalidArgument, says: "7 of reason (limit: string)"},
		{r: set(up(node+"/config", doc(`{"openconfig-platform:drained":true}`))), code: codes.InvalidArgument, says: `"openconfig-platform:drained"`},
		{r: set(up(node+"/config/drained", yes), up("fabric/nodes/node[id=8]/config/drained", yes)), code: codes.InvalidArgument, says: "one item"},
		{r: set(up("fabric/nodes/node/config/drained", yes)), code: codes.InvalidArgument, says: "with its key"},
		{r: set(up("fabric/nodes/node[id=x]/config/drained", yes)), code: codes.InvalidArgument, says: "number of a node"},
		{r: set(up(node+"/config", doc(`{"drained":true,"colour":"red"}`))), code: codes.InvalidArgument, says: "colour"},
		{r: set(up(node+"/config", doc(`{"drained":[true]}`))), code: codes.InvalidArgument, says: "a list of drained"},
		{r: set(up(node+"/config", doc(`{"drained":true`))), code: codes.InvalidArgument, says: "JSON"},
		{r: set(up(node+"/config", doc(`{"drained":true}{}`))), code: codes.InvalidArgument, says: "follows"},
		{r: set(up(node+"/config", yes)), code: codes.InvalidArgument, says: "true of config (limit: an object)"},
		{r: set(up(node+"/config/drained", nil)), code: codes.InvalidArgument, says: "a value"},
		{r: set(up(side+"/config/request", str("signal_fail"))), code: codes.InvalidArgument, says: "manual_switch"},
		{r: set(up(side+"/config/peer", doc("5"))), code: codes.InvalidArgument, says: "config/request"},
		{r: set(up(side+"/config/request", str("lockout")), up(side+"/config/peer", str("5"))), code: codes.InvalidArgument, says: `"5" of peer (limit: uint32)`},
		{r: set(up("fabric/nodes/node[id=7]/sides/side[name=up]/config/request", str("lockout"))), code: codes.InvalidArgument, says: "left or right"},
		{r: &pb.SetRequest{Delete: []*pb.Path{at(side + "/config/peer")}, Update: []*pb.Update{up(side+"/config/request", str("lockout"))}}, code: codes.InvalidArgument, says: "delete, or update"},
		{r: set(up(port+"/config_status", str("normal"))), code: codes.InvalidArgument, says: "switch-N"},
		{r: of("switch-99", set(up(port+"/config_status", str("normal")))), code: codes.NotFound, says: "of the fabric's 8"},
		{r: of("switch-3", set(up(port+"/config_status", str("odd")))), code: codes.InvalidArgument, says: "want normal"},
		{r: of("switch-3", set(up(port+"/config_status", str("powered_off")))), code: codes.InvalidArgument, says: "normal or force_blocked"},
		{r: of("switch-3", set(up("sonic-ocs/OCS_PORT/OCS_PORT_LIST[simplex_port_id=9A]/config_status", str("normal")))), code: codes.InvalidArgument, says: "1A to 8A"},
		{r: of("switch-3", set(up(path, doc(`{"a_side":"1A","b_side":"9B"}`)))), code: codes.InvalidArgument, says: "1A to 8A and 1B to 8B"},
		{r: of("switch-3", set(up(path, doc(`{"a_side":"1A","b_side":"3B"}`)))), code: codes.InvalidArgument, says: "that of its ports"},
		{r: of("switch-3", set(up(path, doc(`{"a_side":"1A"}`)))), code: codes.InvalidArgument, says: "1A-2B"},
		{r: of("switch-3", set(up(path, doc(`{"a_side":"1A","b_side":2}`)))), code: codes.InvalidArgument, says: "2 of b_side (limit: string)"},
		{r: of("switch-3", set(up(path, circuit), up(strings.Replace(path, "1A", "3A", 1), doc(`{"a_side":"3A","b_side":"2B"}`)))), code: codes.InvalidArgument, says: "port 2B is in 1A-2B and in 3A-2B"},
		{r: of("switch-3", set(up(path, circuit), up(port+"/config_status", str("normal")))), code: codes.InvalidArgument, says: "circuits of one switch"},
		{r: of("switch-3", del(path+"/a_side")), code: codes.InvalidArgument, says: "a whole circuit"},
		{r: of("switch-3", del(strings.Replace(path, "1A", "x", 1))), code: codes.InvalidArgument, says: "that of its ports"},
	} {
		s.acts = nil
		_, err := c.Set(t.Context(), x.r)
		if e := status.Convert(err); e.Code() != x.code || !strings.Contains(e.Message(), x.says) {
			t.Errorf("%v: %v: %q, want %v with %q", x.r, e.Code(), e.Message(), x.code, x.says)
		}
		if x.code != codes.OK {
			if len(s.acts) > 0 {
				t.Errorf("%v: refused, and asked for", x.r)
			}
			continue
		}
		x.act.Bundle, x.act.Author = -1, "loopback"
		if len(s.acts) != 1 || !reflect.DeepEqual(s.acts[0], x.act) {
			t.Errorf("%v: asked for %+v, want %+v", x.r, s.acts, x.act)
		}
		s.role, s.acts = x.act.Needs()-1, nil
		if _, err := c.Set(t.Context(), x.r); status.Code(err) != codes.PermissionDenied || len(s.acts) > 0 {
			t.Errorf("%v by one without the role: %v", x.r, err)
		}
		s.role = proto.RoleAdmin
	}
}

// Goal: a switch is a target of its own, in SONiC's words, and nothing of it is among the
// fabric's. Method: Get of the target against the size of the core; the fabric's whole tree.
func TestSwitchIsATarget(t *testing.T) {
	c, _, _ := served(t)
	got, err := c.Get(t.Context(), &pb.GetRequest{Prefix: &pb.Path{Target: "switch-3"}, Path: []*pb.Path{{}}, Encoding: pb.Encoding_PROTO})
	if err != nil {
		t.Fatal(err)
	}
	x := tree{}
	x.take(got.GetNotification()[0])
	if n := len(x); n != 2*8*2 || strings.ReplaceAll(x["/sonic-ocs/OCS_PORT/OCS_PORT_LIST[8B]/config_status"], ": ", ":") != `string_val:"normal"` {
		t.Errorf("%d leaves: %v", n, x)
	}
	doc, err := c.Get(t.Context(), &pb.GetRequest{Prefix: &pb.Path{Target: "switch-3"}, Path: []*pb.Path{at("sonic-ocs/OCS_PORT")}, Encoding: pb.Encoding_JSON_IETF})
	if err != nil || !strings.Contains(string(doc.GetNotification()[0].GetUpdate()[0].GetVal().GetJsonIetfVal()), `{"sonic-ocs:OCS_PORT_LIST":[{"config_status":"normal","simplex_port_id":"`) {
		t.Errorf("%v, %v", doc, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	rpc, err := c.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := subscribe(pb.SubscriptionList_STREAM, pb.SubscriptionMode_SAMPLE, pb.Encoding_PROTO, "sonic-ocs")
	r.GetSubscribe().Prefix = &pb.Path{Target: "switch-3"}
	if err := rpc.Send(r); err != nil {
		t.Fatal(err)
	}
	x = tree{}
	until(t, rpc, x, nil)
	if len(x) != 2*8*2 {
		t.Errorf("%d leaves by stream", len(x))
	}
	until(t, rpc, tree{}, func(n *pb.Notification) bool { return n.GetPrefix().GetTarget() == "switch-3" }) // it goes on
	if rpc, err = c.Subscribe(ctx); err != nil {
		t.Fatal(err)
	}
	of := r.GetSubscribe().Subscription[0]
	if of.SuppressRedundant, of.HeartbeatInterval = true, uint64(time.Second); rpc.Send(r) != nil {
		t.Fatal("not sent")
	}
	until(t, rpc, tree{}, nil)
	told := 0
	until(t, rpc, tree{}, func(n *pb.Notification) bool { // nothing changes, and all is told again
		told += len(n.GetUpdate())
		return told == 3*2*8*2
	})
	for p := range once(t, c, "*") { // any order: none
		if strings.HasPrefix(p, "/sonic") {
			t.Errorf("%s of the fabric", p)
		}
	}
}

// Goal: records are served where a path names those of one node, by Get and ONCE, all pages
// of both lengths; they are no part of anything else.
func TestRecordsAreAskedFor(t *testing.T) {
	c, s, _ := served(t)
	x := once(t, c, "fabric/nodes/node[id=7]/records")
	const at0 = "/fabric/nodes/node[7]/records/record[tx_power 15m 2027-01-15T08:00:00Z]/state/min"
	if len(x) != 3*10 || strings.ReplaceAll(x[at0], ": ", ":") != "int_val:-3456" || len(s.acts) != 3 || s.acts[2].Node != 7 || !s.acts[2].Bins.Days {
		t.Errorf("%d leaves, %d asked: %v", len(x), len(s.acts), x)
	}
	got, err := c.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at("fabric/nodes/node[id=7]/records")}, Encoding: pb.Encoding_JSON_IETF})
	if err != nil || !strings.Contains(string(got.GetNotification()[0].GetUpdate()[0].GetVal().GetJsonIetfVal()), `"avg":-3400`) {
		t.Errorf("%v, %v", got, err)
	}
	s.acts = nil
	once(t, c, "*")
	const of = "fabric/switches/switch[id=3]/ports/port[name=5B]/records"
	if x := once(t, c, of); !strings.Contains(x["/fabric/switches/switch[3]/ports/port[5B]/records/record[tx_power 1d 2027-01-15T08:00:00Z]/state/min"], "-3456") || len(s.acts) == 0 || s.acts[0].Node != proto.FirstSwitch+3 || s.acts[0].Bins.Place != 9 {
		t.Errorf("of a port: %v, asked %+v", x, s.acts)
	}
	s.acts = nil
	for _, bad := range []string{"fabric/nodes/node/records", "fabric/nodes/node[id=*]/records", "fabric/switches/switch/ports/port[name=5B]/records", "fabric/switches/switch[id=3]/ports/port/records", "fabric/switches/switch[id=3]/ports/port[name=5C]/records",
		"fabric/switches/switch[id=x]/ports/port[name=5B]/records"} {
		if _, err := c.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at(bad)}}); status.Code(err) != codes.InvalidArgument || len(s.acts) > 0 {
			t.Errorf("%s: %v; %d asked", bad, err, len(s.acts))
		}
	}
	if len(s.acts) > 0 {
		t.Errorf("asked %+v", s.acts)
	}
	s.lies = func(page uint64) uint64 { return page }
	if x := once(t, c, of); len(x) != 2*10 {
		t.Errorf("of an agent that goes round: %v", x)
	}
	s.lies = func(page uint64) uint64 { return page + 1 }
	if _, err := c.Get(t.Context(), &pb.GetRequest{Path: []*pb.Path{at(of)}}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("of an agent that has no last page: %v", err)
	}
}

// FuzzRequests: whatever comes is answered or refused, and never breaks the planner; a
// refused Set has asked for nothing.
func FuzzRequests(f *testing.F) {
	for _, m := range []wire.Message{
		&pb.GetRequest{Path: []*pb.Path{at("fabric/nodes/node[id=7]"), at("*"), {}}, Encoding: pb.Encoding_JSON_IETF},
		&pb.GetRequest{Prefix: &pb.Path{Target: "switch-3"}, Path: []*pb.Path{at("sonic-ocs/OCS_PORT")}, Encoding: pb.Encoding_JSON},
		&pb.SetRequest{Update: []*pb.Update{{Path: at("fabric/nodes/node[id=7]/config"), Val: jsonValue([]byte(`{"drained":true}`), pb.Encoding_JSON)}}},
		&pb.SetRequest{Prefix: &pb.Path{Target: "switch-3"}, Delete: []*pb.Path{at("sonic-ocs/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST[cross_connect_id=1A-2B]")}},
		&pb.SetRequest{Update: []*pb.Update{{Path: at("fabric/nodes/node[id=7]/sides/side[name=left]/config/request"), Val: &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: "lockout"}}}}},
	} {
		raw, err := wire.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	_, s, srv := served(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var g pb.GetRequest
		if wire.Unmarshal(raw, &g) == nil {
			if r, err := srv.Get(t.Context(), &g); err == nil {
				if _, err := wire.Marshal(r); err != nil && utf8.Valid(raw) {
					t.Errorf("what Get answers does not encode: %v", err)
				}
			}
		}
		var set pb.SetRequest
		s.acts = nil
		if wire.Unmarshal(raw, &set) == nil {
			if _, err := srv.Set(t.Context(), &set); (err == nil) != (len(s.acts) == 1) {
				t.Errorf("%v: %v, and %d acts", &set, err, len(s.acts))
			}
		}
		st := &stream{s: srv}
		var list pb.SubscriptionList
		if wire.Unmarshal(raw, &list) == nil {
			_ = st.read(&list)
		}
	})
}

// Goal: what is encoded once for many is what each would be told, and takes a bounded room,
// none where nobody shares it. Method: an audience of one and of two, messages small and large.
func TestWhatIsSharedIsBounded(t *testing.T) {
	for _, x := range []struct{ streams, bytes, made int }{{1, 100, 200}, {2, 100, 100}, {2, keptBytes / 2, 100}, {2, 2 * keptBytes, 200}} {
		a, made := &audience{}, 0
		a.streams.Store(int32(x.streams))
		for n := range uint64(100) {
			var first said
			for range 2 {
				raw, err := a.tell(n, func() *pb.SubscribeResponse {
					made++
					return response(&pb.Notification{Atomic: true, Timestamp: int64(n), Delete: []*pb.Path{{Target: strings.Repeat("x", x.bytes)}}})
				})
				if err != nil || first != nil && string(raw) != string(first) {
					t.Errorf("%+v: %d bytes, then %d: %v", x, len(first), len(raw), err)
				}
				first = raw
			}
			kept := 0
			for i := range a.said {
				kept += len(a.said[i].raw)
			}
			if kept > keptBytes || kept != a.bytes {
				t.Fatalf("%+v: %d bytes are kept, counted as %d", x, kept, a.bytes)
			}
		}
		if made != x.made {
			t.Errorf("%+v: encoded %d times", x, made)
		}
	}
}

// Goal: what one look found is one message, its events another, each entry once in it, with
// what is gone and of one device alone. Method: records by hand, as a stream says them.
func TestWhatIsToldTogether(t *testing.T) {
	of := func(kind kinds, device, key string) *entry {
		e := newEntry(kind, key, 7, elems("fabric/nodes"), []*pb.PathElem{item("node", "id", key)}).set("state/online", true)
		e.device = device
		return e
	}
	a, b, c, ev, other := of(ofNodes, "", "1"), of(ofNodes, "", "2"), of(ofNodes, "", "3"), of(ofEvents, "", "9"), of(ofSwitches, "switch-3", "4")
	list := []record{{is: a}, {was: b}, {was: c, is: c}, {is: a, again: true}, {is: ev}, {was: other}, {is: other, again: true}, {is: b, look: 1}, {was: c, look: 1}}
	sub := subscription{asked: asked{elems: elems("fabric")}}
	st := &stream{s: &Server{facts: facts{now: time.Now}}, as: pb.Encoding_PROTO}
	var sizes []int
	for rest := list; len(rest) > 0; rest = rest[sizes[len(sizes)-1]:] {
		sizes = append(sizes, together(rest))
		st.changed([]subscription{sub}, rest[:sizes[len(sizes)-1]])
	}
	if want := []int{3, 1, 1, 1, 1, 2}; !slices.Equal(sizes, want) {
		t.Errorf("messages of %v records, want %v", sizes, want)
	}
	n := st.changed([]subscription{sub}, list[:3]).GetUpdate()
	if words(n.GetPrefix().GetElem()) != "fabric/nodes" || len(n.Update) != 1 || len(n.Delete) != 1 || n.Delete[0].GetElem()[0].GetKey()["id"] != "2" || n.GetTimestamp() != 7 {
		t.Errorf("%v", n)
	}
}
