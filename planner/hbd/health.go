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

// telemetry is the worst of each sensor over the modules of each bundle.
type telemetry struct {
	samples []proto.Sample
	at      time.Duration // since when they age
}

var noTelemetry = new(telemetry) // of those that told none

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
	all := slices.DeleteFunc(n.health.aged(a.j.Now), func(o proto.Sample) bool { return slices.ContainsFunc(m.Samples, same(o)) })
	for _, s := range m.Samples {
		if int(s.Bundle) >= a.pl.fab.Bundles || s.Sensor > proto.SensorLowerBias {
			continue // nothing that a person could look up
		}
		if at := slices.IndexFunc(all, same(s)); at < 0 {
			all = append(all, s)
		} else if worse(s.Sensor, s.Value, all[at].Value) {
			all[at] = s
		}
	}
	n.health = &telemetry{all, a.j.Now}
	_, n.stale = n.boardSilent()
}

// ReadingsOf are the last of a node's readings, of each bundle and sensor the worst.
func (a *agenda) ReadingsOf(id proto.NodeID) []proto.Sample {
	return a.pl.nodes[id].health.aged(a.j.Now)
}

// aged is a copy as of now.
func (x *telemetry) aged(now time.Duration) []proto.Sample {
	out := slices.Clone(x.samples)
	for i := range out {
		out[i].AgeMillis += uint32((now - x.at).Milliseconds())
	}
	return out
}

func same(s proto.Sample) func(proto.Sample) bool {
	return func(o proto.Sample) bool { return s.Bundle == o.Bundle && s.Sensor == o.Sensor }
}

// healthOf says the last of a bundle's readings, "" when it told none.
func (n *node) healthOf(b proto.BundleID, now time.Duration) string {
	text := ""
	for _, r := range n.health.aged(now) {
		if r.Bundle != b {
			continue
		}
		if text != "" {
			text += "; "
		}
		value := proto.MilliDBm(r.Value).String()
		switch r.Sensor {
		case proto.SensorCase:
			value = fmt.Sprintf("%d.%d degrees C", (r.Value-273_150)/1000, max(0, r.Value-273_150)%1000/100)
		case proto.SensorRail:
			value = fmt.Sprintf("%d mW", r.Value/1000)
		case proto.SensorUpperBias, proto.SensorLowerBias:
			value = fmt.Sprintf("%d.%d mA", r.Value/1000, r.Value%1000/100)
		}
		text += fmt.Sprintf("%s %s at module %d, %v ago", r.Sensor, value, r.Module, (time.Duration(r.AgeMillis) * time.Millisecond).Round(time.Second))
	}
	return text
}
