package job

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Routes of a job of circuits, as leaves, spines and servers joined directly take them:
// policy routes by source and destination, so that every flow that the circuits are
// for goes over the links that were planned for it.

// routesPrefix begins the names of files with routes: routes.json, and of each leaf,
// spine or server routes_NAME with one of dialects behind it.
const routesPrefix = "routes"

// dialectOf is a way to write routes down.
type dialectOf struct {
	suffix string
	write  func(*routeFile) (string, error)
}

var dialects = []dialectOf{{".linux", (*routeFile).linux}, {".frr", (*routeFile).frr}, {".eos", (*routeFile).eos}, {".iproute2", (*routeFile).iproute2}}

// DefaultHosts and DefaultPorts number what has no addresses by the fabric's
// description: address n of either is the n-th after the first. chosen: private ones,
// and those between providers.
var DefaultHosts, DefaultPorts = netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10")

// at is an address of a prefix, that of number 0 the first after the network's own.
func at(field string, p netip.Prefix, n int) (string, error) {
	if !p.Addr().Is4() || p != p.Masked() || n+2 > 1<<(32-p.Bits()) {
		return "", proto.Wrong(field, fmt.Sprintf("a network of IPv4 with %d addresses and more", n+2), "%v", p)
	}
	b := p.Addr().As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n)+1)
	return netip.AddrFrom4(b).String(), nil
}

// portNumber numbers the ports of leaves, then spines, through; false: of a server.
func portNumber(c *fabric.Core, name string) (int, bool) {
	var pod, device, port int
	stride, most := 1, c.LeavesPerPod*c.LeafLinks+c.SpinePorts+c.SpinesPerPod*c.LeafLinks
	if l := c.LeafSpine; l != nil {
		most = max(l.GPUsPerLeaf, l.Leaves*l.GPUsPerLeaf/l.Spines)
	}
	for stride < most {
		stride *= 2
	}
	scan := func(format string, into ...any) bool {
		n, err := fmt.Sscanf(name, format, into...)
		return err == nil && n == len(into)
	}
	switch {
	case scan("leaf%d up%d", &device, &port):
	case scan("pod%d-spine%d down%d", &pod, &device, &port):
		device += c.Leaves() + pod*c.SpinesPerPod
	case scan("pod%d-spine%d ocs%d", &pod, &device, &port):
		device, port = device+c.Leaves()+pod*c.SpinesPerPod, port+c.LeavesPerPod*c.LeafLinks
	case scan("spine%d port%d", &device, &port):
		device += c.Leaves()
	default:
		return 0, false
	}
	return device*stride + port, true
}

// routeJSON is one route; the first of a device that fits a packet holds.
type routeJSON struct {
	At   string `json:"at"`
	In   string `json:"in,omitempty"`   // the port it comes by; absent: any
	From string `json:"from,omitempty"` // an address; absent: any
	To   string `json:"to,omitempty"`
	Out  string `json:"out,omitempty"`  // a port; absent: as without this route
	Via  string `json:"via,omitempty"`  // the address at its other end
	Next string `json:"next,omitempty"` // the port that has it
}

// routesJSON is routes.json.
type routesJSON struct {
	Job        string      `json:"job"`
	Generation uint64      `json:"generation"`
	Addresses  []string    `json:"addresses"` // by rank; of servers joined directly by server and interface
	Routes     []routeJSON `json:"routes"`
	LeftOut    string      `json:"left_out,omitempty"`
}

// routeFile is the routes of one device.
type routeFile struct {
	job    string
	head   string
	routes []routeJSON
}

// deviceName is what people call a leaf, a spine or a server.
func deviceName(f *fabric.Fabric, name string) string {
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "server")); err == nil && f.Core.Direct != nil {
		return f.ServerName(n)
	}
	return name
}

// port is a port of a device with what people call that.
func (v *View) port(name string) string {
	device, port, _ := strings.Cut(name, " ")
	return strings.TrimSpace(deviceName(v.fab, device) + " " + port)
}

