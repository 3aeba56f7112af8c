package main

import (
	"strings"
	"testing"
)

const topologyIn = `{"servers":5,"degree":2,"bidirectional":true,"allreduce":[{"group":[0,1,2,3,4],"bytes":1000}],"mp":[[0,2,300]],"method":"totient","seed":1}`

// Goal: the output is the agreed JSON, key by key, and explain's too.
// Method: a ring of five, worked out by hand: each direction of a link carries
// a tenth of the bytes, and 300 more go over two links.
func TestPlanTopology(t *testing.T) {
	for _, c := range []struct{ verb, in, want string }{
		{"topology", topologyIn, `{"rings":[[0,1,2,3,4]],"links":[[0,1,1],[0,4,1],[1,2,1],[2,3,1],[3,4,1]],"hops":{"mean":1.5,"max":2},"tax_ratio":1.2307692307692308,"fullest_link_bytes":400}`},
		{"topology", swapped(t, swapped(t, topologyIn, `"degree":2,"bidirectional":true`, `"degree":1`), `[0,1,2,3,4]`, `5`),
			`{"rings":[[0,1,2,3,4]],"links":[[0,1,1],[1,2,1],[2,3,1],[3,4,1],[4,0,1]],"hops":{"mean":2.5,"max":4},"tax_ratio":1.2307692307692308,"fullest_link_bytes":500}`},
		// Two groups on one interface: a ring over all carries both, and is nobody's own.
		{"topology", `{"servers":4,"degree":1,"allreduce":[{"group":2,"bytes":10}],"mp":[[0,3,5]]}`,
			`{"rings":[],"links":[[0,1,1],[1,2,1],[2,3,1],[3,0,1]],"hops":{"mean":2,"max":3},"tax_ratio":2.2,"fullest_link_bytes":15}`},
		{"explain", topologyIn, `{"method":"totient","degree_allreduce":2,"text":"2 of 2 interfaces are for rings, the others for matchings of servers that send each other most","jumps":[1],"first_jump":[0,1,1,4,4],
			"fullest_link_allreduce_bytes":100,"fullest_link_mp_bytes":300,
			"rings":[{"ring":0,"group":0,"layers":[0,1],"text":"an odd ring is no two matchings: the first layer carries it forward, the second backward"}],
			"layers":[[1,2,3,4,0],[4,0,1,2,3]],"mp_paths":[[0,1,2]]}`},
	} {
		code, out, errs := planRun(t, c.verb, c.in)
		if code != 0 || !sameJSON(t, out, c.want) || errs != "" {
			t.Errorf("%s %s:\nexit %d %s%s\nwant %s", c.verb, c.in, code, errs, out, c.want)
		}
	}
}

// Goal: what is wrong with an input is exit 2 with its key and limit.
// Method: one defect each in an input that is right otherwise.
func TestPlanTopologyRefuses(t *testing.T) {
	for _, c := range []struct{ in, field, limit string }{
		{swapped(t, topologyIn, `"degree":2`, `"degree":3`), "degree", "even"},
		{swapped(t, topologyIn, `"degree":2`, `"degree":66`), "degree", "1 to 64, the ports"},
		{swapped(t, topologyIn, `"degree":2,`, ``), "degree", "1 to 64"},
		{swapped(t, topologyIn, `"servers":5`, `"servers":6`), "allreduce", "joins all 6"},
		{swapped(t, topologyIn, `"servers":5`, `"servers":1`), "servers", "2 to"},
		{swapped(t, topologyIn, `[0,1,2,3,4]`, `[0,1,2,3,5]`), "allreduce[0].group[4]", "0 to 4"},
		{swapped(t, topologyIn, `[0,1,2,3,4]`, `[0,1,2,3,null]`), "allreduce[0].group[4]", "integer"},
		{swapped(t, topologyIn, `[0,1,2,3,4]`, `2`), "allreduce[0].group", "divide"},
		{swapped(t, topologyIn, `[0,1,2,3,4]`, `"all"`), "allreduce[0].group", "list"},
		{swapped(t, topologyIn, `"bytes":1000`, `"bytes":0`), "allreduce[0].bytes", "1 to"},
		{swapped(t, topologyIn, `"bytes":1000`, `"byte":1000`), "allreduce", "bytes"},
		{swapped(t, topologyIn, `[0,2,300]`, `[0,2]`), "mp", "from,to,bytes"},
		{swapped(t, topologyIn, `[0,2,300]`, `[0,0,300]`), "mp[0]", "two servers"},
		{swapped(t, topologyIn, `[0,2,300]`, `[0,5000000000,300]`), "mp[0][1]", "0 to 4"},
		{swapped(t, topologyIn, `"totient"`, `"best"`), "method", "random or totient"},
		{swapped(t, topologyIn, `"seed":1`, `"seed":-1`), "seed", "integer"},
		{swapped(t, topologyIn, `"seed":1`, `"ports":1`), "ports", "one of servers"},
	} {
		code, out, errs := planRun(t, "topology", c.in)
		if code != 2 || !strings.Contains(errs, "ocsctl: "+c.field+":") || !strings.Contains(errs, c.limit) {
			t.Errorf("%s:\nexit %d %s%s\nwant %s: %s", c.in, code, errs, out, c.field, c.limit)
		}
	}
}
