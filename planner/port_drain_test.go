package planner

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// fakeRouters do what the planner asks of their ports, and say so.
type fakeRouters struct {
	w       *coreWorld
	drained map[string]bool // as they are, by router/port
	silent  map[string]bool // routers
	asked   int
}

func (w *coreWorld) say(router, port string, got job.PortSaid) proto.OpReply {
	text, err := json.Marshal(got)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.ask(proto.OpRequest{Noun: proto.NounRouted, Name: router + "/ports/" + port, Text: proto.Part(text), Author: "test"})
}

// work has routers that are not silent do what they are asked, each with some chance.
func (r *fakeRouters) work(chance func() bool) {
	for _, x := range r.w.p.Jobs.Routers() {
		for _, p := range x.Ports {
			if p.Held || r.silent[x.Router] || !chance() {
				continue
			}
			r.asked++
			if r.drained[x.Router+"/"+p.Port] = p.Drained; !p.Drained {
				delete(r.drained, x.Router+"/"+p.Port)
			}
			if chance() { // else the word is lost
				if a := r.w.say(x.Router, p.Port, job.PortSaid{Drained: p.Drained}); a.Code != proto.OK && a.Code != proto.Busy {
					r.w.t.Fatalf("%s %+v: %+v", x.Router, p, a)
				}
			}
		}
	}
}

// ends are the routers and ports at a circuit.
func (w *coreWorld) ends(s int, a, b uint16) (out []string) {
	c := w.fab.Core
	if server, is := c.ServerOf(s); is {
		return []string{fmt.Sprintf("server%d/if%d", server, a)}
	}
	pair := s
	if c.Paired() {
		if pair = s ^ 1; s%2 == 1 {
			s, pair, a, b = pair, s, b, a // sent by the even port into the even switch
		}
	}
	for at, port := range map[int]uint16{s: a, pair + len(w.switches): b} { // any order: a set
		device, name := c.EndOf(at%len(w.switches), int(port))
		name, _, _ = strings.Cut(name, "/")
		out = append(out, device+"/"+name)
	}
	return out
}

// Goal: no light that packets may use goes before both its routers have said that none
// do; nothing is left drained, whoever is killed and however words are lost; a router
// that is silent holds nothing up for longer than its time.
// Method: random jobs come and go on every kind of core; routers answer late, lose words,
// fall silent; the planner begins anew at any moment; each circuit that a switch takes
// away is compared with what routers do then. RINGLIGHT_DRAIN_RUNS sets the seeds of each.
func TestNoLightGoesUndrained(t *testing.T) {
	runs := 12
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_DRAIN_RUNS")); err == nil {
		runs = n
	}
	for _, k := range circuitKinds {
		t.Run(k.name, func(t *testing.T) {
			taken, asked := 0, 0
			for seed := range runs {
				a, b := drainRun(t, k.core(), uint64(seed))
				taken, asked = taken+a, asked+b
				if t.Failed() {
					return
				}
			}
			t.Logf("%d lights taken, %d asks", taken, asked)
			if k.core().Switches() > 0 && (taken < runs || asked < runs) {
				t.Errorf("the test shows little: %d lights taken, %d asks", taken, asked)
			}
		})
	}
}

