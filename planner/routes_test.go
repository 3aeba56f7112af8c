package planner

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ringlight/planner/job"
	"ringlight/proto"
)

// Goal: what a device does is the same in every dialect, and addresses are of the
// networks that are asked for; files that cannot be are refused by field and limit.
// Method: each dialect's lines taken apart, beside routes.json, which the judge of flows
// holds against light; bad names and networks.
func TestRoutesInEveryDialect(t *testing.T) {
	for _, k := range circuitKinds {
		w := startedWorld(t, k.core())
		if r := w.put("a", k.some); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		w.run(5 * time.Second)
		v := w.job("a")
		split := job.Split{Hosts: netip.MustParsePrefix("172.16.0.0/12"), Ports: netip.MustParsePrefix("192.168.0.0/16")}
		text, _, err := v.File("routes.json", split)
		var all struct {
			Routes []struct{ At, In, From, To, Out, Via string }
		}
		if err != nil || json.Unmarshal(text, &all) != nil || len(all.Routes) == 0 {
			t.Fatalf("%s: %v %s", k.name, err, text)
		}
		want := map[string]string{}
		for _, r := range all.Routes {
			for _, a := range []string{r.From, r.To} {
				if a != "" && !strings.HasPrefix(a, "172.") {
					t.Errorf("%s: %+v", k.name, r)
				}
			}
			want[r.At] += fmt.Sprintf("%s|%s|%s|%s\n", r.In, r.From, r.To, r.Via)
		}
		for device, routes := range want { // any order: each by itself
			for dialect, of := range map[string]func(string) string{"frr": readFRR, "eos": readEOS} { // any order
				text, _, err := v.File("routes_"+device+"."+dialect, split)
				if err != nil || of(string(text)) != routes {
					t.Errorf("%s: %s of %s: %v\n%s\nreads\n%s\nwant\n%s", k.name, dialect, device, err, text, of(string(text)), routes)
				}
			}
		}
		for name, s := range map[string]job.Split{ // any order: each by itself
			"routes_leaf99.frr":   {},
			"routes_leaf0.junos":  {},
			"routes.json hosts":   {Hosts: netip.MustParsePrefix("10.0.0.0/30")},
			"routes.json  hosts":  {Hosts: netip.MustParsePrefix("2001:db8::/64")},
			"routes.json   hosts": {Hosts: netip.MustParsePrefix("10.0.0.1/8")},
		} {
			file, field, _ := strings.Cut(name, " ")
			_, _, err := v.File(file, s)
			if e := proto.AsError(err); e == nil || e.Limit == "" || field != "" && e.Field != strings.TrimSpace(field) {
				t.Errorf("%s: %s: %v", k.name, name, err)
			}
		}
	}
	w := hostTable(t, false)
	w.put("a", `{"tp":24}`)
	w.run(2 * time.Second)
	if _, _, err := w.job("a").File("routes.json", job.Split{}); proto.AsError(err) == nil || proto.AsError(err).Field != "name" {
		t.Error(err)
	}
}

// readFRR is a map of FRR as one line a route.
func readFRR(text string) (out string) {
	var in, from, to string
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 4 && w[0] == "pbr-map":
			in, from, to = strings.TrimPrefix(strings.TrimPrefix(w[1], "ringlight-a"), "-"), "", ""
		case len(w) == 3 && w[1] == "src-ip":
			from = strings.TrimSuffix(w[2], "/32")
		case len(w) == 3 && w[1] == "dst-ip":
			to = strings.TrimSuffix(w[2], "/32")
		case len(w) == 4 && w[1] == "nexthop":
			out += fmt.Sprintf("%s|%s|%s|%s\n", in, from, to, w[2])
		case len(w) == 3 && w[1] == "vrf":
			out += fmt.Sprintf("%s|%s|%s|\n", in, from, to)
		}
	}
	return out
}

// readEOS is what classes and their access lists come to.
func readEOS(text string) (out string) {
	lists, order := map[string][]string{}, []string{}
	in, via := map[string]string{}, map[string]string{}
	var list, policy string
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 3 && w[1] == "access-list":
			list = w[2]
			order = append(order, list)
		case len(w) > 3 && w[1] == "permit":
			end := strings.TrimSuffix(strings.ReplaceAll(strings.ReplaceAll(strings.Join(w[3:], " "), "host ", ""), "any", ""), "\n")
			a, b, _ := strings.Cut(end+" ", " ")
			lists[list] = append(lists[list], a+"|"+strings.TrimSpace(b))
		case len(w) == 4 && w[0] == "policy-map":
			policy = w[3]
		case len(w) == 2 && w[0] == "class":
			list = w[1]
			in[list] = strings.TrimPrefix(strings.TrimPrefix(policy, "ringlight"), "-")
		case len(w) == 3 && w[1] == "nexthop":
			via[list] = w[2]
		}
	}
	for _, l := range order {
		for _, ends := range lists[l] {
			out += fmt.Sprintf("%s|%s|%s\n", in[l], ends, via[l])
		}
	}
	return out
}
