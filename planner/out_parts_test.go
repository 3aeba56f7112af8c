package planner

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// partForms are the forms of the names of a core's parts, and how many there are of each number.
func partForms(c *fabric.Core) (forms []partForm) {
	forms = []partForm{{"%d", []int{c.Servers()}}, {"%d/gpu%d", []int{c.Servers(), c.GPUsPerServer}}, {"%d/if%d", []int{c.Servers(), 4}}, {"leaf%d", []int{c.Leaves()}},
		{"leaf%d/up%d", []int{c.Leaves(), c.Uplinks()}}, {"pod%d-spine%d", []int{c.Pods, c.SpinesPerPod}}, {"switch%d", []int{c.Switches()}},
		{"switch%d/a%d", []int{c.Switches(), c.SwitchSize()}}, {"switch%d/b%d", []int{c.Switches(), c.SwitchSize()}}}
	if c.LeafSpine != nil {
		forms = append(forms, partForm{"spine%d", []int{c.Spines}})
	}
	return forms
}

type partForm struct {
	form string
	most []int
}

// partsOf are names of parts of a core, some of each kind.
func partsOf(c *fabric.Core, chance *rand.Rand) (names []string) {
	add := func(form string, most ...int) {
		args := []any{}
		for _, n := range most {
			if n == 0 {
				return
			}
			args = append(args, chance.IntN(n))
		}
		name := fmt.Sprintf(form, args...)
		if _, ok := c.Part(name); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for range 2 {
		for _, f := range partForms(c) {
			add(f.form, f.most...)
		}
	}
	return names
}

// over says which route of a job is over a part, or over a circuit that has no light; "":
// none. It shares nothing with the planner but the names of ports.
func (w *coreWorld) over(parts map[string]fabric.Part) string {
	c := w.fab.Core
	down := func(port string) (name string) { // which part has this port
		for name, p := range parts { // any order: any of them
			at, end, _ := strings.Cut(port, " ")
			var n, m, up int
			switch {
			case at == name:
				return name
			case scans(port, "leaf%d up%d", &n, &up) && fmt.Sprintf("leaf%d/up%d", n, up) == name:
				return name
			case scans(at, "pod%d-spine%d", &n, &m) && scans(end, "ocs%d", &up):
				for _, x := range p.Ports { // it sends by one switch of a pair, and hears by the other
					if x.Port == n && (x.Side == 0 && x.Switch == m*c.SpinePorts+up || x.Side == 1 && x.Switch == (m*c.SpinePorts+up)^1) {
						return name
					}
				}
			case scans(port, "server%d if%d", &n, &m):
				if slices.Contains(p.Servers, n) && len(p.GPUs) == 0 || name == fmt.Sprintf("%d/if%d", n, m) || name == fmt.Sprintf("switch%d", m) {
					return name
				}
			}
		}
		return ""
	}
	for _, v := range w.views() {
		var number proto.JobID
		if v.Circuits != nil {
			number = v.Circuits.Job
		}
		routes, _ := core.ClaimsOf(w.p.Core).Routes(number)()
		for _, r := range routes {
			for _, port := range []string{r.At + " " + r.Out, r.Next} {
				if name := down(port); r.Out != "" && name != "" {
					return fmt.Sprintf("job %s: %+v is over %s", v.ID, r, name)
				}
			}
		}
	}
	return ""
}

func scans(text, form string, into ...any) bool {
	n, err := fmt.Sscanf(text, form, into...)
	return err == nil && n == len(into)
}

// Goal: whatever of a core is out, no circuit and no route is over it, nobody is given it,
// jobs are whole or degraded by its name, light is as planned; and whole again when all is
// back, over restarts too.
// Method: on every kind of core parts of every kind one after the other, in random order.
func TestPartsAreTakenOut(t *testing.T) {
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			seeds := uint64(4)
			if testing.Short() {
				seeds = 2
			}
			for seed := range seeds {
				chance := rand.New(rand.NewPCG(seed, 26))
				w := startedWorld(t, k.core())
				w.put("a", k.some)
				w.put("b", fmt.Sprintf(`{"circuits":{"gpus_total":%d}}`, 2*w.fab.Core.GPUsPerServer))
				w.run(3 * time.Second)
				whole := map[string]int{}
				for _, v := range w.views() {
					whole[v.ID] = v.GPUsTotal
				}
				gone := map[string]fabric.Part{}
				names := partsOf(w.fab.Core, chance)
				chance.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				for n, name := range names {
					r := w.drain(proto.NounDrain, name)
					if r.Code != proto.OK || r.Change == nil {
						t.Fatalf("seed %d: %s: %+v", seed, name, r)
					}
					gone[name], _ = w.fab.Core.Part(name)
					if n%3 == 2 {
						w.start()
					}
					w.quiet(10 * time.Minute)
					w.run(3 * time.Second)
					for s := range w.switches {
						for a, x := range w.switches[s].light { // any order: the first will do
							for part, p := range gone { // any order: the first will do
								if slices.Contains(p.Ports, fabric.SwitchPort{Switch: s, Port: int(a)}) || slices.Contains(p.Ports, fabric.SwitchPort{Switch: s, Side: 1, Port: int(x.b)}) {
									t.Fatalf("seed %d: switch %d: %d to %d of job %d is lit, and %s is out\n%s", seed, s, a, x.b, x.job, part, w.show())
								}
							}
						}
					}
					for _, v := range w.views() {
						named := slices.ContainsFunc(names[:n+1], func(name string) bool { return strings.HasPrefix(v.Cause, w.fab.PartName(name)+" is out") })
						full := strings.Contains(v.Cause, "no free ports") && k.name == "pods"
						if !(v.State == job.Ready && v.GPUsTotal == whole[v.ID]) && !((v.State == job.Degraded || v.State == job.Down) && (named || full)) {
							t.Fatalf("seed %d: %s is out of %v: %s %s %q, %d GPUs of %d\n%s", seed, name, names[:n+1], v.ID, v.State, v.Cause, v.GPUsTotal, whole[v.ID], w.show())
						}
					}
					for _, text := range []string{w.consistent(), w.unlit(), w.over(gone)} {
						if text != "" {
							t.Fatalf("seed %d: %v: %s", seed, names[:n+1], text)
						}
					}
				}
				for _, name := range names {
					if r := w.drain(proto.NounUndrain, name); r.Code != proto.OK && r.Code != proto.Conflict {
						t.Fatalf("%s: %+v", name, r)
					}
				}
				for _, name := range names { // what went with something that was still out
					w.drain(proto.NounUndrain, name)
				}
				w.quiet(10 * time.Minute)
				w.run(3 * time.Second)
				for _, v := range w.views() {
					if v.State != job.Ready || v.GPUsTotal != whole[v.ID] {
						t.Fatalf("seed %d: all are back: %s %s %q, %d GPUs of %d\n%s", seed, v.ID, v.State, v.Cause, v.GPUsTotal, whole[v.ID], w.show())
					}
				}
				if text := w.unlit(); text != "" {
					t.Fatal(text)
				}
			}
		})
	}
}

// views are the two jobs as people see them.
func (w *coreWorld) views() []*job.View { return []*job.View{w.job("a"), w.job("b")} }