func drainRun(t *testing.T, c *fabric.Core, seed uint64) (taken, asked int) {
	rnd := rand.New(rand.NewPCG(seed, 30))
	c.Drain = &fabric.Drain{WithinMillis: 500}
	w := startedWorld(t, c)
	r := &fakeRouters{w: w, drained: map[string]bool{}, silent: map[string]bool{}}
	w.takes = func(s int, a, b uint16) {
		if a == b {
			return
		}
		taken++
		for _, end := range w.ends(s, a, b) {
			if router, _, _ := strings.Cut(end, "/"); !r.drained[end] && !r.silent[router] {
				t.Errorf("seed %d at %v: switch %d takes %d to %d away, %s may use it\n%s", seed, w.now, s, a, b, end, w.show())
			}
		}
	}
	half := func() bool { return rnd.IntN(2) == 0 }
	pass := func(n int) {
		for range n {
			w.run(10 * time.Millisecond)
			r.work(half)
		}
	}
	names := []string{"a", "b", "c"}
	for range 10 {
		name := names[rnd.IntN(3)]
		if _, err := w.p.Jobs.Get(name); err == nil && half() {
			w.release(name)
		} else {
			n := 1 + rnd.IntN(4)
			wish := fmt.Sprintf(`{"circuits":{"gpus_total":%d}}`, 8*n)
			switch {
			case c.Direct != nil:
				wish = fmt.Sprintf(`{"circuits":{"servers":%d}}`, 2*n)
			case c.LeafSpine == nil:
				wish = fmt.Sprintf(`{"circuits":{"tp":4,"pp":2,"dp":%d}}`, 4*n+rnd.IntN(4))
			}
			w.put(name, wish) // may be there already with another
		}
		pass(rnd.IntN(40))
		if half() {
			w.start()
			pass(rnd.IntN(80))
		}
		if rnd.IntN(4) == 0 && c.Switches() > 0 {
			device, _ := c.EndOf(0, rnd.IntN(c.Ports()))
			r.silent[device] = device != "" && !r.silent[device]
		}
	}
	for end := w.now + 20*time.Second; w.now < end && !w.p.Core.Status().Quiet; { // with those that are silent
		pass(10)
	}
	if !w.p.Core.Status().Quiet {
		t.Errorf("seed %d: silent routers hold it up: %s", seed, w.show())
	}
	clear(r.silent)
	pass(200)
	if len(r.drained) > 0 || slices.ContainsFunc(w.p.Jobs.Routers(), func(x job.Router) bool { return len(x.Ports) > 0 }) {
		t.Errorf("seed %d: left drained: %v, %+v", seed, r.drained, w.p.Jobs.Routers())
	}
	for key := range w.store { // any order: whether there is one
		if strings.HasPrefix(key, "portdrain/") {
			t.Errorf("seed %d: left in the store: %s", seed, key)
		}
	}
	return taken, r.asked
}

// drainWorld is a core of pods with a job's light, and one that wants its place.
func drainWorld(t *testing.T, d fabric.Drain) *coreWorld {
	core := smallCore()
	core.Drain = &d
	w := startedWorld(t, core)
	w.put("a", `{"circuits":{"tp":4,"pp":2,"dp":10}}`)
	w.run(2 * time.Second)
	if v := w.job("a"); v.State != job.Ready || len(w.p.Jobs.Routers()) != 0 {
		t.Fatalf("light that nobody had needs no router: %+v, %+v", v, w.p.Jobs.Routers())
	}
	w.release("a")
	w.put("b", `{"circuits":{"tp":4,"pp":2,"dp":20}}`)
	return w
}

// lit counts lights of all switches.
func (w *coreWorld) lit() (n int) {
	for s := range w.switches {
		n += len(w.switches[s].light)
	}
	return n
}

// Goal: a stage that waits for routers says so to who asks - the job, circuit list, why,
// what the planner waits for -; one that says nothing for its time is an alarm, and its
// link moves, or where the description has it so stays until a word comes; words that do
// not fit are refused by field and limit.
// Method: a job goes and another comes, with routers that say nothing.
func TestStageWaitsForRouters(t *testing.T) {
	w := drainWorld(t, fabric.Drain{WithinMillis: 3000, Silent: fabric.SilentStay})
	before := w.lit()
	w.run(time.Second)
	routers := w.p.Jobs.Routers()
	if w.lit() != before || len(routers) == 0 || w.p.Core.Status().Quiet {
		t.Fatalf("%d lights of %d, %+v", w.lit(), before, routers)
	}
	first, port := routers[0].Router, routers[0].Ports[0]
	for _, x := range routers {
		for _, p := range x.Ports {
			if p.Drained && !port.Drained {
				first, port = x.Router, p
			}
		}
	}
	if !port.Drained || port.Held || port.Overdue || port.Since == 0 {
		t.Errorf("%+v", port)
	}
	waits := "a stage waits until routers have drained " + first + " " + port.Port
	if !strings.Contains(strings.Join(w.p.waits(), "; "), waits) {
		t.Errorf("%q", w.p.waits())
	}
	if jobs := w.jobs(); !strings.HasPrefix(jobs[len(jobs)-1].Reason, waits) {
		t.Errorf("%+v", jobs)
	}
	for _, x := range []struct {
		router, port string
		got          job.PortSaid
		code         proto.Code
		field        string
	}{
		{first, "ocs9", job.PortSaid{Drained: true}, proto.NotFound, "port"},
		{"pod9-spine9", port.Port, job.PortSaid{Drained: true}, proto.NotFound, "port"},
		{first, port.Port, job.PortSaid{}, proto.Conflict, "drained"},
		{"pod9-spine9", port.Port, job.PortSaid{}, proto.OK, ""}, // it is known to be in use
		{first, port.Port, job.PortSaid{Says: "12 routes have no other way"}, proto.OK, ""},
	} {
		if r := w.say(x.router, x.port, x.got); r.Code != x.code || r.Field != x.field {
			t.Errorf("%+v: %+v", x, r)
		}
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounRouted, Name: first + "/ports/" + port.Port, Text: `{"drained": 3}`}); r.Code != proto.Invalid || r.Field != "body" {
		t.Errorf("%+v", r)
	}
	if jobs := w.jobs(); !strings.HasSuffix(jobs[len(jobs)-1].Reason, ": 12 routes have no other way") || !strings.Contains(fmt.Sprint(w.p.Core.Facts(proto.FirstSwitch, -1)), "12 routes") {
		t.Errorf("%+v", jobs)
	}
	alarm := func() bool {
		return slices.ContainsFunc(w.ask(proto.OpRequest{Noun: proto.NounAlarms}).Alarms, func(a proto.AlarmStatus) bool { return a.Check == "routes" && a.Subject == first })
	}
	if alarm() {
		t.Error("an alarm before its time")
	}
	w.start()
	w.run(30 * time.Second)
	if w.lit() != before || !alarm() {
		t.Errorf("%d lights of %d, and %v", w.lit(), before, alarm())
	}
	for _, x := range w.p.Jobs.Routers() { // an operator speaks for them
		for _, p := range x.Ports {
			if r := w.say(x.Router, p.Port, job.PortSaid{Drained: p.Drained}); r.Code != proto.OK {
				t.Errorf("%+v", r)
			}
		}
	}
	w.run(2 * time.Second)
	if v := w.job("b"); v.State != job.Ready {
		t.Errorf("%+v", v)
	}
}

