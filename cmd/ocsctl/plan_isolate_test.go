package main

import (
	"strings"
	"testing"
)

const closIn = `{"uplinks":4,"gpus_per_server":2,"free_gpus":[[2,0],[1,2]],"gpus_total":4,"free_links":[[1,1,0],[1,2,1]]}`
const ocsIn = `{"uplinks":4,"gpus_per_server":2,"free_gpus":[[2,2],[2,0]],"gpus_total":6,"ocs":{"any_to_any":true,"leaf":[[1,1],[1,1]],"spine":[[2,2],[1,1]]}}`

func swapped(t *testing.T, in, old, with string) string {
	t.Helper()
	if !strings.Contains(in, old) {
		t.Fatalf("%s is not in %s", old, in)
	}
	return strings.Replace(in, old, with, 1)
}

// Goal: the output is the agreed JSON, key by key, of each stage and cause.
// Method: small inputs with answers worked out by hand.
func TestPlanIsolate(t *testing.T) {
	for _, c := range []struct {
		in, want string
		code     int
	}{
		{swapped(t, closIn, `"gpus_total":4`, `"gpus_total":1`), `{"stage":0,"servers":[[1,0,1]],"l":1,"s":0,"links":[],"circuits":[],"map":[],"cost":0}`, 0},
		{swapped(t, ocsIn, `"gpus_total":6`, `"gpus_total":3`), `{"stage":1,"servers":[[0,0,2],[0,1,2]],"l":1,"s":0,"links":[],"circuits":[],"map":[],"cost":0}`, 0},
		// both leaves have one idle server, 2 GPUs; spines 0 and 1 have 2 and 3 free links
		{closIn, `{"stage":2,"servers":[[0,0,2],[1,1,2]],"l":2,"s":2,"links":[[0,0],[0,1],[1,0],[1,1]],"circuits":[],"map":[0,1],"cost":9}`, 0},
		{ocsIn, `{"stage":2,"servers":[[1,0,2],[0,0,2],[0,1,2]],"l":2,"s":0,"links":[],"circuits":[[0,"leaf",1,"leaf",0],[1,"leaf",1,"leaf",0]],"map":[0,1],"cost":6}`, 0},
		{swapped(t, swapped(t, ocsIn, `true`, `false`), `[[1,1],[1,1]]`, `[[2,2],[1,1]]`), `{"cause":"network"}`, 1}, // 6 = 3 x 2 over spines of 4 and 2 ports
		{swapped(t, swapped(t, swapped(t, ocsIn, `true`, `false`), `[[1,1],[1,1]]`, `[[2,2],[1,1]]`), `[[2,2],[1,1]]}}`, `[[1,3],[3,0]]}}`),
			`{"stage":3,"servers":[[1,0,2],[0,0,2],[0,1,2]],"l":3,"s":2,"links":[[1,1],[1,0],[0,1],[0,0],[0,1],[0,0]],"circuits":[[0,"leaf",1,"spine",1],[1,"leaf",1,"spine",0],[0,"leaf",0,"spine",1],[1,"leaf",0,"spine",0],[0,"leaf",0,"spine",1],[1,"leaf",0,"spine",0]],"map":[0,1],"cost":17}`, 0},
		{swapped(t, closIn, `[[1,1,0]`, `[[1,0,0]`), `{"cause":"network"}`, 1},
		{swapped(t, closIn, `[1,2]`, `[1,1]`), `{"cause":"gpu"}`, 1},
	} {
		code, out, errs := planRun(t, "isolate", c.in)
		if code != c.code || !sameJSON(t, out, c.want) || (errs != "") != (code != 0) {
			t.Errorf("%s:\nexit %d %s%s\nwant %s", c.in, code, errs, out, c.want)
		}
	}
}

// Goal: what is wrong with an input is exit 2 with its key and limit.
// Method: one defect each in an input that is right otherwise.
func TestPlanIsolateRefuses(t *testing.T) {
	for _, c := range []struct{ in, field string }{
		{swapped(t, closIn, `"uplinks":4,`, ``), "uplinks"},
		{swapped(t, closIn, `"uplinks":4`, `"uplinks":3`), "free_gpus[0]"},
		{swapped(t, closIn, `[1,2,1]]`, `[1,3,1]]`), "free_links[1]"},
		{swapped(t, closIn, `"gpus_per_server":2`, `"gpus_per_server":0`), "gpus_per_server"},
		{swapped(t, closIn, `"gpus_per_server":2`, `"gpus_per_server":1`), "free_gpus[0][0]"},
		{swapped(t, closIn, `[[2,0]`, `[[2,-1]`), "free_gpus[0][1]"},
		{swapped(t, closIn, `[[2,0]`, `[[2,1.5]`), "free_gpus[0]"},
		{swapped(t, closIn, `"gpus_total":4`, `"gpus_total":0`), "gpus_total"},
		{swapped(t, closIn, `"gpus_total":4`, `"gpus_total":6`), "gpus_total"}, // 3 x 2, and there are two leaves
		{swapped(t, closIn, `"gpus_total":4`, `"gpus_total":"4"`), "gpus_total"},
		{swapped(t, closIn, `[[1,1,0]`, `[[1,-1,0]`), "free_links[0][1]"},
		{swapped(t, closIn, `[[1,1,0]`, `[[1,1]`), "free_links[1]"},                     // asymmetric
		{swapped(t, closIn, `[[1,1,0]`, `[[0,0,0],[1,1,0]`), "free_links[2]"},           // unknown leaf
		{swapped(t, closIn, `[[1,1,0],`, `[`), "free_links"},                            // one is missing
		{swapped(t, closIn, `,"free_links":[[1,1,0],[1,2,1]]`, ``), "free_links"},       // neither
		{swapped(t, closIn, `}`, `,"ocs":{"leaf":[[1]],"spine":[[1]]}}`), "free_links"}, // both
		{swapped(t, closIn, `}`, `,"ocs_count":1}`), "ocs_count"},
		{swapped(t, ocsIn, `[[1,1],[1,1]]`, `[[1,-1],[1,1]]`), "ocs.leaf[0][1]"},
		{swapped(t, ocsIn, `[[2,2],[1,1]]}}`, `[[2,2,2],[1,1,1]]}}`), "ocs.spine[0]"}, // asymmetric
		{swapped(t, ocsIn, `[[2,2],[1,1]]}}`, `[[2,-2],[1,1]]}}`), "ocs.spine[0][1]"},
		{swapped(t, ocsIn, `[[1,1],[1,1]]`, `[[1,1],[1,1],[1,1]]`), "ocs.leaf[2]"}, // unknown leaf
		{swapped(t, ocsIn, `"any_to_any":true`, `"any_to_any":1`), "ocs.any_to_any"},
		{swapped(t, ocsIn, `,"spine":[[2,2],[1,1]]`, ``), "ocs.spine"},
		{swapped(t, ocsIn, `[[1,1],[1,1]]`, `[[4,1],[1,1]]`), "ocs.leaf[0]"},
		{swapped(t, ocsIn, `"any_to_any":true,`, `"ports":1,`), "ocs.ports"},
	} {
		code, out, errs := planRun(t, "isolate", c.in)
		if code != 2 || !strings.Contains(out, `"field":"`+c.field+`"`) || strings.Contains(out, `"limit":""`) || !strings.Contains(errs, c.field) {
			t.Errorf("%s: %s: exit %d %s%s", c.field, c.in, code, errs, out)
		}
	}
}
