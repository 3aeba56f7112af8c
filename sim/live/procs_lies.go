package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/proto"
	"ringlight/sim/hostile"
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
	*keys
	tally LiesResult
	chain string // what is wrong with the audit chain already
}

func (p *procs) lieAll(ctx context.Context) error {
	p.Keys.Embedded = true
	k := &keys{procs: p}
	x := &lying{keys: k}
	p.keys, p.res.Lies = k, &x.tally
	began := time.Now()
	for _, step := range []func(context.Context) error{p.lay, p.startBoards} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	for n := range p.f.Nodes {
		if err := p.startAgent(n); err != nil {
			return err
		}
	}
	if err := p.serving(ctx); err != nil {
		return err
	}
	p.done(began, fmt.Sprintf("%d nodes enrol, each with a key of its own", p.f.Nodes), "all is sealed; in service")
	for range 2 {
		took, err := x.quiet(ctx)
		if err != nil {
			return err
		}
		x.tally.Usual = max(x.tally.Usual, took.Milliseconds())
	}
	for _, u := range hostile.Untruths(p.Seed, p.Lies) {
		if err := x.try(ctx, &u); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.Out, "%d cases, %d held; a repair without a liar took %d ms at most\n", x.tally.Cases, x.tally.Held, x.tally.Usual)
	if n := len(x.tally.Broken); n > 0 {
		return fmt.Errorf("%d of %d lies did not hold", n, x.tally.Cases)
	}
	return nil
}

// quiet is a loss without a liar, repaired, and the board back.
func (x *lying) quiet(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	rings, err := x.rings(ctx)
	if err != nil {
		return 0, err
	}
	l, err := x.mended(rings, rings[0].Ring, -1)
	if err != nil {
		return 0, err
	}
	took, err := x.strike(ctx, &l)
	if err == nil {
		err = x.back(l.dead)
	}
	if err == nil {
		err = x.serving(ctx)
	}
	if err != nil {
		return took, err
	}
	x.done(began, fmt.Sprintf("node %d loses its power", l.dead), "ring %d is whole again after %d ms", l.ring.Ring, took.Milliseconds())
	return took, nil
}

