package gnmi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// kinds are the parts of the tree that are looked at by themselves.
type kinds uint16

const (
	ofFabric kinds = 1 << iota
	ofNodes
	ofRings
	ofLinks
	ofEvents
	ofAlarms
	ofOptics
	ofJobs
	ofSwitches // each a target of its own
	ofRecords  // of a node, which its agent is asked for
	maxKinds   = iota
)

// parts say where the entries of a kind are.
var parts = []struct {
	kind kinds
	path []*pb.PathElem
}{
	{ofFabric, elems("fabric/state")}, {ofNodes, elems("fabric/nodes")}, {ofRings, elems("fabric/rings")}, {ofLinks, elems("fabric/links")},
	{ofEvents, elems("fabric/events")}, {ofAlarms, elems("fabric/alarms")}, {ofOptics, elems("components")}, {ofJobs, elems("fabric/jobs")},
}

// kindsOf are those that a path may lead to.
func kindsOf(query []*pb.PathElem) (k kinds) {
	for _, p := range parts {
		if covers(query, p.path) {
			k |= p.kind
		}
	}
	return k
}

const (
	// page is how many nodes, rings or fibres are copied between two steps of the planner:
	// some 200 us.
	page = 128
	// keptEvents are those of the tree. chosen: what a collector that was away for a while
	// wants to know; ocsctl why reads the rest.
	keptEvents = 1024
)

// Source is the planner that is served.
type Source interface {
	// Read runs f in the planner's goroutine between two of its steps.
	Read(ctx context.Context, f func(*planner.Planner)) error
	// Ask does what an operator asks for.
	Ask(ctx context.Context, q proto.OpRequest) (*proto.OpReply, error)
}

// facts makes entries of what a planner knows.
type facts struct {
	source Source
	now    func() time.Time
}

// all gives every entry of the kinds, those alone that a path may cover where there is one.
func (f facts) all(ctx context.Context, k kinds, query []*pb.PathElem, devices []string, give func(*entry)) error {
	var fab *fabric.Fabric
	if err := f.source.Read(ctx, func(p *planner.Planner) { fab = p.Fabric }); err != nil {
		return err
	}
	if k&(ofNodes|ofOptics) != 0 {
		ids := make([]proto.NodeID, fab.Nodes)
		for i := range ids {
			ids[i] = proto.NodeID(i)
		}
		if id, only := one(query, "node", "id"); only && k&ofOptics == 0 {
			ids = slices.DeleteFunc(ids, func(n proto.NodeID) bool { return strconv.Itoa(int(n)) != id })
		}
		if err := f.nodes(ctx, k, ids, give); err != nil {
			return err
		}
	}
	if k&ofRings != 0 {
		if err := f.rings(ctx, nil, give); err != nil {
			return err
		}
	}
	if k&ofLinks != 0 {
		if err := f.links(ctx, fab.AllFibres(), give); err != nil {
			return err
		}
	}
	for _, d := range devices {
		v, err := f.view(ctx, d)
		if err != nil {
			return err
		}
		f.device(d, v, give)
	}
	if k&ofJobs != 0 {
		if err := f.jobs(ctx, give); err != nil {
			return err
		}
	}
	return f.few(ctx, k, give)
}

// one is the value of a key in a path, where it has one that is no *.
func one(query []*pb.PathElem, list, key string) (string, bool) {
	for _, e := range query {
		if v, ok := e.GetKey()[key]; ok && e.GetName() == list {
			return v, v != "*"
		}
	}
	return "", false
}

