package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/proto"
)

// Goal: a line of the planner's can be found by term, generation and the
// operator's request that it comes of.
func TestLinesHaveTheirKeys(t *testing.T) {
	var out bytes.Buffer
	s := &server{cfg: Config{Log: slog.New(slog.NewJSONHandler(&out, nil))}}
	s.Log(&planner.Line{Level: planner.Warn, Message: "operator's request", Rule: "request", Node: 7, Ring: 3, Generation: 12, Term: 4, Corr: proto.Corr{0xAB, 15: 1}, Text: "x"})
	for _, want := range []string{`"level":"WARN"`, `"node":7`, `"ring":3`, `"generation":12`, `"term":4`, `"corr":"ab000000000000000000000000000001"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	out.Reset()
	s.Log(&planner.Line{Message: "x", Node: -1})
	if strings.Contains(out.String(), "corr") || strings.Contains(out.String(), "node") {
		t.Error(out.String())
	}
}

// Goal: the planner gives its lines the request that it is answering, and none to
// those of other steps.
func TestLinesOfARequestNameIt(t *testing.T) {
	p := serving(t, 32)
	corr := proto.Corr{1, 2, 3}
	ask := func(q proto.OpRequest) (lines []planner.Line) {
		payload, err := proto.Encode(&q)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Step(planner.Event{Kind: planner.Packet, At: 2 * time.Minute, Packet: proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: "f1"}.Request("c"), Payload: payload}}, nil) {
			if a.Kind == planner.Log {
				lines = append(lines, a.Line)
			}
		}
		return lines
	}
	late := ask(proto.OpRequest{Version: proto.Version, Corr: corr, TTLMillis: 1000, Noun: proto.NounDrain, Node: 5, Bundle: -1, Term: 1, Beat: 999_999, Author: "a", Reason: "b"})
	if len(late) == 0 || late[0].Corr != corr || late[0].Term == 0 {
		t.Errorf("%+v", late)
	}
	for _, a := range p.Step(planner.Event{Kind: planner.Packet, At: 3 * time.Minute, Packet: proto.Packet{Kind: proto.Publish, Topic: "nonsense", Payload: []byte{1}}}, nil) {
		if a.Kind == planner.Log && a.Line.Corr != (proto.Corr{}) {
			t.Errorf("%+v", a.Line)
		}
	}
}
