package hbd

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// Health telemetry decides nothing: the last of it is kept for people who ask
// why. Of a bundle's modules the worst reading of each sensor is enough, so
// that a node's health is bounded by its bundles.

// reading is the worst of one sensor over the modules of a bundle.
type reading struct {
	bundle proto.BundleID
	sensor proto.Sensor
	module uint8
	value  int32
	at     time.Duration // when it was measured
}

// worse: heat, power and bias are worse when high, light when low.
func worse(s proto.Sensor, a, b int32) bool {
	if s == proto.SensorCase || s == proto.SensorRail || s >= proto.SensorUpperBias {
		return a > b
	}
	return a < b
}

// Health takes a node's telemetry, which replaces what it told of the same
// sensors before. What a former life sent late is dropped.
func (a *agenda) Health(m *proto.Health) {
	n := &a.pl.nodes[m.Node]
	if m.Session != n.Device.Session {
		return
	}
	a.pl.Stamps.node(m.Node)
	var fresh []reading
	for _, s := range m.Samples {
		if int(s.Bundle) >= a.pl.fab.Bundles || s.Sensor > proto.SensorLowerBias {
			continue // nothing that a person could look up
		}
		r := reading{s.Bundle, s.Sensor, s.Module, s.Value, a.j.Now - time.Duration(s.AgeMillis)*time.Millisecond}
		at := slices.IndexFunc(fresh, r.same)
		if at < 0 {
			fresh = append(fresh, r)
		} else if worse(s.Sensor, s.Value, fresh[at].value) {
			fresh[at] = r
		}
	}
	for _, r := range fresh {
		if at := slices.IndexFunc(n.health, r.same); at >= 0 {
			n.health[at] = r
		} else {
			n.health = append(n.health, r)
		}
	}
	_, n.stale = n.boardSilent()
}

// ReadingsOf are the last of a node's readings, of each bundle and sensor the worst.
func (a *agenda) ReadingsOf(id proto.NodeID) (out []proto.Sample) {
	for _, r := range a.pl.nodes[id].health {
		out = append(out, proto.Sample{Bundle: r.bundle, Module: r.module, Sensor: r.sensor, Value: r.value, AgeMillis: uint32((a.j.Now - r.at).Milliseconds())})
	}
	return out
}

func (r reading) same(o reading) bool { return r.bundle == o.bundle && r.sensor == o.sensor }

// healthOf says the last of a bundle's readings, "" when it told none.
func (n *node) healthOf(b proto.BundleID, now time.Duration) string {
	text := ""
	for _, r := range n.health {
		if r.bundle != b {
			continue
		}
		if text != "" {
			text += "; "
		}
		value := proto.MilliDBm(r.value).String()
		switch r.sensor {
		case proto.SensorCase:
			value = fmt.Sprintf("%d.%d degrees C", (r.value-273_150)/1000, max(0, r.value-273_150)%1000/100)
		case proto.SensorRail:
			value = fmt.Sprintf("%d mW", r.value/1000)
		case proto.SensorUpperBias, proto.SensorLowerBias:
			value = fmt.Sprintf("%d.%d mA", r.value/1000, r.value%1000/100)
		}
		text += fmt.Sprintf("%s %s at module %d, %v ago", r.sensor, value, r.module, (now - r.at).Round(time.Second))
	}
	return text
}