// few gives what is not many.
func (f facts) few(ctx context.Context, k kinds, give func(*entry)) error {
	if k&ofEvents != 0 {
		if err := f.events(ctx, 0, give); err != nil {
			return err
		}
	}
	if k&(ofFabric|ofAlarms) == 0 {
		return nil
	}
	var o planner.Overview
	var fab *fabric.Fabric
	var last uint64
	var alarms []proto.AlarmStatus
	err := f.source.Read(ctx, func(p *planner.Planner) {
		o, fab, last = p.Overview(), p.Fabric, planner.Last(p)
		if k&ofAlarms != 0 {
			alarms = p.Alarms.List()
		}
	})
	if err == nil && k&ofFabric != 0 {
		give(newEntry(ofFabric, "fabric", f.at(), elems("fabric")).
			set("state/name", fab.Name).set("state/term", wide(o.Term)).set("state/generation", wide(o.Generation)).
			set("state/nodes", uint64(fab.Nodes)).set("state/online", uint64(o.Online)).set("state/pending", uint64(o.Pending)).set("state/spares", uint64(o.Spares)).
			set("state/rings", uint64(o.Rings)).set("state/in-service", uint64(o.InService)).set("state/degraded", uint64(o.Degraded)).
			set("state/links", uint64(o.LinksTotal)).set("state/links-confirmed", uint64(o.LinksConfirmed)).set("state/events", wide(last)))
	}
	for i := range alarms {
		a := &alarms[i]
		give(newEntry(ofAlarms, "alarm "+a.ID, f.at(), elems("fabric/alarms"), []*pb.PathElem{item("alarm", "id", a.ID)}).
			set("state/id", a.ID).set("state/severity", a.Severity.String()).setIf(a.SinceMillis != 0, "state/since", wide(a.SinceMillis)).
			set("state/check", a.Check).set("state/subject", a.Subject).set("state/what", a.What).setIf(a.Why != "", "state/why", a.Why).
			setIf(a.Remedy != "", "state/remedy", a.Remedy).set("state/acknowledged", a.AckMillis != 0).set("state/service-affecting", a.ServiceAffecting))
	}
	return err
}

func (f facts) at() int64 { return f.now().UnixNano() }

// events gives those after a number, the kept ones alone, and the last number that there is.
func (f facts) events(ctx context.Context, after uint64, give func(*entry)) error {
	var list []planner.Entry
	err := f.source.Read(ctx, func(p *planner.Planner) {
		if last := planner.Last(p); last > after+keptEvents {
			after = last - keptEvents
		}
		list = planner.Entries(p, after+1, keptEvents)
	})
	for i := range list {
		x := &list[i]
		l := x.Line()
		number := strconv.FormatUint(x.Seq, 10)
		give(newEntry(ofEvents, eventKey(x.Seq), int64(x.Millis)*int64(time.Millisecond), elems("fabric/events"), []*pb.PathElem{item("event", "number", number)}).
			set("state/number", wide(x.Seq)).set("state/time", wide(x.Millis)).set("state/place", l.Place()).setIf(l.Rule != "", "state/rule", l.Rule).
			set("state/cause", l.Cause.String()).setIf(l.Gen != 0, "state/generation", wide(l.Gen)).set("state/text", l.Sentence()))
	}
	return err
}

func eventKey(number uint64) string { return "event " + strconv.FormatUint(number, 10) }

// nodes gives nodes, or their optics, or both.
func (f facts) nodes(ctx context.Context, k kinds, ids []proto.NodeID, give func(*entry)) error {
	for ids := range slices.Chunk(ids, page) {
		var all []proto.NodeStatus
		var read [][]proto.Sample
		if err := f.source.Read(ctx, func(p *planner.Planner) {
			all = p.Rings.Placed.Shown(ids...)
			for i := range all {
				read = append(read, p.Rings.Agenda.ReadingsOf(all[i].Node))
			}
		}); err != nil {
			return err
		}
		for i := range all {
			if k&ofNodes != 0 {
				f.node(&all[i], give)
			}
			if k&ofOptics != 0 {
				f.optics(&all[i], read[i], give)
			}
		}
	}
	return nil
}

