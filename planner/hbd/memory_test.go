package hbd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"ringlight/planner/member"
	"ringlight/proto"
)

// Goal: what a node takes whose agent says what agents of boards do, at first and when all agents have been
// started again.
// Method: every node is told its ring as a generation has it, reports that with calibrations, light and times, and sends
// telemetry, the worst of 13 sensors, all drawn at random as in 'ocs-sim fleet -modules 8'. RINGLIGHT_GROWTH names the
// nodes (make bench-growth).
func TestWhatAgentsSayTakesMemory(t *testing.T) {
	nodes := 2_000
	fmt.Sscan(os.Getenv("RINGLIGHT_GROWTH"), &nodes)
	p := standing(t, nodes, 0)
	p.j.Now, p.j.Life, p.j.Layout = 86_400e9, 1<<63+5, 1<<62+3
	v := voices{p: p, rng: rand.New(rand.NewPCG(1, 2))}
	q := &proposal{pl: p.Placed, rings: p.Placed.rings}
	for i, m := range q.desired(1, 1, func(a, b proto.NodeID) bool { return false }) {
		d := p.Placed.nodes[m.Node].Device
		m.Life, m.Layout, m.Plan = p.j.Life, p.j.Layout, d.Want.Plan
		raw, err := proto.Encode(&m)
		if err != nil {
			t.Fatal(err)
		}
		d.Want.Payload = string(raw)
		v.reports(d, &m.Rings[0])
		v.rests(i)
	}
	first := v.takes(nodes)
	for i := range p.Placed.nodes {
		d := p.Placed.nodes[i].Device
		p.Table.Presence(d, &proto.Presence{Node: d.ID, Session: 2, Online: true})
		if r := d.Whole().Rings; len(r) > 0 {
			v.reports(d, &r[0])
		}
		v.rests(i)
	}
	p.j.Now += 2 * time.Minute
	for i := range p.Placed.nodes {
		v.telemetry(p.Placed.nodes[i].Device)
	}
	again := v.takes(nodes)
	t.Logf("%d nodes take %d bytes each, %d MiB; with agents that were all started again %d, %d MiB", nodes, first/uint64(nodes), first>>20, again/uint64(nodes), again>>20)
	if d := p.Placed.nodes[1].Device; !d.At(*d.Want.Decided) || len(p.Agenda.ReadingsOf(1)) != 13 {
		t.Errorf("%+v, %+v", d.Whole(), p.Agenda.ReadingsOf(1))
	}
	runtime.KeepAlive(p)
}

// voices say what agents do.
type voices struct {
	p   *Rings
	rng *rand.Rand
	seq uint64
}

// rests takes what has changed, as the jobs and the view do.
func (v *voices) rests(i int) {
	if i%4096 == 0 {
		v.p.j.End()
		Claims{v.p}.Touched()
		v.p.Placed.TakeChanges(false)
	}
}

// takes is the memory in use.
func (v *voices) takes(nodes int) uint64 {
	v.p.Table.Sweep(true)
	v.rests(0)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (v *voices) reports(d *member.Device, a *proto.RingAssignment) {
	r := &proto.Reported{Version: proto.Version, Node: d.ID, Session: d.Session, Seq: 6, UptimeMicros: 30e6 + v.rng.Uint64N(86_400e6), Mode: proto.ModeService,
		SeenTerm: 1, Term: 1, Generation: d.Want.Gen, Plan: d.Want.Plan, Rings: []proto.RingAssignment{*a}, LastEvent: 8, SeenLife: v.p.j.Life, Layout: v.p.j.Layout,
		Measured: proto.Envelope{DetectMaxMicros: 125, DetectMinMicros: 35, SwitchMaxMicros: 189, SwitchMinMicros: 66, SkewMicros: 500}}
	sides := [2][]proto.Candidate{a.Left, a.Right}
	for b := range proto.BundleID(3) {
		x := proto.BundleReport{Bundle: b, State: proto.Unproven, SinceMicros: 6e6 + v.rng.Uint64N(20e6), Cause: proto.CauseColdStart, Expected: proto.MilliDBm(8620 - v.rng.IntN(2000)), Lit: 2}
		x.Measured = x.Expected - proto.MilliDBm(v.rng.IntN(40))
		for i := range x.Calibration {
			x.Calibration[i] = byte(v.rng.Uint32())
		}
		for _, list := range sides {
			if len(list) > 0 && list[0].Bundle == b {
				x.Path, x.State = list[0].Path, proto.Tuned
			}
		}
		r.Bundles = append(r.Bundles, x)
	}
	for s, list := range sides {
		x := proto.SideReport{Ring: a.Ring, Side: proto.Side(s), State: proto.SideEnd, Current: -1}
		if len(list) > 0 {
			x.State, x.Current, x.Peer = proto.SideWork, 0, list[0].Peer
		}
		r.Sides = append(r.Sides, x)
	}
	v.p.Table.Reported(d, r, true)
	v.telemetry(d)
}

func (v *voices) telemetry(d *member.Device) {
	v.seq++
	h := &proto.Health{Node: d.ID, Session: d.Session, Seq: v.seq}
	add := func(b proto.BundleID, s proto.Sensor, value int32) {
		h.Samples = append(h.Samples, proto.Sample{Bundle: b, Module: uint8(v.rng.IntN(8)), Sensor: s, Value: value, AgeMillis: uint32(v.rng.IntN(10_000))})
	}
	for b := range proto.BundleID(3) {
		add(b, proto.SensorCase, 313_000+v.rng.Int32N(2000))
		add(b, proto.SensorRail, 2_565_000+v.rng.Int32N(9000))
		add(b, proto.SensorUpperPath, 500+v.rng.Int32N(3000))
		add(b, proto.SensorLowerPath, 100+v.rng.Int32N(3000))
	}
	add(0, proto.SensorTxTap, 7935)
	v.p.Table.Health(d, h)
	v.p.Agenda.Health(h)
}
