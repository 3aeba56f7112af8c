package agent

import (
	"strings"
	"testing"
	"time"

	"ringlight/hal/scpi"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// scriptRig is a switch that scripts may drive.
type scriptRig struct {
	*switchRig
	said map[uint64]string
	gone map[uint64]bool
}

func newScriptRig(t *testing.T, handsFirst bool) *scriptRig {
	r := &scriptRig{switchRig: newSwitchRig(t, 8), said: map[uint64]string{}, gone: map[uint64]bool{}}
	r.agent.cfg.Lines = func(b *circuit.Served) LineServer { return scpi.NewServer(b) }
	r.agent.cfg.ScriptsFirst = handsFirst
	r.lines = func(id uint64, reply []byte) {
		r.said[id] += string(reply)
		r.gone[id] = reply == nil
	}
	r.start()
	return r
}

func (r *scriptRig) say(id uint64, line string) {
	r.t.Helper()
	r.host.Deliver(r.world.Now(), Input{Kind: InLine, ID: id, Line: []byte(line + "\r\n")})
	r.poll()
}

// reply waits for the answer to a line.
func (r *scriptRig) reply(id uint64, line string) string {
	r.t.Helper()
	r.said[id] = ""
	r.say(id, line)
	r.must("an answer to "+line, 3*time.Second, func() bool { return strings.HasSuffix(r.said[id], "\n") })
	return strings.TrimSpace(r.said[id])
}

func TestScriptsDriveASwitchNobodyPlansFor(t *testing.T) {
	// Goal: a script written for a commercial box makes circuits, waits for the
	// light, reads them back; the circuits outlive the agent.
	r := newScriptRig(t, false)
	if id := r.reply(1, "*IDN?"); !strings.HasPrefix(id, "Ringlight,") || strings.Count(id, ",") != 3 {
		t.Errorf("%q", id)
	}
	if size := r.reply(1, ":oxc:swit:size?"); size != "8,8" {
		t.Errorf("%q", size)
	}
	r.say(1, ":oxc:swit:conn:add (@1,2,3),(@11,9,16)")
	if ok := r.reply(1, "*OPC?"); ok != "1" {
		t.Errorf("%q", ok)
	}
	want := []proto.Circuit{{A: 0, B: 2}, {A: 1, B: 0}, {A: 2, B: 7}}
	r.checkLight(want...)
	if m := r.reply(2, ":oxc:swit:conn:stat?"); m != "(@1,2,3),(@11,9,16)" {
		t.Errorf("%q", m)
	}
	r.say(2, ":oxc:swit:conn:sub (@2),(@9)")
	if ok := r.reply(2, "*OPC?;:syst:err?"); ok != `1;0,"No error"` {
		t.Errorf("%q", ok)
	}
	want = append(want[:1], want[2])
	r.run(time.Second, nil)
	r.checkLight(want...)
	if e := r.eventsOf(proto.EvSwitched); len(e) != 2 || e[0].Cause != proto.CauseOperator || r.last.BypassSeq != 2 || len(r.last.Circuits) != 2 {
		t.Errorf("%+v; %+v", e, r.last)
	}
	r.kill()
	r.spi = 0
	r.boot()
	r.start()
	if r.spi != 0 || len(r.last.Circuits) != 2 || r.last.Circuits[0].State != proto.Tuned {
		t.Errorf("%d mirror writes, %+v", r.spi, r.last.Circuits)
	}
	r.checkLight(want...)
}

func TestScriptsAreRefusedUnderAPlan(t *testing.T) {
	// Goal: while a planner's generation is in force a script may look and not
	// touch, unless it was asked for; then the next plan must know of it, and
	// puts all back.
	r := newScriptRig(t, false)
	d := r.roll(shift(3, 8, 1)...)
	r.spi = 0
	r.say(1, ":oxc:swit:disc:all")
	if e := r.reply(1, ":syst:err?"); !strings.HasPrefix(e, "-200") || r.spi != 0 {
		t.Errorf("%q, %d mirror writes", e, r.spi)
	}
	if m := r.reply(1, ":oxc:swit:conn:stat?"); m != "(@1,2,3),(@10,11,12)" {
		t.Errorf("%q", m)
	}
	r.checkLight(d.Circuits...)

	r = newScriptRig(t, true)
	d = r.roll(shift(3, 8, 1)...)
	stale := r.desired(d.Circuits...)
	r.say(1, ":oxc:swit:conn:only (@5),(@16)")
	if ok := r.reply(1, "*OPC?"); ok != "1" {
		t.Errorf("%q", ok)
	}
	r.run(time.Second, nil)
	r.checkLight(proto.Circuit{A: 4, B: 7})
	if a := r.prepare(stale); a.Code != proto.Conflict || a.Field != "bypass_seq" || a.BypassSeq != 1 {
		t.Errorf("%+v", a)
	}
	d = r.roll(d.Circuits...)
	r.checkLight(d.Circuits...)
}

func TestClientsAreLimited(t *testing.T) {
	r := newScriptRig(t, false)
	for id := uint64(1); id <= maxClients; id++ {
		r.reply(id, "*IDN?")
	}
	r.say(99, "*IDN?")
	if !r.gone[99] || r.gone[1] {
		t.Errorf("%+v", r.gone)
	}
	r.host.Deliver(r.world.Now(), Input{Kind: InLine, ID: 3})
	r.poll()
	if id := r.reply(100, "*IDN?"); id == "" {
		t.Error("no room after one has left")
	}
}