func (f facts) node(s *proto.NodeStatus, give func(*entry)) {
	id, at := strconv.Itoa(int(s.Node)), f.at()
	path := slices.Concat(elems("fabric/nodes"), []*pb.PathElem{item("node", "id", id)})
	e := newEntry(ofNodes, "node "+id, at, path).set("state/id", uint64(s.Node)).setIf(s.Name != "", "state/name", s.Name).
		set("state/online", s.Online).set("state/mode", s.Mode.String()).set("state/usable", s.Usable).setIf(s.Reason != "", "state/reason", s.Reason).
		setIf(s.Ring != 0, "state/ring", uint64(s.Ring)).set("state/want", wide(s.Want)).set("state/generation", wide(s.Generation))
	e.set("config/id", uint64(s.Node)).set("config/drained", s.Drain != nil).setIf(s.Drain != nil && s.Drain.Reason != "", "config/reason", reasonOf(s.Drain))
	give(e)
	r := s.Reported
	if r == nil {
		return
	}
	e.set("state/alarms", uint64(len(r.Alarms)))
	for i := range r.Bundles {
		b := &r.Bundles[i]
		give(newEntry(ofNodes, fmt.Sprintf("bundle %s/%d", id, b.Bundle), at, path, elems("bundles"), []*pb.PathElem{item("bundle", "id", strconv.Itoa(int(b.Bundle)))}).
			set("state/id", uint64(b.Bundle)).set("state/path", b.Path.String()).set("state/path-state", b.State.String()).set("state/override", b.Override.String()).
			set("state/cause", b.Cause.String()).setIf(b.Measured != proto.NoPower, "state/measured", decimal{int64(b.Measured), 3}).
			setIf(b.Expected != proto.NoPower, "state/expected", decimal{int64(b.Expected), 3}).
			set("state/losses", uint64(b.Flaps)).set("state/calibrated", b.Calibration != proto.Digest{}))
	}
	for i := range r.Sides {
		x := &r.Sides[i]
		name := x.Side.String()
		give(newEntry(ofNodes, sideKey(s.Node, x.Side), at, path, elems("sides"), []*pb.PathElem{item("side", "name", name)}).
			set("state/name", name).set("state/side-state", x.State.String()).setIf(x.Current >= 0, "state/peer", uint64(x.Peer)).
			set("state/bypassed", x.Current >= 0 && int(x.Current) != int(x.Working)).set("state/request", x.Request.String()).
			set("config/name", name).set("config/request", byHand(x.Request).String()).setIf(byHand(x.Request) != proto.NoRequest && x.Current >= 0, "config/peer", uint64(x.Peer)))
	}
}

func reasonOf(d *proto.DrainNote) string {
	if d == nil {
		return ""
	}
	return d.Reason
}

// byHand is a request where an operator made it.
func byHand(r proto.Request) proto.Request {
	if r == proto.ManualSwitch || r >= proto.ForcedSwitch {
		return r
	}
	return proto.NoRequest
}

func sideKey(id proto.NodeID, s proto.Side) string { return fmt.Sprintf("side %d/%s", id, s) }