// Goal: where the description has routers drain nothing any more, a port that is still to
// be used again is no alarm at once, and is one after a minute.
// Method: a planner that starts with such a description while ports are drained.
func TestPortsAreReleasedWithoutDrains(t *testing.T) {
	w := drainWorld(t, fabric.Drain{WithinMillis: 60_000})
	w.run(100 * time.Millisecond)
	w.fab.Core.Drain = nil
	w.store[keyFabric] = w.fab.Encode()
	w.start()
	w.run(time.Second)
	overdue := func() (n, of int) {
		w.p.Jobs.Unrouted(func(string, job.RouterJob) {}, func(string, job.PortDrain) { n++ })
		for _, x := range w.p.Jobs.Routers() {
			for _, p := range x.Ports {
				if of++; p.Drained {
					t.Errorf("%s: %+v", x.Router, p)
				}
			}
		}
		return n, of
	}
	if n, of := overdue(); n > 0 || of == 0 {
		t.Errorf("%d of %d ports are late at once", n, of)
	}
	w.run(61 * time.Second)
	if n, of := overdue(); n != of || of == 0 {
		t.Errorf("%d of %d ports are late after a minute", n, of)
	}
}

// Goal: where the description lets it, a router that never answers keeps a link for its
// time and no longer, over a restart too, and is asked to use its port again until it
// says that it does; a stage that is not wanted any more drains nothing.
// Method: as above, and the job that wanted the place goes.
func TestSilentRouterIsMovedAllTheSame(t *testing.T) {
	w := drainWorld(t, fabric.Drain{WithinMillis: 3000})
	before := w.lit()
	w.run(2900 * time.Millisecond)
	if w.lit() != before {
		t.Fatalf("%d lights of %d", w.lit(), before)
	}
	w.run(400 * time.Millisecond)
	if w.lit() == before {
		t.Errorf("it waits for ever: %s", w.show())
	}
	w.run(10 * time.Second)
	if v := w.job("b"); v.State != job.Ready {
		t.Errorf("%+v", v)
	}
	left := w.p.Jobs.Routers()
	if len(left) == 0 || left[0].Ports[0].Drained {
		t.Errorf("they are to be used again: %+v", left)
	}
	for _, x := range left {
		for _, p := range x.Ports {
			w.say(x.Router, p.Port, job.PortSaid{})
		}
	}
	if left = w.p.Jobs.Routers(); len(left) != 0 {
		t.Errorf("%+v", left)
	}

	w = drainWorld(t, fabric.Drain{WithinMillis: 60_000})
	w.run(100 * time.Millisecond)
	for _, x := range w.p.Jobs.Routers() {
		for _, p := range x.Ports[1:] {
			w.say(x.Router, p.Port, job.PortSaid{Drained: true})
		}
	}
	lights := w.lit()
	w.put("a", `{"circuits":{"tp":4,"pp":2,"dp":10}}`)
	w.release("b")
	w.run(100 * time.Millisecond)
	if w.lit() != lights {
		t.Errorf("%d lights of %d", w.lit(), lights)
	}
}
