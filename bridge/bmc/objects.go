package main

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/godbus/dbus/v5"
)

// What OpenBMC calls things: phosphor-dbus-interfaces.
const (
	inventory = "/xyz/openbmc_project/inventory"
	sensors   = "/xyz/openbmc_project/sensors"
	alarms    = "/dev/ringlight/alarm"
	root      = inventory + "/system/board/ringlight"

	item        = "xyz.openbmc_project.Inventory.Item"
	adapter     = item + ".FabricAdapter"
	board       = item + ".Board" // bmcweb's sensors are those of a chassis or a board
	cable       = item + ".Cable"
	port        = "xyz.openbmc_project.Inventory.Connector.Port"
	operational = "xyz.openbmc_project.State.Decorator.OperationalStatus"
	available   = "xyz.openbmc_project.State.Decorator.Availability"
	associated  = "xyz.openbmc_project.Association.Definitions"
	value       = "xyz.openbmc_project.Sensor.Value"
	warning     = "xyz.openbmc_project.Sensor.Threshold.Warning"
	critical    = "xyz.openbmc_project.Sensor.Threshold.Critical"
	ofBundle    = "dev.ringlight.Bundle"
	ofAlarm     = "dev.ringlight.Alarm"
)

// objects are all that is shown: by path, interface and property.
type (
	properties map[string]any
	interfaces map[string]properties
	objects    map[dbus.ObjectPath]interfaces
)

// association is one of Association.Definitions: what the other end is to this, what this
// is to the other end, and the other end.
type association struct{ Forward, Reverse, Endpoint string }

func (o objects) item(path, name string, present, functional bool, more interfaces) {
	x := interfaces{item: {"PrettyName": name, "Present": present}, operational: {"Functional": functional}}
	maps.Copy(x, more)
	o[dbus.ObjectPath(path)] = x
}

// sensor is one with bounds; NaN: there is none.
func (o objects) sensor(path, unit, of string, is, low, high, warnLow, warnHigh, least, most float64) {
	known := !math.IsNaN(is)
	o[dbus.ObjectPath(path)] = interfaces{
		value: {"Value": is, "Unit": value + ".Unit." + unit, "MinValue": least, "MaxValue": most},
		warning: {"WarningLow": warnLow, "WarningHigh": warnHigh,
			"WarningAlarmLow": is < warnLow, "WarningAlarmHigh": is > warnHigh},
		critical: {"CriticalLow": low, "CriticalHigh": high,
			"CriticalAlarmLow": is < low, "CriticalAlarmHigh": is > high},
		available: {"Available": known}, operational: {"Functional": known},
		associated: {"Associations": []association{{"inventory", "sensors", of}, {"chassis", "all_sensors", root}}},
	}
}

// watts of a level in thousandths of a dBm, lowered by some dB.
func watts(mdbm *int32, lower float64) float64 {
	if mdbm == nil {
		return math.NaN()
	}
	return math.Pow(10, (float64(*mdbm)/1000-lower)/10) / 1000
}

// show makes the objects of a status; of none those of before, none of which works or is
// known.
func show(s *status) objects {
	o := objects{}
	none := math.NaN()
	up := func(b int) bool {
		return !slices.ContainsFunc(s.Reported.Alarms, func(a alarm) bool { return a.Bundle == b && a.Severity > 0 })
	}
	all := true
	for _, b := range s.Bundles {
		name := fmt.Sprintf("%s/bundle%d", root, b.Bundle)
		well := b.Ready && up(b.Bundle)
		all = all && well
		o.item(name, fmt.Sprintf("Bundle %d", b.Bundle), true, well, interfaces{
			ofBundle: {"Path": b.Path, "State": b.State, "Machine": b.Machine, "Reason": b.Reason}})
		for _, path := range []string{"external1", "external2"} {
			lit := slices.Contains(b.Lit, path)
			to := []association{{"connected_to", "connecting", root}}
			o.item(name+"_"+path, fmt.Sprintf("Bundle %d %s", b.Bundle, path), true, well && (b.Path != path || b.State == "tuned"), interfaces{
				port: {}, associated: {"Associations": to}})
			o.item(name+"_"+path+"_cable", fmt.Sprintf("Fibre of bundle %d %s", b.Bundle, path), lit, lit, interfaces{
				cable:      {"Length": none, "CableTypeDescription": "optical"},
				associated: {"Associations": []association{{"upstream_resource", "attached_cables", root}}}})
		}
		o.sensor(fmt.Sprintf("%s/power/ringlight_bundle%d_light", sensors, b.Bundle), "Watts", name, watts(b.Measured, 0),
			watts(b.Expected, failDecibel), none, watts(b.Expected, degradeDecibel), none, 0, 0.1)
	}
	for _, x := range s.Samples {
		if x.Sensor != sensorCase {
			continue
		}
		name := fmt.Sprintf("%s/bundle%d_module%d", root, x.Bundle, x.Module)
		is := float64(x.Value)/1000 - 273.15
		o.item(name, fmt.Sprintf("Bundle %d module %d", x.Bundle, x.Module), true, is <= hotCelsius, nil)
		o.sensor(fmt.Sprintf("%s/temperature/ringlight_bundle%d_module%d", sensors, x.Bundle, x.Module), "DegreesC", name, is,
			none, hotCelsius, none, warmCelsius, -40, 125)
	}
	for i, a := range s.Reported.Alarms {
		o[dbus.ObjectPath(fmt.Sprintf("%s/%d", alarms, i))] = interfaces{ofAlarm: {
			"Text": a.Text, "Severity": []string{"info", "warning", "critical"}[min(max(a.Severity, 0), 2)], "Bundle": int32(a.Bundle), "SinceMicros": a.SinceMicros}}
	}
	o.item(root, fmt.Sprintf("Ringlight %s node %d", s.Fabric, s.Reported.Node), true, all, interfaces{adapter: {}, board: {}})
	return o
}

// silent are the objects of before when the agent does not answer: nothing is known.
func silent(was objects) objects {
	o := objects{}
	for path, x := range was {
		o[path] = interfaces{}
		for iface, props := range x {
			o[path][iface] = properties{}
			for name, v := range props {
				switch name {
				case "Functional", "Available", "WarningAlarmLow", "WarningAlarmHigh", "CriticalAlarmLow", "CriticalAlarmHigh":
					v = false
				case "Value":
					v = math.NaN()
				}
				o[path][iface][name] = v
			}
		}
	}
	return o
}
