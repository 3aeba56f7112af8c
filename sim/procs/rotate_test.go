package procs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/proto"
	"ringlight/sim/step"
)

// refusals are what processes say of messages and connections that they did not take.
var refusals = regexp.MustCompile(`was not read|were not read|not taken|not believed|is refused|not let in|thrown out|Denied |not authori[sz]ed|certificate (verify failed|required|unknown|expired)`)

// calm is how long nothing may be refused when all have the new keys. chosen: two signs of
// life of a planner, and a round of telemetry of some.
const calm = 4 * time.Second

var certificate = moments[len(moments)-1]

// rotation is a key, or a certificate, that is replaced under load.
type rotation struct {
	what string
	do   func(context.Context)
	keys bool // of agents, which write them to their disks; else all are told whom to trust
}

// rotate replaces everything, one after the other. A job whose light nothing asks to change
// runs beside; with each a node of another ring loses its power and comes back.
func (k *keys) rotate(ctx context.Context) {
	a := &asking{run: k.run, others: map[int]bool{}}
	a.c = step.Got(a.client())
	a.stand(ctx)
	// Whose agent begins anew protects nobody for that moment.
	k.run.spared = func(n int) bool {
		return !a.others[n] || slices.ContainsFunc(k.begun, func(b int) bool { return max(n-b, b-n) <= k.run.f.K })
	}
	anIssuer := func(ctx context.Context, words ...string) {
		out := k.fresh()
		name := fmt.Sprintf("i%d", k.out)
		k.pki(ctx, append([]string{"issuer", name, "-out", out}, words...)...)
		k.hand()
		k.install(out+"/"+k.run.f.Name+"-issuer-"+name+".pem", "issuer.pem")
	}
	issuer := func(ctx context.Context) { anIssuer(ctx) }
	stolen := func(ctx context.Context) { anIssuer(ctx, "-stolen") }
	var former string // key that is to go
	for _, r := range []rotation{
		{"every node's key", func(ctx context.Context) { k.told(ctx, "trust", "renew") }, true},
		{"the issuer's key", issuer, true},
		{"the issuer's key again: the first counts no more", stolen, true},
		{"the planner's other key is told", func(ctx context.Context) {
			former = k.keyOf(ctx, k.run.f.Name+"/planner/a")
			k.told(ctx, "planner", "a", "-days", "30", "-out", k.fresh())
		}, false},
		{"the planner's key", func(ctx context.Context) {
			file := k.run.path(fmt.Sprintf("new%d/%s-planner-a", k.out, k.run.f.Name))
			k.install(file+".key", "planner.key")
			k.install(file+".pem", "planner.pem")
		}, false},
		{"the planner's former key counts no more", func(ctx context.Context) {
			if former == "" {
				step.Fail("there is none: -only %q leaves out the step before", k.run.Keys.Only)
			}
			k.told(ctx, "revoke", k.run.f.Name+"/planner/a", "-key", former)
		}, false},
		{"the operator's key", k.anotherOperator, false},
		{"the root, and an issuer by it", func(ctx context.Context) {
			k.told(ctx, "trust", "sign", "-new-root")
			issuer(ctx)
		}, true},
		{"the broker's certificate, by the new root", k.anotherCertificate, false},
	} {
		if !strings.Contains(r.what, k.run.Keys.Only) {
			continue
		}
		step.Within(r.what, func() { k.under(ctx, &r) })
		k.tally.Replaced = append(k.tally.Replaced, r.what)
		step.Within(r.what, func() { k.run.unchanged(a.before, "a job that nothing happened to", a.others) })
	}
	if k.tally.Faults == 0 {
		step.Fail("%d keys were replaced, and no node was lost meanwhile", len(k.tally.Replaced))
	}
}

// fresh is another folder for keys.
func (k *keys) fresh() string {
	k.out++
	return k.run.path(fmt.Sprintf("new%d", k.out))
}

// told hands on what the root is made to say.
func (k *keys) told(ctx context.Context, words ...string) {
	k.pki(ctx, words...)
	k.hand()
}

// keyOf is the number of a holder's key, of several the last one.
func (k *keys) keyOf(ctx context.Context, holder string) (id string) {
	var r struct {
		Keys []struct {
			Name string
			ID   string `json:"key_id"`
		}
	}
	step.Must(json.Unmarshal(step.Got(k.run.once(ctx, "ocsctl", "pki", "list", "-json", "-dir", k.run.path("pki"))), &r))
	for _, key := range r.Keys {
		if key.Name == holder {
			id = key.ID
		}
	}
	return id
}

// anotherOperator: the former key is refused when the new one is in use.
func (k *keys) anotherOperator(ctx context.Context) {
	holder := k.run.f.Name + "/op/alice"
	former := k.keyOf(ctx, holder)
	out := k.fresh()
	k.told(ctx, "operator", "alice", "-role", "admin", "-out", out)
	before := k.run.env
	k.operator(filepath.Base(out))
	k.run.serving(ctx)
	k.told(ctx, "revoke", holder, "-key", former)
	now := k.run.env
	defer func() { k.run.env = now }()
	await(ctx, procsBypass, "the operator's former key", func() (bool, string) {
		k.run.env = before
		_, err := k.run.once(ctx, "ocsctl", "ring", "list", "-broker", k.run.url, "-timeout", "2s")
		return err != nil, "is still answered"
	})
}

