package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// curious asks the planner why, at some moments of a run, and keeps what it
// answers, in words.
type curious struct {
	asks []question
	next int
	told []string
}

type question struct {
	at     time.Duration
	node   proto.NodeID
	bundle int16 // -1: the whole node
	before func(*Run)
}

func (c *curious) mutant() *mutant {
	return &mutant{at: c.asks[0].at, act: c.ask, rewrite: c.hear}
}

func (c *curious) ask(r *Run) {
	q := c.asks[c.next]
	if q.before != nil {
		q.before(r)
	}
	payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{byte(c.next + 1)}, TTLMillis: 5000,
		Noun: proto.NounWhy, Node: q.node, Bundle: q.bundle})
	if err != nil {
		panic(err)
	}
	r.net.publish(operatorID, proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: r.cfg.Fabric.Name}.Request("test"), Payload: payload, QoS: 1})
	if c.next++; c.next < len(c.asks) {
		r.agenda.Push(r.epoch+c.asks[c.next].at, task{kind: taskMutant})
	}
}

func (c *curious) hear(_ *Run, p proto.Packet) proto.Packet {
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil || topic.Kind != proto.TopicReply {
		return p
	}
	var m proto.OpReply
	if _, err := proto.Decode(p.Payload, &m); err != nil {
		panic(err)
	}
	s := ""
	for i := range m.Why {
		l := &m.Why[i]
		s += fmt.Sprintf("%s: %s, cause %s, measured %s, expected %s\n", l.Rule, l.Text, l.Cause, l.Measured, l.Expected)
	}
	c.told = append(c.told, s)
	return p
}

// Goal: ocsctl why explains a bypass, a ban and a refused plan of production
// agents: what was lost, measured and done, and which timers still run.
// Method: a node dies; a fibre flaps until it is banned, while the planner is
// away; a spare is asked into a ring while a person calibrates one of its
// bundles.
func TestWhyExplainsWhatHappened(t *testing.T) {
	cfg := testConfig(t, 17, 3, 64, fabric.Line)
	cfg.Span = 40 * time.Second
	cfg.Rates = Rates{}
	cfg.Faults = script(t, "1s planner kill", "2s fibre flap 9/1/external1 both 1ms 19", "3s planner start", "20s node dark 5")
	calibrate := func(r *Run) {
		st := r.stations[16]
		if err := st.ask(agent.Ask{Verb: agent.AskCalibrate}); err != nil {
			t.Error(err)
		}
	}
	c := &curious{asks: []question{
		{9050 * time.Millisecond, 9, 1, nil},
		{19 * time.Second, 16, 0, calibrate},
		{20*time.Second + 6*time.Millisecond, 4, -1, nil},
		{20*time.Second + 100*time.Millisecond, 16, -1, nil},
	}}
	cfg.mutant = c.mutant()
	run(t, cfg)
	if len(c.told) != len(c.asks) {
		t.Fatalf("%d answers: %q", len(c.told), c.told)
	}
	for i, wants := range [][]string{
		{ // the ban, by the planner that has just listened: what the agent told it meanwhile
			"light found, external1, right side of ring 1, peer 10, ", "(detect ", "banned, external1, right side of ring 1, peer 10",
			"right side: closed, request signal_fail, in loopback; planned is node 10 over 1/external1",
			"right side: node 10 over 1/external1 is banned after 8 losses within 10 s; a plan that names it lifts the ban, or 10 s of steady light",
			"bundle: loopback, tuned, 8 losses so far, cause no_candidate, measured -", "next attempt in ",
		},
		{"placement: in no ring: spare"},
		{ // the bypass, a moment after it
			"light lost, external1, right side of ring 1, peer 5, cause light_lost", "switched, external1 to external2, right side of ring 1, peer 6, ", " us (detect ",
			"right side: ", "request signal_fail, bypass: on node 6 over 1/external2 in place of node 5 over 1/external1",
			"timer: ring 1 is split though its members are well, formed anew 0 times; next attempt in ", "bundle: external1, tuned, 0 losses so far, cause plan, measured 8.6",
		},
		{ // the refused plan
			"refused: not_calibrated: rings[0].left[0].bundle", "bundle 0 cannot switch", "asked again in 1.", "or when that has changed", "bundle: dark, blocked",
		},
	} {
		for _, want := range wants {
			if !strings.Contains(c.told[i], want) {
				t.Errorf("question %d: no %q in\n%s", i, want, c.told[i])
			}
		}
	}
}
