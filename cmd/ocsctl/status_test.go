package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"ringlight/planner/health"
	"ringlight/proto"
)

// Goal: the first line of status is of what is news, the gravest first, with where it
// comes from; what somebody knows of comes first only where there is nothing else, and
// then with who knows.
// Method: alarms in the order of a planner's answer.
func TestHeadline(t *testing.T) {
	dead := proto.AlarmStatus{ID: "4/dead", Check: "dead", Subject: "node 4", What: "dead", State: proto.HealthDegraded}
	down := proto.AlarmStatus{ID: "ring-1/down", Check: "ring_down", Subject: "ring 1", What: "ring 1 is down", State: proto.HealthFailed, Under: "4/dead"}
	spare := proto.AlarmStatus{ID: "9/offline", Check: "offline", Subject: "node 9", What: "offline", State: proto.HealthDegraded}
	known := func(a proto.AlarmStatus) proto.AlarmStatus { a.AckMillis, a.AckAuthor = 5, "alice"; return a }
	for want, found := range map[string][]proto.AlarmStatus{ // any order: independent
		"ok":                        nil,
		"degraded: node 4: dead":    {dead, spare},
		"degraded: node 9: offline": {spare, known(dead)},
		"degraded: node 4: dead, acknowledged by alice":                    {known(dead)},
		"failed: ring 1 is down, from node 4: dead":                        {dead, down, spare},
		"failed: node 9: offline":                                          {spare, known(dead), down},
		"failed: ring 1 is down, from node 4: dead, acknowledged by alice": {known(dead), down},
	} {
		var j statusJSON
		j.judge(health.Worst(found), found)
		if got := j.Health + j.leads; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Goal: one line tells what ages next, and none where nothing does. Method: a laser with days left,
// heaters at their limit, nothing.
func TestStatusHasWhatAgesNext(t *testing.T) {
	laser := proto.Ageing{Node: 7, Bundle: 1, Module: 3, What: "laser_bias", Is: 52_400, Limit: 60_150, Days: 1}
	heater := proto.Ageing{Node: 9, What: "heater_power", Is: 1_104_000, Limit: 1_100_000}
	for want, all := range map[string][]proto.Ageing{ // any order: independent
		"ages next node 7, module 1/3: lasers at 52.4 of 60.1 mA, 1 day left; 1 more: -json": {laser, heater},
		"ages next node 9, module 0/0: heaters at 1104.0 of 1100.0 mW, their limit":          {heater},
	} {
		var out strings.Builder
		j := statusJSON{Ageing: all}
		if j.text(&out, &proto.Status{}, ""); !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%s\nwant %s", out.String(), want)
		}
	}
	var out strings.Builder
	j := statusJSON{}
	if j.text(&out, &proto.Status{}, ""); strings.Contains(out.String(), "ages") {
		t.Error(out.String())
	}
}

// Goal: who says how long to wait is not told after less that nobody is there.
// Method: a broker that answers nothing, as one that is slow, asked with and without.
func TestTimeoutIsAsSaid(t *testing.T) {
	t.Parallel()
	broker := silentBroker(t)
	for _, c := range []struct {
		args []string
		took time.Duration
	}{{nil, patience}, {[]string{"-timeout", "3s"}, 3 * time.Second}, {[]string{"-timeout", "500ms"}, 500 * time.Millisecond}} {
		began := time.Now()
		code, _, errs := ctl(t, append([]string{"status", "-broker", broker}, c.args...)...)
		if took := time.Since(began); code != 1 || took < c.took || !strings.Contains(errs, "no connection within "+c.took.String()) {
			t.Errorf("%v: exit %d after %v: %s", c.args, code, took, errs)
		}
	}
}

// silentBroker takes connections and says nothing on them.
func silentBroker(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		var open []net.Conn // a connection that nobody holds is closed by the collector
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, conn)
		}
	}()
	return "mqtt://" + l.Addr().String()
}

// Goal: a node that was lost and is back tells of it in the three lines that 'why' prints
// first, with the time and the cause.
// Method: lines as a planner gives them, of a node and of its neighbour.
func TestWhyTellsOfALossThatIsOver(t *testing.T) {
	id, bundle := proto.NodeID(3), int16(0)
	lines := []whyLineJSON{
		{Seq: 4, AtMS: 1000, Node: 3, Rule: "Ringlight.1.0.PathFailed", Cause: "own_fault", sentence: "path failed: address not acknowledged"},
		{Seq: 5, AtMS: 2000, Node: 2, Rule: "Ringlight.1.0.LightLost", Cause: "light_lost", sentence: "light lost, peer 3"},
		{Seq: 6, AtMS: 5000, Node: 3, Rule: "Ringlight.1.0.Applied", Cause: "plan", sentence: "applied"},
		{AtMS: 9000, Node: 3, Rule: "placement", Text: "in no ring: spare", place: "3"},
		{AtMS: 9000, Node: 3, Bundle: &bundle, Rule: "bundle", Text: "loopback, tuned", place: "3/0"},
	}
	j := whyJSON{Node: &id, Lines: lines}
	if got := strings.Join(j.answer(true), "\n"); !strings.Contains(got, ".000 own fault: path failed: address not acknowledged\nlast: ") || strings.Count(got, "lost: ") != 1 {
		t.Error(got)
	}
	j.Lines = lines[1:]
	if got := strings.Join(j.answer(true), "\n"); strings.Contains(got, "lost: ") {
		t.Errorf("of a neighbour's loss: %s", got)
	}
	j.Lines = append([]whyLineJSON{{Seq: 1, AtMS: 500, Node: 3, Rule: "offline", sentence: "connection lost; light is judged by its neighbours"}}, lines[1:]...)
	if got := strings.Join(j.answer(true), "\n"); !strings.Contains(got, ".500 offline: connection lost") {
		t.Errorf("of an agent that was away: %s", got)
	}
}