// anotherCertificate: of the planner, which may have the broker, and of a broker of its own.
func (k *keys) anotherCertificate(ctx context.Context) {
	if k.pki(ctx, "renew", k.run.path("head/planner.pem")); k.run.Keys.Embedded {
		return
	}
	out := k.fresh()
	k.pki(ctx, "broker", "b", "-host", "127.0.0.1", "-out", out)
	for _, end := range []string{".key", ".pem"} { // half of a pair is not taken
		name := k.run.f.Name + "-broker-b" + end
		step.Must(os.Rename(filepath.Join(out, name), k.run.path("pki/mosquitto/"+name)))
	}
	k.hand()
}

// under replaces something under load: some agents are killed while they change their
// keys, a node loses its power and comes back. Then nothing may be refused any more.
func (k *keys) under(ctx context.Context, r *rotation) {
	began, from := time.Now(), k.sizes()
	before := k.run.records()
	was := make([]shelf, k.run.f.Nodes)
	at, of := map[int]moment{}, map[int]shelf{}
	for n := range was {
		was[n] = shelfOf(k.run.folder(n))
		if r.keys && n%8 == k.turn%8 {
			at[n], of[n] = moments[1:][k.rnd.IntN(2)], was[n] // half a file, or the key
		}
	}
	r.do(ctx)
	k.cut(ctx, at, of)
	k.begun = slices.Sorted(maps.Keys(at))
	for _, n := range k.begun {
		k.run.startAgent(n)
	}
	faults, bypassed := k.tally.Faults, k.tally.Bypassed
	touched := k.loseOne(ctx)
	lost := proto.Count(k.tally.Faults-faults, "node")
	await(ctx, procsService, "what is new", func() (bool, string) {
		for n := range was {
			is := shelfOf(k.run.folder(n))
			_, waits := is["next.key"]
			if told := sameFile(filepath.Join(k.run.folder(n), "trust.cose"), k.run.path("pki/trust.cose")); !told || r.keys && (waits || !certificate.come(was[n], is)) {
				return false, fmt.Sprintf("node %d: has the trust document: %v; another key waits: %v", n, told, waits)
			}
		}
		return true, ""
	})
	k.run.serving(ctx)
	took := time.Since(began)
	meanwhile, _ := k.refusedSince(from)
	k.tally.Refused += meanwhile
	from = k.sizes()
	time.Sleep(calm)
	n, line := k.refusedSince(from)
	if k.tally.After += n; n > 0 {
		step.Fail("%d lines about what was refused when all had it: %s", n, line)
	}
	k.run.unchanged(before, r.what, touched)
	k.run.done(began, r.what, "all have it after %.1f s, %s without power (bypassed: %d) and back, %d agents killed meanwhile; %d lines about what was refused then, 0 after; no other light changed", took.Seconds(), lost, k.tally.Bypassed-bypassed, len(at), meanwhile)
}

// alone is how long the planner is held for neighbours to bypass a node by themselves.
// chosen: a bypass takes 10 ms of a machine with time for it.
const alone = 2 * time.Second

// loseOne takes a node's power, waits for the repair and gives it back. Keys are what is
// judged here: where every process changes its own just then, two neighbours may hear of the
// loss so far apart that they miss each other, and the planner's repair is waited for all
// the same. How many did not miss is told.
func (k *keys) loseOne(ctx context.Context) (touched map[int]bool) {
	rings := k.run.rings(ctx)
	k.turn++
	x, err := k.run.loser(rings, k.turn)
	if err != nil {
		return nil // every ring steps over somebody just now
	}
	k.tally.Faults++
	k.run.hold("planner", func() { // its repair would come into the bypass
		k.run.unpower(&x)
		if step.Attempt(func() { k.run.stepsOver(ctx, &x, alone) }) == nil {
			k.tally.Bypassed++
		}
		k.run.unchanged(x.before, "a node without power", x.touched())
	})
	k.run.repaired(ctx, x)
	touched = x.touched()
	for _, r := range k.run.rings(ctx) {
		for _, n := range r.Nodes {
			touched[n] = touched[n] || r.Ring == x.ring.Ring
		}
	}
	for _, n := range x.ring.Nodes {
		touched[n] = true
	}
	k.run.comeBack(ctx)
	return touched
}

// sizes are those of all logs.
func (k *keys) sizes() map[string]int {
	out := map[string]int{}
	for name := range k.run.runs { // any order: into a map
		out[name] = len(k.run.printed(name, 0))
	}
	return out
}

// refusedSince counts lines about what was refused since then, but for thieves.
func (k *keys) refusedSince(from map[string]int) (n int, last string) {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if strings.HasPrefix(name, "thief") {
			continue
		}
		for line := range strings.Lines(k.run.printed(name, from[name])) {
			if refusals.MatchString(line) {
				n++
				last = name + ": " + strings.TrimSpace(line)
			}
		}
	}
	return n, last
}

// beginAnew kills all agents, planner and broker: what is on disk is enough to come back.
func (k *keys) beginAnew(ctx context.Context) {
	began := time.Now()
	before := k.run.records()
	for n := range k.run.f.Nodes {
		k.run.signal(agentName(n), syscall.SIGKILL)
	}
	k.run.signal("planner", syscall.SIGKILL)
	if !k.run.Keys.Embedded {
		k.run.signal("broker", syscall.SIGKILL)
	}
	k.run.res.ProcsKilled += k.run.f.Nodes + 1
	k.run.startBroker()
	k.run.startPlanner()
	for n := range k.run.f.Nodes {
		k.run.startAgent(n)
	}
	k.run.serving(ctx)
	k.run.unchanged(before, "all killed", nil)
	k.run.done(began, "agents, planner and broker killed with -9, started again", "in service with what they had on disk; no light changed")
}
