package agent

import (
	"strings"
	"testing"
	"time"

	"ringlight/hal"
)

// request waits for the answer to a request.
func (r *scriptRig) request(id uint64, request string) string {
	r.t.Helper()
	r.said[id] = ""
	r.host.Deliver(r.world.Now(), Input{Kind: InRequest, ID: id, Line: []byte(request)})
	r.poll()
	r.must("an answer to "+request, 3*time.Second, func() bool { return r.said[id] != "" })
	return r.said[id]
}

func TestToolsDriveASwitch(t *testing.T) {
	// Goal: what a tool asks for over RESTCONF is made and told by light; ports of the
	// planner's plan are refused by name, others are not; nothing refused is half done.
	r := newScriptRig(t, false)
	const bulk = "POST /restconf/operations/sonic-ocs:bulk-update\n"
	const data = "GET /restconf/data/sonic-ocs:sonic-ocs/"
	if got := r.request(1, bulk+`{"sonic-ocs:input":{"add":[{"cross_connect_id":"1A-2B"},{"cross_connect_id":"2A-1B"}]}}`); got != "200\n"+`{"sonic-ocs:output":{"deleted_count":0,"added_count":2}}` {
		t.Errorf("%s", got)
	}
	r.must("light", 3*time.Second, func() bool {
		return strings.Count(r.request(1, data+"OCS_CROSS_CONNECT_TABLE"), `"status":"enabled","insertion_loss_dB":"`) == 2
	})
	if got := r.request(2, data+"OCS_PORT_TABLE/OCS_PORT_LIST=2B"); !strings.Contains(got, `"target_simplex_port_id":"1A","oper_status":"connected"`) {
		t.Errorf("%s", got)
	}
	if got := r.request(2, "PATCH /restconf/data/sonic-ocs:sonic-ocs/OCS_PORT\n"+`{"sonic-ocs:OCS_PORT":{"OCS_PORT_LIST":[{"simplex_port_id":"1A","label":"rack 7","config_status":"force_blocked"}]}}`); got != "204\n" {
		t.Errorf("%s", got)
	}
	r.must("dark", 3*time.Second, func() bool {
		return strings.Contains(r.request(2, data+"OCS_PORT/OCS_PORT_LIST=1A"), `"label":"rack 7","config_status":"force_blocked"`) &&
			strings.Contains(r.request(2, data+"OCS_CROSS_CONNECT_TABLE/OCS_CROSS_CONNECT_LIST=1A-2B"), `"status":"disabled"`)
	})
	if got := r.request(2, "PATCH /restconf/data/sonic-ocs:sonic-ocs/OCS_PORT/OCS_PORT_LIST=1A\n"+`{"sonic-ocs:OCS_PORT_LIST":[{"simplex_port_id":"1A","state":"normal"}]}`); got != "204\n" {
		t.Errorf("%s", got)
	}
	d := r.roll(shift(3, 8, 3)...) // 1A-4B 2A-5B 3A-6B
	before := r.agent.optics.(*crossOptics).cross.Circuits(nil)
	for _, refused := range []string{
		`{"delete":["1A-4B"]}`, `{"add":[{"cross_connect_id":"3A-8B"}]}`, `{"add":[{"cross_connect_id":"7A-7B"},{"cross_connect_id":"8A-6B"}]}`,
	} {
		got := r.request(3, bulk+`{"sonic-ocs:input":`+refused+`}`)
		if !strings.HasPrefix(got, "409\n") || !strings.Contains(got, `"error-tag":"in-use"`) || !strings.Contains(got, "is the planner's: its generation") {
			t.Errorf("%s: %s", refused, got)
		}
	}
	if after := r.agent.optics.(*crossOptics).cross.Circuits(nil); len(after) != len(before) || len(after) != len(d.Circuits) {
		t.Errorf("%v became %v", before, after)
	}
	if got := r.request(3, bulk+`{"sonic-ocs:input":{"add":[{"cross_connect_id":"8A-8B"}]}}`); !strings.HasPrefix(got, "200\n") {
		t.Errorf("a free port: %s", got)
	}
	const records = "GET /restconf/data/ringlight-records:ringlight-records/"
	r.must("a bin of the port's power and one of its circuit's loss", 5*time.Second, func() bool {
		got := r.request(3, records+"QUARTERS/PORT_LIST=1A")
		return strings.HasPrefix(got, `200`+"\n"+`{"ringlight-records:PORT_LIST":[{"simplex_port_id":"1A","BIN_LIST":[{"from":"1970-01-01T00:00:00Z","quantity":"switch_time","unit":"us",`) &&
			strings.Contains(got, `"quantity":"port_power","unit":"mdBm"`) && strings.Contains(got, `"quantity":"insertion_loss","unit":"mdB"`)
	})
	if got := r.request(3, records+"DAYS"); strings.Count(got, "simplex_port_id") != 2*8 || !strings.Contains(got, `"insertion_loss"`) {
		t.Errorf("%.300s", got)
	}
	for _, bad := range []string{"QUARTERS/PORT_LIST=9A", "QUARTERS/PORT_LIST=0A", "QUARTERS/PORT_LIST=A", "HOURS"} {
		if got := r.request(3, records+bad); !strings.HasPrefix(got, "404\n") {
			t.Errorf("%s: %.100s", bad, got)
		}
	}
	if got := r.request(3, strings.Replace(records, "GET", "DELETE", 1)+"DAYS/PORT_LIST=1A"); !strings.HasPrefix(got, "405\n") {
		t.Errorf("%.100s", got)
	}
	if got := r.request(3, data+"OCS_FACTORY_INSERTION_LOSS_TABLE"); strings.Count(got, "loss_dB") != 8*8*3 || hal.NumSides != 2 {
		t.Errorf("%.200s", got)
	}
}
