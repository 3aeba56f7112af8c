package planner

import (
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/wear"
	"ringlight/proto"
)

// takes is telemetry of a node's lasers on a day: 40 mA and .8 mA more each day.
func takes(id proto.NodeID, life proto.Session, seq uint64, day float64) *proto.Health {
	return &proto.Health{Version: proto.Version, Node: id, Session: life, Seq: seq, Samples: []proto.Sample{
		{Bundle: 1, Module: 2, Sensor: proto.SensorSerial, Value: -7}, {Bundle: 1, Module: 2, Sensor: proto.SensorUpperBias, Value: int32(40_000 + 800*day)}}}
}

// Goal: what ages is in the status, by the limits of the description, over restarts, and gone with
// its node. Method: records as ten days of telemetry leave them; a planner that starts from them takes
// telemetry of the next five hours, and another one starts from what it stored; other limits; an edit
// that takes the node away.
func TestStatusTellsWhatAges(t *testing.T) {
	w := editable(t, fabric.Params{Nodes: 6, K: 2, TP: 16, Spares: 2}, fabric.Params{Nodes: 6, K: 2, TP: 16, Spares: 2})
	const id, key = proto.NodeID(5), wear.Prefix + "0000000005"
	book := &wear.Book{}
	for m := 0; m < 10*24*60; m += 5 {
		if due := book.Take(time.Duration(m)*time.Minute, uint64(m)*60_000, takes(id, 1, uint64(m), float64(m)/1440), func(func(proto.BundleReport) bool) {}); due.Key != "" {
			w.store[due.Key] = due.Value
		}
	}
	w.start()
	w.run(10 * time.Second)
	ages := func() []proto.Ageing { return w.ask(proto.OpRequest{Noun: proto.NounStatus, Bundle: -1}).Status.Ageing }
	check := func(when string, least, most uint32) {
		t.Helper()
		if got := ages(); len(got) != 1 || got[0].Node != id || got[0].Bundle != 1 || got[0].Module != 2 || got[0].What != "laser_bias" || got[0].Days < least || got[0].Days > most {
			t.Errorf("%s: %+v", when, got)
		}
	}
	check("from the store", 14, 16)
	for m := range 5 * 12 {
		w.hear(w.topics.Health(id), proto.TopicHealth, takes(id, w.nodes[id].session, uint64(m+1), 10+float64(m)/288))
		w.run(5 * time.Minute)
	}
	check("five hours later", 13, 15)
	was := len(w.store[key])
	w.start()
	w.run(10 * time.Second)
	check("another planner", 13, 15)
	if was != 5+44 {
		t.Errorf("%d bytes of one line", was)
	}
	to := *w.p.Fabric
	to.Qualify = &fabric.Qualify{BiasPercent: 100, AgeingDays: 365}
	if r := w.edit(&to, false); r.Edit == nil || !r.Edit.Done {
		t.Fatalf("%+v %+v", r, r.Edit)
	}
	check("twice as much allowed", 35, 45)
	to.Qualify = &fabric.Qualify{AgeingDays: 10}
	if r := w.edit(&to, false); r.Edit == nil || !r.Edit.Done || len(ages()) != 0 {
		t.Errorf("out of sight: %+v %+v %+v", r, r.Edit, ages())
	}
	if r := w.edit(w.of(fabric.Params{Nodes: 5, K: 2, TP: 16, Spares: 1}), false); r.Edit == nil || !r.Edit.Done || len(ages()) != 0 || w.store[key] != nil {
		t.Errorf("without the node: %+v %+v %+v", r, r.Edit, ages())
	}
}