// mended finds what can be lost and mended: an inner member of a ring, the last one first,
// that a spare can stand in for which is not the liar.
func (x *lying) mended(rings []procRing, own, liar int) (l loss, err error) {
	near := func(a, b int) bool {
		_, ok := x.f.Link(proto.NodeID(a), proto.NodeID(b))
		return ok
	}
	for _, l.ring = range slices.Backward(rings) {
		for i := 1; i < len(l.ring.Nodes)-1 && l.ring.Ring != own; i++ {
			l.left, l.dead, l.right = l.ring.Nodes[i-1], l.ring.Nodes[i], l.ring.Nodes[i+1]
			for s := range x.f.Nodes {
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
func (x *lying) strike(ctx context.Context, l *loss) (time.Duration, error) {
	if err := x.unpower(l); err != nil {
		return 0, err
	}
	return await(ctx, lieRepair, "a ring is whole", func() (bool, string) {
		rings, err := x.rings(ctx)
		i := slices.IndexFunc(rings, func(r procRing) bool { return r.Ring == l.ring.Ring })
		if err != nil || i < 0 {
			return false, fmt.Sprint("no such ring: ", err)
		}
		r := rings[i]
		return r.State == "in_service" && !slices.Contains(r.Nodes, l.dead), fmt.Sprintf("ring %d is %s with %v", r.Ring, r.State, r.Nodes)
	})
}

func (x *lying) back(n int) error {
	_, err := x.tell(boardName(n), "power on")
	if err == nil {
		err = x.startAgent(n)
	}
	return err
}

// alarms are those that stand.
func (x *lying) alarms(ctx context.Context) (list []struct {
	ID, What, Why string
	Node          *int
}, err error) {
	raw, err := x.once(ctx, "ocsctl", "alarm", "list", "-json", "-broker", x.url)
	r := struct{ Alarms any }{&list}
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return list, err
}

// lieTrial is one case under way.
type lieTrial struct {
	*lying
	u     *hostile.Untruth
	l     *hostile.Liar
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
func (x *lying) try(ctx context.Context, u *hostile.Untruth) error {
	began := time.Now()
	rings, err := x.rings(ctx)
	if err != nil {
		return err
	}
	t := lieTrial{lying: x, u: u, hurt: -1, how: "not named"}
	var id int
	id, t.own = x.whoLies(rings, u.Member)
	t.l = &hostile.Liar{Fabric: x.f.Name, Node: proto.NodeID(id), Broker: x.toAgents, Identity: x.folder(id)}
	alice := x.path("pki/" + x.f.Name + "-op-alice")
	if err := t.l.Learn(ctx, x.url, x.path("head/ca.pem"), alice+".pem", alice+".key"); err != nil {
		return err
	}
	if t.lost, err = x.mended(rings, t.own.Ring, id); err != nil {
		return err
	}
	if !u.Beside {
		x.signal(agentName(id), syscall.SIGKILL)
	}
	lies, stop := context.WithCancel(ctx)
	spoke := make(chan error, 1)
	go func() { spoke <- t.l.Lie(lies, u) }()
	err = t.during(ctx)
	stop()
	if e := <-spoke; e != nil {
		t.fails("%v", e)
	}
	if err != nil {
		return err
	}
	well, err := t.after(ctx)
	if err != nil {
		return err
	}
	x.tally.Cases++
	kind := map[bool]string{false: "spare", true: "member"}[u.Member]
	x.done(began, fmt.Sprintf("%s %d: %s", kind, id, u.Name), "ring %d whole after %d ms; %s; well after %.1f s; %d messages%s", t.lost.ring.Ring, t.took.Milliseconds(),
		t.how, well.Seconds(), t.l.Sent, strings.Join(append([]string{""}, t.broke...), "\n    BROKEN "))
	if len(t.broke) == 0 {
		x.tally.Held++
		return nil
	}
	x.tally.Broken = append(x.tally.Broken, fmt.Sprintf("%s: %s", u.Name, strings.Join(t.broke, "; ")))
	if well == lieOver { // who goes on needs a planner that plans
		x.signal("planner", syscall.SIGKILL)
		if err := x.startPlanner(); err != nil {
			return err
		}
		return x.serving(ctx)
	}
	return nil
}

// during has an unrelated board lose its power, and looks who is named and whose light
// has changed.
func (t *lieTrial) during(ctx context.Context) (err error) {
	time.Sleep(lieFirst)
	if t.u.Answers {
		t.hurt = t.own.Nodes[len(t.own.Nodes)-1] // whose loss is known without the liar's word
		if _, err := t.tell(boardName(t.hurt), "power off"); err != nil {
			return err
		}
		t.signal(agentName(t.hurt), syscall.SIGKILL)
	}
	t.took, err = t.strike(ctx, &t.lost)
	if limit := 2*time.Duration(t.tally.Usual)*time.Millisecond + time.Second; err != nil || t.took > limit {
		t.fails("(a) an unrelated ring is whole after %d ms, usually %d: %v", t.took.Milliseconds(), t.tally.Usual, err)
	}
	time.Sleep(nameWithin - min(nameWithin, lieFirst+t.took))
	list, err := t.alarms(ctx)
	if err != nil {
		return err
	}
	id := int(t.l.Node)
	for _, a := range list {
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
	rings, err := t.rings(ctx)
	if err != nil {
		return err
	}
	may := t.lost.touched()
	if t.u.Answers {
		rings = append(rings, t.own)
	}
	for _, r := range rings {
		for _, n := range r.Nodes {
			may[n] = may[n] || r.Ring == t.lost.ring.Ring || t.u.Answers && r.Ring == t.own.Ring
		}
	}
	if err := t.unchanged(t.lost.before, t.u.Name, may); err != nil {
		t.fails("(d) %v", err)
	}
	return nil
}

// after brings back who is away, and waits until all is well.
func (t *lieTrial) after(ctx context.Context) (well time.Duration, err error) {
	err = t.back(t.lost.dead)
	if err == nil && t.hurt >= 0 {
		err = t.back(t.hurt)
	}
	if err == nil && !t.u.Beside {
		err = t.startAgent(int(t.l.Node))
	}
	if err != nil {
		return 0, err
	}
	well, err = await(ctx, lieOver, "all is well", func() (bool, string) {
		rings, err := t.rings(ctx)
		list, err2 := t.alarms(ctx)
		nodes, err3 := t.nodes(ctx)
		n := online(nodes)
		whole := len(rings) == t.res.Rings && !slices.ContainsFunc(rings, func(r procRing) bool { return r.State != "in_service" })
		var ids []string
		for _, a := range list {
			ids = append(ids, a.ID+": "+a.Why)
		}
		return errors.Join(err, err2, err3) == nil && whole && len(list) == 0 && n == t.f.Nodes, fmt.Sprintf("%d nodes online, %v, alarms %q", n, rings, ids)
	})
	if err != nil {
		t.fails("(e) %v", err)
	}
	if _, err := t.once(ctx, "ocsctl", "audit", "verify", "-broker", t.url); err != nil && err.Error() != t.chain {
		t.chain = err.Error()
		t.fails("(c) %v", err)
	}
	return well, nil
}

// whoLies is an inner member of the first ring, or the spare nearest to it.
func (x *lying) whoLies(rings []procRing, member bool) (id int, own procRing) {
	if own = rings[0]; member {
		return own.Nodes[1], own
	}
	for id = range x.f.Nodes {
		if !slices.ContainsFunc(rings, func(r procRing) bool { return slices.Contains(r.Nodes, id) }) {
			break
		}
	}
	return id, own
}