// allRoutes are a job's with addresses.
func (v *View) allRoutes(s Split) (*routesJSON, error) {
	if !s.Hosts.IsValid() {
		s.Hosts = DefaultHosts
	}
	if !s.Ports.IsValid() {
		s.Ports = DefaultPorts
	}
	out := &routesJSON{Job: v.ID, Generation: v.Generation, Addresses: []string{}, Routes: []routeJSON{}}
	var first error
	host := func(n int) string {
		if n < 0 {
			return ""
		}
		text, err := at("hosts", s.Hosts, n)
		if err != nil && first == nil {
			first = err
		}
		return text
	}
	c := v.fab.Core
	for _, p := range v.ranks.Places {
		if c.Direct == nil {
			out.Addresses = append(out.Addresses, host(p.Server*c.GPUsPerServer+p.GPU))
		}
	}
	for _, server := range v.ranks.Servers {
		for face := range c.Direct.Degree {
			out.Addresses = append(out.Addresses, host(server*c.Direct.Degree+face))
		}
	}
	routes, why := v.routes()
	out.LeftOut = why
	for _, r := range routes {
		x := routeJSON{At: deviceName(v.fab, r.At), In: r.In, From: host(r.From), To: host(r.To), Out: r.Out, Next: v.port(r.Next)}
		if n, ok := portNumber(c, r.Next); ok {
			text, err := at("ports", s.Ports, n)
			if err != nil && first == nil {
				first = err
			}
			x.Via = text
		} else if server, face := 0, 0; r.Next != "" {
			fmt.Sscanf(r.Next, "server%d if%d", &server, &face)
			x.Via = host(server*c.Direct.Degree + face)
		}
		out.Routes = append(out.Routes, x)
	}
	return out, first
}

// routesFile is one of the files with routes.
func (v *View) routesFile(name string, s Split) ([]byte, string, error) {
	if v.Circuits == nil || v.routes == nil {
		return nil, "", &proto.Error{Code: proto.Conflict, Field: "name", Limit: "a job of circuits", Reason: "light of a ring needs no route"}
	}
	all, err := v.allRoutes(s)
	if err != nil {
		return nil, "", err
	}
	if name == routesPrefix+".json" {
		return asJSON(all)
	}
	for _, d := range dialects {
		of, ok := strings.CutSuffix(strings.TrimPrefix(name, routesPrefix+"_"), d.suffix)
		if !ok {
			continue
		}
		f := &routeFile{job: v.ID, head: fmt.Sprintf("job %s, generation %d, %s: %s", v.ID, v.Generation, v.State, of)}
		for _, r := range all.Routes {
			if r.At == of {
				f.routes = append(f.routes, r)
			}
		}
		if f.routes != nil {
			text, err := d.write(f)
			return []byte(text), "text/plain; charset=utf-8", err
		}
	}
	return nil, "", &proto.Error{Code: proto.NotFound, Field: "name", Limit: "routes.json, or routes_DEVICE with .linux, .frr, .eos or .iproute2 behind it, of a device in routes.json", Reason: fmt.Sprintf("no file %.80q", name)}
}

// outs are the ports of routes in order of names, each with a number.
func (f *routeFile) outs() (ports []string, via map[string]string) {
	via = map[string]string{}
	for _, r := range f.routes {
		if _, known := via[r.Out]; !known && r.Out != "" {
			ports = append(ports, r.Out)
			via[r.Out] = r.Via
		}
	}
	slices.Sort(ports)
	return ports, via
}

