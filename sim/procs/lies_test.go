package procs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/proto"
	"ringlight/sim/step"
)

// LiesResult is what came of nodes that lied with their own keys.
type LiesResult struct {
	Cases  int      `json:"cases"`
	Held   int      `json:"held"`
	Usual  int64    `json:"usual_ms"` // of a repair without a liar, the longer of two
	Broken []string `json:"broken"`
}

// Waits of a case.
const (
	lieFirst   = time.Second      // from its begin to the loss of an unrelated board
	nameWithin = 5 * time.Second  // from its begin until the one that lies is named
	lieRepair  = 30 * time.Second // who waits for a repair gives up
	lieOver    = time.Minute      // from its end until all is well
)

// lying is a run of them. Every node has a key of its own, all is sealed, and the
// planner is the broker.
type lying struct {
	run   *procs
	tally LiesResult
	chain string // what is wrong with the audit chain already
}

func (p *procs) lieAll(ctx context.Context) {
	p.Keys.Embedded = true
	x := &lying{run: p}
	p.keys, p.res.Lies = &keys{run: p}, &x.tally
	began := time.Now()
	p.lay(ctx)
	p.startBoards(ctx)
	for n := range p.f.Nodes {
		p.startAgent(n)
	}
	p.serving(ctx)
	p.done(began, fmt.Sprintf("%d nodes enrol, each with a key of its own", p.f.Nodes), "all is sealed; in service")
	for range 2 {
		took := x.quiet(ctx)
		x.tally.Usual = max(x.tally.Usual, took.Milliseconds())
	}
	for _, u := range untruths(p.Seed, p.Lies) {
		x.try(ctx, &u)
	}
	fmt.Fprintf(p.Out, "%d cases, %d held; a repair without a liar took %d ms at most\n", x.tally.Cases, x.tally.Held, x.tally.Usual)
	if n := len(x.tally.Broken); n > 0 {
		step.Fail("%d of %d lies did not hold", n, x.tally.Cases)
	}
}

// quiet is a loss without a liar, repaired, and the board back.
func (x *lying) quiet(ctx context.Context) time.Duration {
	began := time.Now()
	rings := x.run.rings(ctx)
	l := step.Got(x.mended(rings, rings[0].Ring, -1))
	took := x.strike(ctx, &l)
	x.run.plugIn(l.dead)
	x.run.serving(ctx)
	x.run.done(began, fmt.Sprintf("node %d loses its power", l.dead), "ring %d is whole again after %d ms", l.ring.Ring, took.Milliseconds())
	return took
}

// mended finds what can be lost and mended: an inner member of a ring, the last one first,
// that a spare can stand in for which is not the liar.
func (x *lying) mended(rings []procRing, own, liar int) (l loss, err error) {
	near := func(a, b int) bool {
		_, ok := x.run.f.Link(proto.NodeID(a), proto.NodeID(b))
		return ok
	}
	for _, l.ring = range slices.Backward(rings) {
		for i := 1; i < len(l.ring.Nodes)-1 && l.ring.Ring != own; i++ {
			l.left, l.dead, l.right = l.ring.Nodes[i-1], l.ring.Nodes[i], l.ring.Nodes[i+1]
			for s := range x.run.f.Nodes {
				if s == liar || slices.ContainsFunc(rings, func(r procRing) bool { return slices.Contains(r.Nodes, s) }) {
					continue
				}
				if near(l.left, s) && near(s, l.right) || near(l.left, l.right) && (near(s, l.ring.Nodes[0]) || near(s, l.ring.Nodes[len(l.ring.Nodes)-1])) {
					return l, nil
				}
			}
		}
	}
	return l, fmt.Errorf("rings %v: want one with a spare for an inner node", rings)
}

// strike takes a node's supply, and waits until its ring is whole without it.
func (x *lying) strike(ctx context.Context, l *loss) time.Duration {
	x.run.unpower(l)
	return await(ctx, lieRepair, "a ring is whole", func() (bool, string) {
		rings := x.run.rings(ctx)
		i := slices.IndexFunc(rings, func(r procRing) bool { return r.Ring == l.ring.Ring })
		if i < 0 {
			return false, "no such ring"
		}
		r := rings[i]
		return r.State == "in_service" && !slices.Contains(r.Nodes, l.dead), fmt.Sprintf("ring %d is %s with %v", r.Ring, r.State, r.Nodes)
	})
}

// procAlarm is an alarm as ocsctl tells of it.
type procAlarm struct {
	ID, What, Why string
	Node          *int
}

// alarms are those that stand.
func (p *procs) alarms(ctx context.Context) []procAlarm {
	var r struct{ Alarms []procAlarm }
	p.ctl(ctx, &r, "alarm", "list")
	return r.Alarms
}

// lieTrial is one case under way.
type lieTrial struct {
	run   *procs
	of    *lying
	u     *untruth
	l     *liar
	own   procRing // the liar's, or that beside it
	lost  loss     // in an unrelated ring
	hurt  int      // of the own ring, so that its members are asked something; -1: nobody
	took  time.Duration
	how   string
	broke []string
}

func (t *lieTrial) fails(format string, args ...any) {
	t.broke = append(t.broke, fmt.Sprintf(format, args...))
}

