package planner

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// walker carries packets through a core as it stands: what leaves, spines and servers
// do is read from the scripts that the job's files are, and where light goes from the
// mirrors. It shares nothing with who wrote either.
type walker struct {
	w         *coreWorld
	rules     map[string][]rule // by device
	addresses []string
	hosts     []string          // by rank
	next      map[string]string // by device and port: the port whose address packets are sent to
}

// rule is one line of a script.
type rule struct {
	hook, in, key string
	set           map[string]bool
	port          string // "": none
}

var (
	ruleLine  = regexp.MustCompile(`^\s+(?:iifname "(\w+)" )?(ip saddr \. ip daddr|ip saddr|ip daddr) { (.*) } (?:meta mark set (0x\w+) )?accept$`)
	hookLine  = regexp.MustCompile(`hook (\w+)`)
	routeLine = regexp.MustCompile(`^ip route replace default via \S+ dev (\w+) onlink table (\d+)$`)
	leafLine  = regexp.MustCompile(`^leaf(\d+)-server(\d+)$`)
)

// walker reads the scripts of a job's devices.
func (w *coreWorld) walker(v *job.View) *walker {
	t := w.t
	t.Helper()
	file := func(name string) []byte {
		text, _, err := v.File(name, job.Split{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return text
	}
	x := &walker{w: w, rules: map[string][]rule{}, next: map[string]string{}}
	var table struct {
		Addresses []string
		Routes    []struct{ At, Out, Next string }
	}
	if err := json.Unmarshal(file("routes.json"), &table); err != nil {
		t.Fatal(err)
	}
	x.addresses = table.Addresses
	for _, r := range table.Routes {
		if of := r.At + " " + r.Out; r.Out != "" && x.next[of] != "" && x.next[of] != r.Next {
			t.Errorf("%s leads to %s and %s", of, x.next[of], r.Next)
		} else if r.Out != "" {
			x.next[of] = r.Next
		}
	}
	for line := range strings.Lines(string(file("hostfile"))) {
		if line[0] != '#' {
			x.hosts = append(x.hosts, strings.TrimSpace(line))
		}
	}
	names, err := job.Routes(file("routes.json"), "linux")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		device := strings.TrimSuffix(strings.TrimPrefix(name, "routes_"), ".linux")
		text := string(file(name))
		ports := map[string]string{} // by mark
		for line := range strings.Lines(text) {
			if m := routeLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				n, _ := strconv.Atoi(m[2])
				ports[fmt.Sprintf("%#x", n)] = m[1]
			}
		}
		hook := ""
		for line := range strings.Lines(text) {
			if m := hookLine.FindStringSubmatch(line); m != nil {
				hook = m[1]
			}
			m := ruleLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			r := rule{hook: hook, in: m[1], key: m[2], set: map[string]bool{}, port: ports[m[4]]}
			if m[4] != "" && r.port == "" {
				t.Fatalf("%s: no table for %q", name, line)
			}
			for _, e := range strings.Split(m[3], ", ") {
				r.set[e] = true
			}
			x.rules[device] = append(x.rules[device], r)
		}
	}
	return x
}

// out is the port by which a device sends a packet on; "": it has no rule of its own.
func (x *walker) out(device, hook, in, from, to string) string {
	for _, r := range x.rules[device] {
		key := map[string]string{"ip saddr . ip daddr": from + " . " + to, "ip saddr": from, "ip daddr": to}[r.key]
		if r.hook == hook && (r.in == "" || r.in == in) && r.set[key] {
			return r.port
		}
	}
	return ""
}

func number(port string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(port, "abcdefghijklmnopqrstuvwxyz"))
	return n
}

// light is where what is sent into a port of a switch comes out, -1: nowhere.
func (x *walker) light(s, port int) int {
	c, ok := x.w.switches[s].light[uint16(port)]
	if !ok || c.tuned > x.w.now {
		return -1
	}
	return int(c.b)
}

