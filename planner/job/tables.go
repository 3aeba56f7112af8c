package job

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// outputs are names of dialects by what takes them.
var outputs = map[string]string{"iproute2": ".iproute2", "frr": ".frr", "nft": ".linux"}

// maxPaged is how many GPUs a job on leaves and spines may have whose routes a planner writes
// down within a step: their spines have one for each pair. chosen: a tenth of a second.
const maxPaged = 128

// paged is routes.json of the job that was asked for last, for its next page.
type paged struct {
	of   string // job and stamp
	text []byte
}

// RoutesPage is a part of routes.json of a job by its number in the core. A page is the byte
// from which on, and above it a sum of what the first was of: no two are of different routes.
func (t *Table) RoutesPage(q *proto.OpRequest, r *proto.OpReply) {
	of := fmt.Sprint(q.Job, " ", t.core.Stamp(q.Job))
	sum := uint64(crc32.ChecksumIEEE([]byte(of))>>12) << 32 // within what a message counts to
	if q.Page != 0 && q.Page>>32<<32 != sum {
		r.Refuse(&proto.Error{Code: proto.Conflict, Field: "page", Limit: "of the routes of the first", Reason: "they have changed meanwhile: ask again"})
		return
	}
	if t.paged.of != of {
		text, err := routesText(t.core, t.fab(), q.Job)
		if err != nil {
			r.Refuse(err)
			return
		}
		t.paged = paged{of, text}
	}
	if r.Text, r.Next = proto.PartOf(t.paged.text, q.Page-min(q.Page, sum)); r.Next > 0 {
		r.Next += sum
	}
}

func routesText(of *core.Claims, f *fabric.Fabric, id proto.JobID) ([]byte, error) {
	v := View{ID: fmt.Sprint(id), ranks: of.Ranks(id), routes: of.Routes(id), fab: f}
	if v.routes == nil {
		return nil, &proto.Error{Code: proto.NotFound, Field: "job", Limit: "a job of the core", Reason: "no job " + v.ID}
	}
	if n := len(v.ranks.Places); v.fab.Core.LeafSpine != nil && n > maxPaged {
		return nil, &proto.Error{Code: proto.Unsupported, Field: "job", Limit: fmt.Sprintf("at most %d GPUs on leaves and spines, or a job by name: ocsctl job files -routes", maxPaged), Reason: fmt.Sprintf("job %d has %d", id, n)}
	}
	all, err := v.allRoutes(Split{})
	if err != nil {
		return nil, err
	}
	text, _, err := asJSON(all)
	return text, err
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
		return nil, proto.Wrong("o", "iproute2, frr or nft", "%.40q", output)
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

// firstRule is the preference of the first of our rules of iproute2: some follow, before
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