// linux is a script of iproute2 and nftables: nftables marks a packet by its route,
// and each port that leads on has a mark, a rule and a table with one route.
func (f *routeFile) linux() (string, error) {
	var b strings.Builder
	ports, via := f.outs()
	table := "ringlight-" + f.job
	fmt.Fprintf(&b, "#!/bin/sh -e\n# %s. At the end: nft delete table ip %s\n", f.head, table)
	fmt.Fprintf(&b, "nft -f - <<'EOF'\ntable ip %[1]s {}\ndelete table ip %[1]s\ntable ip %[1]s {\n", table)
	for _, chain := range []string{"prerouting", "output"} {
		kind := map[string]string{"prerouting": "filter", "output": "route"}[chain]
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority mangle;\n", chain, kind, chain)
		for i := 0; i < len(f.routes); {
			r, n := f.routes[i], i
			var set []string
			for ; n < len(f.routes) && sameRule(f.routes[n], r); n++ {
				set = append(set, strings.Trim(f.routes[n].From+" . "+f.routes[n].To, " ."))
			}
			i = n
			if chain == "output" && r.In != "" {
				continue
			}
			key := map[[2]bool]string{{true, true}: "ip saddr . ip daddr", {true, false}: "ip saddr", {false, true}: "ip daddr"}[[2]bool{r.From != "", r.To != ""}]
			in := ""
			if r.In != "" {
				in = fmt.Sprintf("iifname %q ", r.In)
			}
			do := "accept"
			if r.Out != "" {
				do = fmt.Sprintf("meta mark set %#x accept", mark(r.Out))
			}
			fmt.Fprintf(&b, "\t\t%s%s { %s } %s\n", in, key, strings.Join(set, ", "), do)
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\nEOF\n")
	for _, port := range ports {
		m := mark(port)
		fmt.Fprintf(&b, "ip route replace default via %s dev %s onlink table %d\n", via[port], port, m)
		fmt.Fprintf(&b, "ip rule show | grep -q 'fwmark %#[1]x ' || ip rule add fwmark %#[1]x lookup %[1]d\n", m)
	}
	return b.String(), nil
}

// mark is that of a port, of whatever job, and the number of its table.
func mark(port string) int {
	kind := strings.TrimRight(port, "0123456789")
	n, _ := strconv.Atoi(port[len(kind):])
	return 0x52<<24 | slices.Index([]string{"up", "down", "ocs", "port", "if"}, kind)<<16 | n
}

// sameRule: two routes differ by their addresses alone.
func sameRule(a, b routeJSON) bool {
	return a.In == b.In && a.Out == b.Out && (a.From == "") == (b.From == "") && (a.To == "") == (b.To == "")
}

// maxSequence is how many entries a map of FRR has.
const maxSequence = 700

// frr is a map of FRR's policy routing.
func (f *routeFile) frr() (string, error) {
	var b strings.Builder
	if n := len(f.routes); n > maxSequence {
		return "", &proto.Error{Code: proto.Conflict, Field: "name", Limit: fmt.Sprintf("at most %d routes of a device, what FRR's maps have", maxSequence), Reason: fmt.Sprint(n)}
	}
	fmt.Fprintf(&b, "! %s\n! To be set on the ports that the job's packets come by: interface PORT, pbr-policy ringlight-%s", f.head, f.job)
	b.WriteString("\n! (with -PORT behind it where there is a map for that port). FRR takes one map a port.\n")
	in := map[string]bool{}
	for n, r := range f.routes {
		name := "ringlight-" + f.job
		if r.In != "" {
			name += "-" + r.In
			in[r.In] = true
		}
		fmt.Fprintf(&b, "pbr-map %s seq %d\n", name, n+1)
		if r.From != "" {
			fmt.Fprintf(&b, " match src-ip %s/32\n", r.From)
		}
		if r.To != "" {
			fmt.Fprintf(&b, " match dst-ip %s/32\n", r.To)
		}
		if r.Out == "" {
			b.WriteString(" set vrf unchanged\n!\n")
		} else {
			fmt.Fprintf(&b, " set nexthop %s %s\n!\n", r.Via, r.Out)
		}
	}
	return b.String(), nil
}

// eos is Arista's policy routing: an access list and a class for each port that leads
// on, in one policy for all jobs; where the port it comes by counts, one for that.
func (f *routeFile) eos() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "! %s\n! To be set on the ports that the job's packets come by: service-policy type pbr input ringlight\n! (ringlight-PORT where there is one for that port).\n", f.head)
	type class struct{ name, policy, via string }
	var classes []class
	for i := 0; i < len(f.routes); {
		r, n := f.routes[i], i
		c := class{fmt.Sprintf("ringlight-%s-%d", f.job, len(classes)+1), "ringlight", r.Via}
		if r.In != "" {
			c.policy += "-" + r.In
		}
		classes = append(classes, c)
		fmt.Fprintf(&b, "ip access-list %s\n", c.name)
		for ; n < len(f.routes) && sameRule(f.routes[n], r); n++ {
			end := func(a string) string {
				if a == "" {
					return "any"
				}
				return "host " + a
			}
			fmt.Fprintf(&b, "   %d permit ip %s %s\n", 10*(n-i+1), end(f.routes[n].From), end(f.routes[n].To))
		}
		fmt.Fprintf(&b, "class-map type pbr match-any %[1]s\n   10 match ip access-group %[1]s\n", c.name)
		i = n
	}
	for _, c := range classes {
		fmt.Fprintf(&b, "policy-map type pbr %s\n   class %s\n", c.policy, c.name)
		if c.via != "" {
			fmt.Fprintf(&b, "      set nexthop %s\n", c.via)
		}
	}
	return b.String(), nil
}

// Routes are the names of the files with routes, routes.json first, in a dialect, of
// all devices that routes.json has.
func Routes(table []byte, dialect string) ([]string, error) {
	if !slices.ContainsFunc(dialects, func(d dialectOf) bool { return d.suffix == "."+dialect }) {
		return nil, proto.Wrong("routes", "linux, frr, eos or iproute2", "%.40q", dialect)
	}
	var all routesJSON
	if err := json.Unmarshal(table, &all); err != nil {
		return nil, err
	}
	var names []string
	for _, r := range all.Routes {
		if name := routesPrefix + "_" + r.At + "." + dialect; len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	return names, nil
}