func (x *walker) leafOf(rank int) int {
	m := leafLine.FindStringSubmatch(x.hosts[rank])
	n, _ := strconv.Atoi(m[1])
	return n
}

// walk is the links from rank to rank, one way each; ok is false where it does not
// arrive. No link: both are at one leaf.
func (x *walker) walk(from, to int) (links []string, ok bool) {
	c := x.w.fab.Core
	at, in := fmt.Sprintf("leaf%d", x.leafOf(from)), ""
	for range 8 {
		if at == fmt.Sprintf("leaf%d", x.leafOf(to)) {
			return links, true
		}
		port := x.out(at, "prerouting", in, x.addresses[from], x.addresses[to])
		if port == "" {
			return links, false
		}
		links = append(links, at+" "+port)
		of := at + " " + port
		if c.LeafSpine != nil {
			at, in = x.overLeaves(at, number(port))
		} else {
			at, in = x.overPods(at, port)
		}
		if at == "" || x.next[of] != at+" "+in {
			return links, false
		}
	}
	return links, false
}

// overPods is where a port of a leaf or spine leads.
func (x *walker) overPods(at, port string) (device, in string) {
	c, n := x.w.fab.Core, number(port)
	var pod, spine, leaf int
	if k, _ := fmt.Sscanf(at, "leaf%d", &leaf); k == 1 {
		return fmt.Sprintf("pod%d-spine%d", leaf/c.LeavesPerPod, n/c.LeafLinks), fmt.Sprintf("down%d", leaf%c.LeavesPerPod*c.LeafLinks+n%c.LeafLinks)
	}
	fmt.Sscanf(at, "pod%d-spine%d", &pod, &spine)
	if strings.HasPrefix(port, "down") {
		return fmt.Sprintf("leaf%d", pod*c.LeavesPerPod+n/c.LeafLinks), fmt.Sprintf("up%d", spine*c.LeafLinks+n%c.LeafLinks)
	}
	// What port n of a spine sends goes into switch n of its group, at its pod's port;
	// what that gives out comes to the other port of the pair ([LUMOS] sec 3.1).
	far := x.light(spine*c.SpinePorts+n, pod)
	if far < 0 {
		return "", ""
	}
	if c.Wiring == fabric.Interleaved {
		n ^= 1
	}
	return fmt.Sprintf("pod%d-spine%d", far, spine), fmt.Sprintf("ocs%d", n)
}

// overLeaves is where an uplink of a leaf, or a port of a spine, leads.
func (x *walker) overLeaves(at string, n int) (device, in string) {
	l := x.w.fab.Core.LeafSpine
	var of int
	leaf := strings.HasPrefix(at, "leaf")
	fmt.Sscanf(strings.TrimLeft(at, "leafspin"), "%d", &of)
	if k := l.FixedLinks(); l.Switches == 0 {
		if leaf {
			return fmt.Sprintf("spine%d", n/k), fmt.Sprintf("port%d", of*k+n%k)
		}
		return fmt.Sprintf("leaf%d", n/k), fmt.Sprintf("up%d", of*k+n%k)
	}
	mine, port := l.SpinePortsPerSwitch(), 0
	if leaf {
		mine = l.LeafPorts()
		port = l.LeafPort(of, n%mine)
	} else {
		port = l.SpinePort(of, n%mine)
	}
	far := x.light(n/mine, port)
	if far < 0 {
		return "", ""
	}
	toLeaf, toSpine, i := l.EndAt(far)
	if toLeaf >= 0 {
		return fmt.Sprintf("leaf%d", toLeaf), fmt.Sprintf("up%d", n/mine*l.LeafPorts()+i)
	}
	return fmt.Sprintf("spine%d", toSpine), fmt.Sprintf("port%d", n/mine*l.SpinePortsPerSwitch()+i)
}