// try is one case.
func (x *lying) try(ctx context.Context, u *untruth) {
	began := time.Now()
	rings := x.run.rings(ctx)
	t := lieTrial{run: x.run, of: x, u: u, hurt: -1, how: "not named"}
	var id int
	id, t.own = x.whoLies(rings, u.Member)
	t.l = &liar{Fabric: x.run.f.Name, Node: proto.NodeID(id), Broker: x.run.toAgents, Identity: x.run.folder(id)}
	alice := x.run.path("pki/" + x.run.f.Name + "-op-alice")
	step.Must(t.l.Learn(ctx, x.run.url, x.run.path("head/ca.pem"), alice+".pem", alice+".key"))
	t.lost = step.Got(x.mended(rings, t.own.Ring, id))
	if !u.Beside {
		x.run.signal(agentName(id), syscall.SIGKILL)
	}
	lies, stop := context.WithCancel(ctx)
	spoke := make(chan error, 1)
	go func() { spoke <- t.l.Lie(lies, u) }()
	err := step.Attempt(func() { t.during(ctx) })
	stop()
	if e := <-spoke; e != nil {
		t.fails("%v", e)
	}
	step.Must(err)
	well := t.after(ctx)
	x.tally.Cases++
	kind := map[bool]string{false: "spare", true: "member"}[u.Member]
	x.run.done(began, fmt.Sprintf("%s %d: %s", kind, id, u.Name), "ring %d whole after %d ms; %s; well after %.1f s; %d messages%s", t.lost.ring.Ring, t.took.Milliseconds(),
		t.how, well.Seconds(), t.l.Sent, strings.Join(append([]string{""}, t.broke...), "\n    BROKEN "))
	if len(t.broke) == 0 {
		x.tally.Held++
		return
	}
	x.tally.Broken = append(x.tally.Broken, fmt.Sprintf("%s: %s", u.Name, strings.Join(t.broke, "; ")))
	if well == lieOver { // going on needs a planner that plans
		x.run.signal("planner", syscall.SIGKILL)
		x.run.startPlanner()
		x.run.serving(ctx)
	}
}

// during has an unrelated board lose its power, and looks which device is named and whose light
// has changed.
func (t *lieTrial) during(ctx context.Context) {
	time.Sleep(lieFirst)
	if t.u.Answers {
		t.hurt = t.own.Nodes[len(t.own.Nodes)-1] // whose loss is known without the liar's word
		t.run.unplug(t.hurt)
	}
	t.took = lieRepair
	err := step.Attempt(func() { t.took = t.of.strike(ctx, &t.lost) })
	if limit := 2*time.Duration(t.of.tally.Usual)*time.Millisecond + time.Second; err != nil || t.took > limit {
		t.fails("(a) an unrelated ring is whole after %d ms, usually %d: %v", t.took.Milliseconds(), t.of.tally.Usual, err)
	}
	time.Sleep(nameWithin - min(nameWithin, lieFirst+t.took))
	id := int(t.l.Node)
	for _, a := range t.run.alarms(ctx) {
		switch {
		case a.Node != nil && *a.Node == id || strings.Contains(a.What+" "+a.Why+" ", fmt.Sprintf("node %d ", id)):
			t.how = "named: " + a.What
		case a.Node != nil && *a.Node != t.lost.dead && *a.Node != t.hurt && strings.Count(a.ID, "/") == 1:
			t.fails("(b) blamed: %s: %s", a.ID, a.Why)
		}
	}
	if t.how == "not named" && t.u.Named {
		t.fails("(b) not named")
	}
	rings := t.run.rings(ctx)
	may := t.lost.touched()
	if t.u.Answers {
		rings = append(rings, t.own)
	}
	for _, r := range rings {
		for _, n := range r.Nodes {
			may[n] = may[n] || r.Ring == t.lost.ring.Ring || t.u.Answers && r.Ring == t.own.Ring
		}
	}
	if err := step.Attempt(func() { t.run.unchanged(t.lost.before, t.u.Name, may) }); err != nil {
		t.fails("(d) %v", err)
	}
}

// after brings back devices that are away, and waits until all is well.
func (t *lieTrial) after(ctx context.Context) (well time.Duration) {
	t.run.plugIn(t.lost.dead)
	if t.hurt >= 0 {
		t.run.plugIn(t.hurt)
	}
	if !t.u.Beside {
		t.run.startAgent(int(t.l.Node))
	}
	well = lieOver
	judged := func() (bool, string) {
		rings, list, n := t.run.rings(ctx), t.run.alarms(ctx), online(t.run.nodes(ctx))
		whole := len(rings) == t.run.res.Rings && !slices.ContainsFunc(rings, func(r procRing) bool { return r.State != "in_service" })
		var ids []string
		for _, a := range list {
			ids = append(ids, a.ID+": "+a.Why)
		}
		return whole && len(list) == 0 && n == t.run.f.Nodes, fmt.Sprintf("%d nodes online, %v, alarms %q", n, rings, ids)
	}
	if err := step.Attempt(func() { well = await(ctx, lieOver, "all is well", judged) }); err != nil {
		t.fails("(e) %v", err)
	}
	if _, err := t.run.once(ctx, "ocsctl", "audit", "verify", "-broker", t.run.url); err != nil && err.Error() != t.of.chain {
		t.of.chain = err.Error()
		t.fails("(c) %v", err)
	}
	return well
}

// whoLies is an inner member of the first ring, or the spare nearest to it.
func (x *lying) whoLies(rings []procRing, member bool) (id int, own procRing) {
	if own = rings[0]; member {
		return own.Nodes[1], own
	}
	for id = range x.run.f.Nodes {
		if !slices.ContainsFunc(rings, func(r procRing) bool { return slices.Contains(r.Nodes, id) }) {
			break
		}
	}
	return id, own
}
