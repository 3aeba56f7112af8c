package planner

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/health"
	"ringlight/planner/member"
	"ringlight/proto"
)

// sameFacts looks at what the checks look at, then at all, whatever happened to it. It says how many links are unproven.
func (w *fleet) sameFacts(t *testing.T, step int) int {
	var short, all health.Facts
	w.p.Rings.Evidence.FactsOf(&short)
	devices := w.p.Rings.Table.Devices
	for i := range devices {
		d := &devices[i]
		_, quick := w.p.Alarms.device(w.p.Rings.Table, d)
		notable := d.Notable
		d.Notable = true // it is looked at, whatever happened to it
		if x, tell := w.p.Alarms.device(w.p.Rings.Table, d); tell != quick {
			t.Fatalf("step %d: %t, and something is to be said: %t: %+v", step, quick, tell, x)
		}
		d.Notable = notable
		w.p.Rings.News(member.News{Kind: 255, Device: d, Before: d.Standing()}) // none that there is: it is touched
	}
	if w.p.Rings.Evidence.FactsOf(&all); !reflect.DeepEqual(short, all) {
		t.Fatalf("step %d: %+v, all looked at %+v", step, short, all)
	}
	return all.LinksUnproven
}

// alarms are what stands, as "id" or "id by author".
func (w *fleet) alarms() string {
	var out []string
	for page := uint64(0); ; {
		r := w.ask(proto.OpRequest{Noun: proto.NounAlarms, Bundle: -1, Page: page})
		for _, a := range r.Alarms {
			if a.AckMillis != 0 {
				a.ID += " by " + a.AckAuthor
			}
			out = append(out, a.ID)
		}
		if page = r.Next; page == 0 {
			return strings.Join(out, ", ")
		}
	}
}

func (w *fleet) ack(id string) *proto.OpReply {
	return w.ask(proto.OpRequest{Noun: proto.NounAck, Bundle: -1, Alarm: id, Author: "alice", Reason: "RMA 4711"})
}

// Goal: what is not as it should be stands as an alarm until it is over; who
// says that it is known is remembered, over a restart too, until then, and what
// is raised anew is unknown.
// Method: one node of each trouble in a small fabric; the list after each step.
func TestAlarmsStandUntilTheyAreOver(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.run(time.Second)
	step := func(what, want string) {
		t.Helper()
		w.run(3 * time.Second)
		if got := w.alarms(); got != want {
			t.Errorf("%s: alarms %q, want %q", what, got, want)
		}
	}
	step("all is well", "")
	w.nodes[10].alarms = []proto.Alarm{{Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: 1, SinceMicros: 5, Text: "heater stuck"}}
	w.report(&w.nodes[10])
	step("an agent raises one", "10/1/path-failed")
	if r := w.ack("10/1/path-failed"); r.Code != proto.OK || len(r.Alarms) != 1 || r.Alarms[0].AckReason != "RMA 4711" {
		t.Errorf("%+v", r)
	}
	w.setMode(3, proto.ModeHostDown)
	step("a host is down, a spare in its place", "3/host-down, spares/few, 10/1/path-failed by alice")
	w.offline(4)
	w.setMode(17, proto.ModeDrained)
	step("one is offline, one taken out, which is no alarm", "3/host-down, spares/few, 4/offline, 10/1/path-failed by alice")
	if r := w.ack("4/offline"); r.Code != proto.OK {
		t.Errorf("%+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounStatus, Bundle: -1}).Status; r.Alarms != 3 || r.Acked != 2 ||
		!slices.ContainsFunc(r.Breaks, func(b proto.Break) bool { return strings.HasPrefix(b.Lose, "node ") && b.Rings == 1 }) ||
		!slices.ContainsFunc(r.Breaks, func(b proto.Break) bool { return strings.HasPrefix(b.Lose, "fibre ") }) || r.Nodes != (proto.NodeCounts{Total: 18, Online: 17, Silent: 1, HostDown: 1, Drained: 1}) || r.Rings.Total != 2 || r.Links != 14 && r.Links != 13 {
		t.Errorf("%+v", r)
	}

	w.start() // another life of the planner, with the same store
	// Since when is known of what was acknowledged.
	step("the planner starts anew", "3/host-down, spares/few, 10/1/path-failed by alice, 4/offline by alice")
	w.online(4)
	step("the node is back", "3/host-down, spares/few, 10/1/path-failed by alice")
	if _, is := w.store["ack/4/offline"]; is {
		t.Error("the store keeps what is over")
	}
	w.offline(4)
	step("it is offline anew; since when the host is down is not known", "4/offline, 3/host-down, spares/few, 10/1/path-failed by alice")
	w.nodes[10].alarms = []proto.Alarm{{Kind: proto.EvPathFailed, Severity: proto.SeverityCritical, Bundle: 1, SinceMicros: 9, Text: "heater stuck"}}
	w.report(&w.nodes[10])
	step("raised anew between two looks", "10/1/path-failed, 4/offline, 3/host-down, spares/few")
	if _, is := w.store["ack/10/1/path-failed"]; is {
		t.Error("the store keeps an acknowledgement of what was raised anew")
	}
	for _, c := range []struct {
		id, author, reason string
		code               proto.Code
		field              string
	}{{"9/offline", "a", "b", proto.NotFound, "alarm"}, {"4/offline", "", "b", proto.Invalid, "reason"}, {"4/offline", "a", "", proto.Invalid, "reason"}} {
		r := w.ask(proto.OpRequest{Noun: proto.NounAck, Bundle: -1, Alarm: c.id, Author: c.author, Reason: c.reason})
		if r.Code != c.code || r.Field != c.field || r.Limit == "" {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// Goal: a list of any length comes whole, page by page.
func TestAlarmsPage(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	var want []string
	for i := range 100 {
		w.nodes[1].alarms = append(w.nodes[1].alarms, proto.Alarm{Kind: proto.EvAlarm, Severity: proto.SeverityWarning, Bundle: proto.BundleID(i % 2), Text: strings.Repeat("x", 300)})
		want = append(want, fmt.Sprintf("1/%d/alarm", i%2))
	}
	w.report(&w.nodes[1])
	w.run(3 * time.Second)
	if got := strings.Split(w.alarms(), ", "); len(got) != len(want) || got[0] != "1/0/alarm" {
		t.Errorf("%d alarms, want %d: %v", len(got), len(want), got[:min(3, len(got))])
	}
}