// tally is what a judge counted.
type tally struct {
	jobs, flows, between int
	shared, lost, mixed  int // links that two flows between pods use at once, flows that do not arrive, links that two jobs use
	fibres               int // of shared: between pods
	within               int // links that a flow within a pod shares, or an all-to-all with another job
}

// phase walks flows of one moment and counts those that share a link.
func (x *walker) phase(flows [][2]int, s *tally, all map[string]bool) {
	load, across := map[string]int{}, map[string]int{}
	for _, f := range flows {
		links, ok := x.walk(f[0], f[1])
		s.flows++
		if !ok {
			s.lost++
			continue
		}
		for _, l := range links {
			load[l]++
			all[l] = all[l] || len(links) > 2 || x.w.fab.Core.LeafSpine != nil
			if between := len(links) > 2 || x.w.fab.Core.LeafSpine != nil; between {
				across[l]++
			}
		}
		if len(links) > 2 || len(links) > 0 && x.w.fab.Core.LeafSpine != nil {
			s.between++
		}
	}
	for l, n := range load { // any order: counts
		if across[l] > 1 {
			s.shared++
			if strings.Contains(l, " ocs") {
				s.fibres++
			}
		} else if n > 1 {
			s.within++
		}
	}
}

// collectivesOf are the moments of a job's collectives, by its file, and those of its
// pipelines.
func collectivesOf(t *testing.T, v *job.View) (out [][][2]int) {
	t.Helper()
	text, _, err := v.File("collectives.json", job.Split{})
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Groups []struct {
			Stage int
			Ranks []int
		}
		Phases [][][][2]int
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	for _, stage := range c.Phases {
		out = append(out, stage...)
	}
	stages, last := 0, 0
	for _, g := range c.Groups {
		stages, last = max(stages, g.Stage+1), max(last, slices.Max(g.Ranks)+1)
	}
	rings := make([][][2]int, stages)
	for _, g := range c.Groups {
		for n, from := range g.Ranks {
			if to := g.Ranks[(n+1)%len(g.Ranks)]; to != from {
				rings[g.Stage] = append(rings[g.Stage], [2]int{from, to})
			}
		}
	}
	if c.Phases == nil {
		out = append(out, rings...)
	}
	for n := last / stages; n < last; n++ {
		if n == last/stages {
			out = append(out, nil, nil)
		}
		out[len(out)-2] = append(out[len(out)-2], [2]int{n - last/stages, n})
		out[len(out)-1] = append(out[len(out)-1], [2]int{n, n - last/stages})
	}
	return out
}

// walks is how many jobs of each kind are walked: RINGLIGHT_WALKS, or some dozens.
func walks() int {
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_WALKS")); err == nil {
		return n
	}
	return 40
}

// judge walks all jobs that are ready, and counts links that several use.
func (w *coreWorld) judge(t *testing.T, collective func(*job.View) [][][2]int, s *tally, each func(v *job.View, before, after tally)) {
	t.Helper()
	owner := map[string]bool{} // by link: a flow between pods has it
	for _, v := range listed(w.p) {
		if v.State != job.Ready {
			continue
		}
		v = w.job(v.ID)
		x, all, before := w.walker(v), map[string]bool{}, *s
		for _, flows := range collective(v) {
			x.phase(flows, s, all)
		}
		s.jobs++
		for _, l := range slices.Sorted(maps.Keys(all)) {
			own := all[l] && v.Wish.Circuits.Collective != "all-to-all"
			if was, known := owner[l]; known && was && own {
				s.mixed++
			} else if known {
				s.within++
			}
			owner[l] = owner[l] || own
		}
		each(v, before, *s)
	}
}

