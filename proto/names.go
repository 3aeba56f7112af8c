package proto

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Names of the codes, as people and logs see them. An unknown code stays
// readable as its number.

var verdictNames = [...]string{"none", "commit", "abort"}

func (v Verdict) String() string { return NameOf(verdictNames[:], uint8(v)) }

var verbNames = [...]string{"none", "reannounce", "events", "abort", "host_fault", "host_ok",
	"drain", "undrain", "calibrate", "ack_events", "request", "try", "restart", "bins", "connect", "firmware"}

func (v Verb) String() string { return NameOf(verbNames[:], uint8(v)) }

var phaseNames = [...]string{"none", "prepare", "commit", "command", "protocol"}

func (p Phase) String() string { return NameOf(phaseNames[:], uint8(p)) }

var codeNames = [...]string{"ok", "stale", "conflict", "invalid", "not_staged", "expired",
	"wrong_session", "not_calibrated", "busy", "unsupported", "malformed", "too_large",
	"wrong_version", "wrong_node", "not_found", "hardware_failed", "duplicate", "denied"}

func (c Code) String() string { return NameOf(codeNames[:], uint8(c)) }

// Words are the code at the head of an error for people.
func (c Code) Words() string {
	if c == Expired {
		return "timed out"
	}
	return c.String()
}

var causeNames = [...]string{"none", "plan", "light_lost", "late_light", "go_to_light", "probe",
	"retry", "no_candidate", "host_fault", "host_returned", "own_fault", "adopted", "operator",
	"cold_start", "peer_silent", "restore", "degraded", "remedy"}

func (c Cause) String() string { return NameOf(causeNames[:], uint8(c)) }

// Words are the cause in a sentence.
func (c Cause) Words() string {
	switch c {
	case CauseLateLight:
		return "light came after the deadline"
	case CauseNoCandidate:
		return "no neighbour in reach"
	}
	return strings.ReplaceAll(c.String(), "_", " ")
}

var severityNames = [...]string{"OK", "Warning", "Critical"}

func (s Severity) String() string { return NameOf(severityNames[:], uint8(s)) }

var eventNames = [...]string{"None", "LightLost", "LightFound", "Switched", "Restored", "Closed",
	"Banned", "Isolated", "Returned", "HostFault", "HostOK", "Adopted", "Applied", "",
	"Alarm", "Calibrated", "PathFailed", "BoundNotMet", "SplitBrain", "Started", "LightUnselected", "Request", "Remedy", "JournalNotWritten"}

func (k EventKind) String() string { return NameOf(eventNames[:], uint8(k)) }

// Words are the event's name in a sentence: path failed.
func (k EventKind) Words() string {
	switch k {
	case EvHostOK:
		return "host recovered"
	case EvLightUnselected:
		return "light on the standby fibre"
	}
	return strings.ReplaceAll(k.Slug(), "-", " ")
}

// Slug is the event's name in an address: path-failed.
func (k EventKind) Slug() string {
	return strings.ReplaceAll(documentedName(k.String()), "_", "-")
}

// registry is the Redfish message registry of the events.
const registry = "Ringlight.1.0."

// MessageID is the event's name in the Redfish style: Registry.Major.Minor.Key.
func (k EventKind) MessageID() string { return registry + k.String() }

// Words are the mode in a sentence: what a newcomer understands.
func (m Mode) Words() string {
	if m == ModeUnplanned {
		return "no planner contact"
	}
	return strings.ReplaceAll(m.String(), "_", " ")
}

// Count says how many there are of something: 1 ring, 2 rings.
func Count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"):
		noun += "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey") && !strings.HasSuffix(noun, "ay"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Nodes names some and says what they do: node 3 joins, nodes 3, 4 and 7 join.
func Nodes(ids []NodeID, one, several string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("node %d %s", ids[0], one)
	}
	text := "nodes "
	for i, id := range ids {
		switch {
		case i == 0:
		case i == len(ids)-1:
			text += " and "
		default:
			text += ", "
		}
		text += strconv.FormatUint(uint64(id), 10)
	}
	return text + " " + several
}

// Spell formats a duration for people, in the unit and digits that they would use.
func Spell(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(100 * time.Millisecond).String()
}

// String is the process for people: its host and a short number, since two may
// run on one.
func (c PlannerCopy) String() string {
	short := fmt.Sprintf("%06x", cmp.Or(c.Life, c.Planner)&0xffffff)
	if c.Host == "" {
		return short
	}
	return c.Host + " (" + short + ")"
}

var sensorNames = [...]string{"none", "case", "rail", "upper_path", "lower_path", "tx_tap", "upper_bias", "lower_bias", "serial"}

func (s Sensor) String() string { return NameOf(sensorNames[:], uint8(s)) }

var traceNames = [...]string{"none", "asked", "prepare", "prepared", "decided", "stored", "applied", "confirmed", "switched"}

func (s TraceStage) String() string { return NameOf(traceNames[:], uint8(s)) }

var nounNames = [...]string{"none", "fabric", "nodes", "node", "rings", "ring", "why", "events",
	"drain", "undrain", "host_fault", "host_ok", "request", "core", "circuits", "jobs", "job", "apply", "clear", "tables", "flip",
	"status", "alarms", "ack", "description", "offer", "edit", "trace",
	"rollout", "rollout_stop", "rollout_status",
	"submit", "release", "audit", "quarantine", "lift", "clear_fibre", "links", "routed", "bins", "qualify", "connect", "resumed"}

func (n Noun) String() string { return NameOf(nounNames[:], uint8(n)) }

var packetNames = [...]string{"publish", "subscribe", "unsubscribe", "link_up", "link_down", "refused", "shed"}

func (k PacketKind) String() string { return NameOf(packetNames[:], uint8(k)) }