// optics are a node and its bundles as OpenConfig has components. Of a bundle's modules the
// planner keeps the worst: the warmest, the least light.
func (f facts) optics(s *proto.NodeStatus, read []proto.Sample, give func(*entry)) {
	name, at := "node-"+strconv.Itoa(int(s.Node)), f.at()
	status := map[bool]string{true: "openconfig-platform-types:ACTIVE", false: "openconfig-platform-types:INACTIVE"}
	give(newEntry(ofOptics, name, at, elems("components"), []*pb.PathElem{item("component", "name", name)}).
		set("state/name", name).set("state/type", "openconfig-platform-types:CHASSIS").setIf(s.Name != "", "state/description", s.Name).
		set("state/oper-status", status[s.Online]))
	if s.Reported == nil {
		return
	}
	for i := range s.Reported.Bundles {
		b := &s.Reported.Bundles[i]
		of := fmt.Sprintf("%s/bundle-%d", name, b.Bundle)
		path := slices.Concat(elems("components"), []*pb.PathElem{item("component", "name", of)})
		e := newEntry(ofOptics, of, at, path).set("state/name", of).set("state/type", "openconfig-platform-types:TRANSCEIVER").set("state/parent", name).
			set("state/description", "modules that switch together; the worst reading of each kind").set("state/oper-status", status[b.State.Lit()]).
			set("transceiver/state/enabled", b.Override != proto.PoweredOff)
		var channels [2]*entry
		for c := range channels {
			channels[c] = newEntry(ofOptics, fmt.Sprintf("%s/%d", of, c), at, path, elems("transceiver/physical-channels"), []*pb.PathElem{item("channel", "index", strconv.Itoa(c))}).set("state/index", uint64(c))
		}
		for _, r := range read {
			if r.Bundle != b.Bundle {
				continue
			}
			power := decimal{int64(r.Value) / 10, 2}
			switch r.Sensor {
			case proto.SensorCase:
				e.set("state/temperature/instant", decimal{(int64(r.Value) - 273_150) / 100, 1})
			case proto.SensorTxTap:
				channels[0].set("state/output-power/instant", power)
			case proto.SensorUpperPath:
				channels[0].set("state/input-power/instant", power)
			case proto.SensorLowerPath:
				channels[1].set("state/input-power/instant", power)
			case proto.SensorUpperBias, proto.SensorLowerBias:
				channels[r.Sensor-proto.SensorUpperBias].set("state/laser-bias-current/instant", power)
			}
		}
		give(e)
		for _, c := range channels {
			give(c)
		}
	}
}

// rings gives some, or nil: all.
func (f facts) rings(ctx context.Context, ids []proto.RingID, give func(*entry)) error {
	var all []proto.RingStatus
	if err := f.source.Read(ctx, func(p *planner.Planner) {
		if ids == nil {
			all = p.Rings.Placed.Statuses()
		}
		for _, id := range ids {
			if r := p.Rings.Placed.Ring(id); r != nil {
				all = append(all, *r)
			}
		}
	}); err != nil {
		return err
	}
	for i := range all {
		r := &all[i]
		id := strconv.Itoa(int(r.Ring))
		give(newEntry(ofRings, ringKey(r.Ring), f.at(), elems("fabric/rings"), []*pb.PathElem{item("ring", "id", id)}).
			set("state/id", uint64(r.Ring)).set("state/ring-state", r.State.String()).set("state/generation", wide(r.Generation)).set("state/node", listOf(r.Nodes)).
			set("state/gpus", uint64(r.GPUs)).set("state/links", uint64(r.Links)).set("state/links-confirmed", uint64(r.LinksConfirmed)).setIf(r.Job != "", "state/job", r.Job))
	}
	return nil
}

func ringKey(id proto.RingID) string { return "ring " + strconv.Itoa(int(id)) }

func (f facts) links(ctx context.Context, fibres []fabric.Fibre, give func(*entry)) error {
	for fibres := range slices.Chunk(fibres, page) {
		var all []proto.LinkStatus
		if err := f.source.Read(ctx, func(p *planner.Planner) {
			for i := range fibres {
				if nodes := p.Fabric.Nodes; int(max(fibres[i].A.Node, fibres[i].B.Node)) < nodes { // it may be another one by now
					all = append(all, p.Rings.Evidence.LinkOf(&fibres[i]))
				}
			}
		}); err != nil {
			return err
		}
		for i := range all {
			l := &all[i]
			give(newEntry(ofLinks, "link "+l.Fibre, f.at(), elems("fabric/links"), []*pb.PathElem{item("link", "fibre", l.Fibre)}).
				set("state/fibre", l.Fibre).set("state/link-state", l.State.String()).setIf(l.Ring != 0, "state/ring", uint64(l.Ring)).
				setIf(l.SinceMillis != 0, "state/since", wide(l.SinceMillis)).
				set("state/a-node", uint64(l.A.Node)).set("state/a-bundle", uint64(l.A.Bundle)).set("state/a-path", l.A.Path.String()).
				set("state/b-node", uint64(l.B.Node)).set("state/b-bundle", uint64(l.B.Bundle)).set("state/b-path", l.B.Path.String()))
		}
	}
	return nil
}