// Goal: between pods, every flow of a job's collective goes by the routes that are
// printed and the light that is there to whom it is for, and no two flows between pods
// are on one link, of a leaf, a spine or a fibre, where leaves have two links to each
// spine and the job has all links that it wants; nor are two jobs.
// Method: random cores and jobs of every collective that come and go; each job that is
// ready is walked, flow by flow. RINGLIGHT_WALKS sets how many jobs at least.
// Reference: [LUMOS] Th. 4.1, A.5, A.6
func TestFlowsBetweenPodsAreAlone(t *testing.T) {
	var sum, part, even, tau1 tally
	for seed := uint64(0); sum.jobs < walks(); seed++ {
		r := rand.New(rand.NewPCG(seed, 26))
		core := fabric.Core{Pods: 2 + r.IntN(5), LeavesPerPod: 1 + r.IntN(3), SpinesPerPod: 4, SwitchPorts: 8, LeafLinks: 2, ServersPerLeaf: 2, GPUsPerServer: 4, Wiring: fabric.Interleaved, IotaMille: 1000}
		if seed%5 == 4 {
			core.LeafLinks = 1
		}
		if seed%7 == 3 {
			core.Wiring = fabric.Uniform
		}
		core.SpinePorts = 2 * core.LeavesPerPod * core.LeafLinks
		w := startedWorld(t, &core)
		for n := range 6 {
			if r.IntN(4) == 0 {
				w.release(fmt.Sprint("j", r.IntN(n+1)))
			}
			tp, pp := []int{1, 2, 4, 8}[r.IntN(4)], 1+r.IntN(2)
			all := core.Servers() * 4
			dp := 1 + r.IntN(max(1, all/2/(tp*pp)))
			w.put(fmt.Sprint("j", n), fmt.Sprintf(`{"circuits":{"tp":%d,"pp":%d,"dp":%d,"collective":%q}}`, tp, pp, dp, proto.Collective(r.IntN(4)).String()))
			w.run(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		w.run(20 * time.Second)
		count := tally{}
		w.judge(t, func(v *job.View) [][][2]int { return collectivesOf(t, v) }, &count, func(v *job.View, was, is tally) {
			d := tally{1, is.flows - was.flows, is.between - was.between, is.shared - was.shared, is.lost - was.lost, is.mixed - was.mixed, is.fibres - was.fibres, is.within - was.within}
			to := &sum
			switch {
			case core.LeafLinks == 1:
				to = &tau1
			case v.Links < v.Circuits.Asked:
				to = &part
			case v.Wish.Circuits.Collective == "all-to-all":
				to = &even
			default:
				if d.shared > 0 {
					t.Errorf("seed %d: job %s %s: %+v", seed, v.ID, v.Wish, d)
				}
			}
			if d.lost > 0 || d.mixed > 0 && core.LeafLinks == 2 {
				t.Errorf("seed %d: job %s %s: %+v", seed, v.ID, v.Wish, d)
			}
			to.jobs++
			to.flows += d.flows
			to.between += d.between
			to.shared += d.shared
			to.fibres += d.fibres
			to.within += d.within
			to.lost += d.lost
			to.mixed += d.mixed
		})
	}
	t.Logf("two links of a leaf to each spine, every link granted: %+v", sum)
	t.Logf("the same, all-to-all: %+v", even)
	t.Logf("fewer links granted than wanted: %+v", part)
	t.Logf("one link: %+v", tau1)
	if sum.shared+sum.lost+even.fibres > 0 || sum.between == 0 {
		t.Errorf("%+v", sum)
	}
}

// Goal: on leaves and spines every flow of a ring, and of every step in which each rank
// sends to the one so many after it, goes by the printed routes and the light to whom it
// is for; no two of a step are on one link, and no two jobs are.
// Method: random cores with optical switches and with fixed links, jobs that come and
// go, walked as above.
// Reference: [VCLOS] Lemma 5.1, sec 6
func TestFlowsOfLeavesAreAlone(t *testing.T) {
	var sum tally
	for seed := uint64(0); sum.jobs < walks(); seed++ {
		r := rand.New(rand.NewPCG(seed, 27))
		leaves, gpus, spines := 2+r.IntN(6), []int{4, 8, 16}[r.IntN(3)], 2
		core := leafSpine(leaves, spines, gpus, []int{1, 2, 4}[r.IntN(3)], []int{4, 4, 0}[r.IntN(3)])
		if core.Validate() != nil {
			continue
		}
		w := startedWorld(t, core)
		for n := range 6 {
			if r.IntN(4) == 0 {
				w.release(fmt.Sprint("j", r.IntN(n+1)))
			}
			w.put(fmt.Sprint("j", n), fmt.Sprintf(`{"circuits":{"gpus_total":%d}}`, 1+r.IntN(leaves*gpus)))
			w.run(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		w.run(20 * time.Second)
		w.judge(t, func(v *job.View) [][][2]int {
			all := collectivesOf(t, v)
			n, t := v.GPUsTotal, core.GPUsPerServer
			whole := (n + t - 1) / t * t // GPUs that a job does not use of its servers count
			for step := 1; step < whole; step++ {
				var flows [][2]int
				for r := range n {
					if to := (r + step) % whole; to < n {
						flows = append(flows, [2]int{r, to})
					}
				}
				all = append(all, flows)
			}
			return all
		}, &sum, func(v *job.View, was, is tally) {
			if was.shared+was.lost+was.mixed+was.within != is.shared+is.lost+is.mixed+is.within {
				t.Errorf("seed %d: %s: job %s %s: %+v, then %+v", seed, core, v.ID, v.Wish, was, is)
			}
		})
	}
	t.Logf("%+v", sum)
	if sum.between == 0 {
		t.Errorf("nothing left its leaf: %+v", sum)
	}
}

// overFibres is where an interface of a server leads by light: through its transceiver,
// its layer's mirrors and the transceiver of who is there, which has to look at the same
// fibre. -1: nowhere.
func (x *walker) overFibres(server, face int) int {
	c := x.w.fab.Core
	path := x.light(c.Degree+server, face)
	if path < 0 || path%c.Degree != face {
		return -1
	}
	far := x.light(face, server+path/c.Degree*c.Direct.Servers)
	if far < 0 {
		return -1
	}
	to := far % c.Direct.Servers
	if x.light(c.Degree+to, face) != face+far/c.Direct.Servers*c.Degree {
		return -1
	}
	return to
}

// pass carries a packet from an interface of a server to one of another.
func (x *walker) pass(from, fromFace, to, toFace int, address func(server, face int) string) (links []string, ok bool) {
	at, hook := from, "output"
	for range x.w.fab.Core.Direct.Servers {
		if at == to {
			return links, true
		}
		port := x.out(fmt.Sprintf("server%d", at), hook, "", address(from, fromFace), address(to, toFace))
		if port == "" {
			return links, false
		}
		links = append(links, fmt.Sprintf("server%d %s", at, port))
		of := fmt.Sprintf("server%d %s", at, port)
		if at, hook = x.overFibres(at, number(port)), "prerouting"; at < 0 || x.next[of] != fmt.Sprintf("server%d %s", at, port) {
			return links, false
		}
	}
	return links, false
}

// Goal: over direct links every ring of a job goes by light and printed routes from each
// server to the next on a link of its own, the other way round too where links are both;
// what servers send besides arrives by as few hops as there can be.
// Method: random jobs on a direct core, with groups and traffic of their own, that come
// and go; each walked interface by interface; hops are counted anew over who hears whom.
// Reference: [TOPO] sec 4.2, App. I
func TestFlowsOfServersAreAlone(t *testing.T) {
	jobs, links, passed, shared, lost := 0, 0, 0, 0, 0
	for seed := uint64(0); jobs < walks(); seed++ {
		r := rand.New(rand.NewPCG(seed, 28))
		core := &fabric.Core{Kind: fabric.KindDirect, GPUsPerServer: 2, Direct: &fabric.Direct{Servers: 12 + r.IntN(12), Degree: 2 + 2*r.IntN(3)}}
		w := startedWorld(t, core)
		for n := range 5 {
			if r.IntN(4) == 0 {
				w.release(fmt.Sprint("j", r.IntN(n+1)))
			}
			servers := 2 + r.IntN(8)
			topology := fmt.Sprintf(`{"degree":%d,"bidirectional":%v,"allreduce":[{"servers":[%s],"bytes":100000}]`, core.Degree, r.IntN(2) == 0, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(upTo(servers))), ","), "[]"))
			if servers > 2 && r.IntN(2) == 0 {
				topology += fmt.Sprintf(`,"mp":[[0,%d,50000],[%d,1,70000]]`, servers-1, servers-1)
			}
			w.put(fmt.Sprint("j", n), fmt.Sprintf(`{"circuits":{"servers":%d,"topology":%s}}}`, servers, topology))
			w.run(time.Duration(r.IntN(3000)) * time.Millisecond)
		}
		w.run(20 * time.Second)
		owner := map[string]string{}
		for _, v := range listed(w.p) {
			if v.State != job.Ready {
				continue
			}
			v = w.job(v.ID)
			x := w.walker(v)
			jobs++
			servers := []int{}
			for _, s := range v.Circuits.Seats {
				servers = append(servers, int(s[1]))
			}
			address := func(server, face int) string {
				return x.addresses[slices.Index(servers, server)*core.Degree+face]
			}
			used := map[string]bool{}
			use := func(path []string, ok bool, hops int) {
				if !ok || hops > 0 && len(path) != hops {
					lost++
					t.Errorf("seed %d: job %s %s: %v, %v", seed, v.ID, v.Wish, path, ok)
				}
				for _, l := range path {
					if used[l] && hops == 1 || owner[l] != "" && owner[l] != v.ID {
						shared++
						t.Errorf("seed %d: job %s %s: two on %s", seed, v.ID, v.Wish, l)
					}
					used[l], owner[l] = true, v.ID
				}
			}
			both := v.Wish.Circuits.Topology.Bidirectional
			for _, ring := range v.Circuits.Orders {
				n := len(ring.Servers)
				for i, s := range ring.Servers {
					a, b, face := int(s), int(ring.Servers[(i+1)%n]), int(ring.Layers[0])
					back := face
					switch {
					case both && n%2 == 0:
						face = int(ring.Layers[i%2])
						back = face
					case both:
						back = int(ring.Layers[1])
					}
					path, ok := x.pass(a, face, b, face, address)
					links++
					use(path, ok, 1)
					if both {
						path, ok := x.pass(b, back, a, back, address)
						links++
						use(path, ok, 1)
					}
				}
			}
			for _, a := range servers {
				hops := x.hops(a)
				for _, b := range servers {
					if a != b {
						path, ok := x.pass(a, 0, b, 0, address)
						passed++
						use(path, ok, 0)
						if len(path) > hops[b] && !(len(path) == 1) {
							t.Errorf("seed %d: job %s %s: %v for %d hops", seed, v.ID, v.Wish, path, hops[b])
						}
					}
				}
			}
		}
	}
	t.Logf("%d jobs, %d flows of rings, %d others passed on, %d on one link, %d lost", jobs, links, passed, shared, lost)
	if links == 0 || passed == 0 {
		t.Error("nothing was walked")
	}
}

func upTo(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// hops counts how far servers are from one, by light.
func (x *walker) hops(from int) map[int]int {
	out, line := map[int]int{from: 0}, []int{from}
	for len(line) > 0 {
		at := line[0]
		line = line[1:]
		for face := range x.w.fab.Core.Degree {
			if to := x.overFibres(at, face); to >= 0 {
				if _, seen := out[to]; !seen {
					out[to] = out[at] + 1
					line = append(line, to)
				}
			}
		}
	}
	return out
}
