package job

import (
	"encoding/json"
	"fmt"
	"strings"

	"ringlight/proto"
)

// outputs are names of dialects by what takes them.
var outputs = map[string]string{"iproute2": ".iproute2", "frr": ".frr", "nft": ".linux"}

// RoutesPage is a part, from a byte on, of routes.json of a job by its number in the core.
func (t *Table) RoutesPage(q *proto.OpRequest, r *proto.OpReply) {
	v := View{ID: fmt.Sprint(q.Job), ranks: t.core.Ranks(q.Job), routes: t.core.Routes(q.Job), fab: t.fab()}
	if v.routes == nil {
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "job", Limit: "a job of the core", Reason: "no job " + v.ID})
		return
	}
	all, err := v.allRoutes(Split{})
	if err == nil {
		var text []byte
		text, _, err = asJSON(all)
		r.Text, r.Next = proto.PartOf(text, q.Page)
	}
	if err != nil {
		r.Refuse(err)
	}
}

// DeviceRoutes is what one leaf, spine or server is told of one job.
type DeviceRoutes struct {
	Job  string `json:"job"`
	At   string `json:"at"`
	Text string `json:"text"`
}

// WriteRoutes writes routes.json down for each device, in the words of iproute2, frr, or nft with iproute2.
func WriteRoutes(table []byte, output string) (out []DeviceRoutes, err error) {
	suffix, ok := outputs[output]
	if !ok {
		return nil, wrong("o", "iproute2, frr or nft", "%.40q", output)
	}
	var all routesJSON
	if err := json.Unmarshal(table, &all); err != nil {
		return nil, err
	}
	for len(all.Routes) > 0 {
		f := routeFile{job: all.Job, head: fmt.Sprintf("job %s: %s", all.Job, all.Routes[0].At)}
		n := 0
		for n < len(all.Routes) && all.Routes[n].At == all.Routes[0].At {
			n++
		}
		f.routes, all.Routes = all.Routes[:n], all.Routes[n:]
		for _, d := range dialects {
			if d.suffix == suffix {
				x := DeviceRoutes{Job: f.job, At: f.routes[0].At}
				if x.Text, err = d.write(&f); err != nil {
					return nil, err
				}
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// firstRule is the preference of the first of our rules of iproute2: four follow, before
// the kernel's own for its main table. chosen: few take it.
const firstRule = 20_000

// iproute2 is a file for ip -batch: each route a rule, and each port that leads on a
// table with one route.
func (f *routeFile) iproute2() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s. For ip -batch; at the end its lines with rule, with del for add\n", f.head)
	ports, via := f.outs()
	for _, port := range ports {
		fmt.Fprintf(&b, "route replace default via %s dev %s onlink table %d\n", via[port], port, mark(port))
	}
	for _, r := range f.routes {
		key, class := "", 0
		for _, x := range []struct {
			word, value string
			less        int
		}{{"from", r.From, 1}, {"to", r.To, 2}, {"iif", r.In, 0}} {
			if x.value != "" {
				key += " " + x.word + " " + x.value
			} else {
				class += x.less
			}
		}
		table := "main"
		if r.Out != "" {
			table, class = fmt.Sprint(mark(r.Out)), 2*class
		}
		fmt.Fprintf(&b, "rule add pref %d%s lookup %s\n", firstRule+class, key, table)
	}
	return b.String(), nil
}
