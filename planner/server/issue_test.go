package server

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// rack is a planner with its own broker that gives certificates, and nodes that have
// tokens and nothing else.
type rack struct {
	t      *testing.T
	folder *pki.Folder
	url    string
	http   string // where it is served; "": nowhere
	dir    string
	files  map[string]string // of the planner
	stop   func() error

	mu     sync.Mutex
	alarms map[string]bool
}

func (r *rack) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func newRack(t *testing.T, nodes int) *rack {
	t.Helper()
	r := layRack(t, nodes)
	r.start("127.0.0.1:0")
	return r
}

// layRack makes all that is needed to start one.
func layRack(t *testing.T, nodes int) *rack {
	t.Helper()
	r := &rack{t: t, dir: t.TempDir(), alarms: map[string]bool{}, files: map[string]string{}}
	var err error
	r.folder, err = pki.Init(filepath.Join(r.dir, "pki"), "f1", "cluster.example")
	r.must(err)
	own, err := r.folder.Issue(pki.Request{Names: []proto.Holder{{Fabric: "f1", Kind: proto.HolderPlanner, ID: "a"}}, Role: proto.RolePlanner, Days: 30})
	r.must(err)
	issuer, err := r.folder.Issuer(pki.Request{Days: 30}, "a")
	r.must(err)
	r.tokens(nodes)
	r.files["cert"], r.files["key"], r.files["issuer"] = own[0].CertFile, own[0].KeyFile, issuer.KeyFile
	r.files["ca"], r.files["trust"] = r.folder.Files()
	return r
}

func (r *rack) tokens(nodes int) {
	r.t.Helper()
	q := pki.Request{Days: 7, Out: filepath.Join(r.dir, "tokens")}
	for n := range nodes {
		q.Names = append(q.Names, proto.Topics{Fabric: "f1"}.NodeHolder(proto.NodeID(n)))
	}
	_, err := r.folder.Tokens(q)
	r.must(err)
}

func (r *rack) start(listen string) {
	r.t.Helper()
	ready := make(chan string, 1)
	state := filepath.Join(r.dir, "planner.db")
	cfg := testConfig("", state)
	cfg.Fabric.Name = "f1"
	cfg.Listen, cfg.CAFile, cfg.CertFile, cfg.KeyFile = listen, r.files["ca"], r.files["cert"], r.files["key"]
	cfg.Seals = Seals{Mode: guard.Enforce, TrustFile: r.files["trust"], Kept: state + ".trust", Reports: true, Issuer: r.files["issuer"]}
	cfg.Ready = func(broker string, _ planner.Config) { ready <- broker }
	cfg.HTTP, cfg.HTTPReady = r.http, func(url string) { r.http = url }
	cfg.Log = slog.New(slog.NewTextHandler(r.t.Output(), nil))
	cfg.Observe = func(p *planner.Planner) {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.alarms)
		for _, a := range p.Alarms.List() {
			r.alarms[a.ID] = true
		}
	}
	r.stop = inProcess(r.t, cfg)
	select {
	case r.url = <-ready:
	case <-time.After(20 * time.Second):
		r.t.Fatal("the planner does not begin")
	}
}

// enrolled is a node.
type enrolled struct {
	*rack
	id    proto.NodeID
	state string
	token string
	who   *guard.Identity
	guard *guard.Guard
	link  *mqtt.Link
	agent *fakeAgent
}

func (r *rack) node(n int, state string) *enrolled {
	return &enrolled{rack: r, id: proto.NodeID(n), state: filepath.Join(r.dir, state), token: filepath.Join(r.dir, "tokens", fmt.Sprintf("f1-enrol-%d.token", n))}
}

// enrol asks until there is a certificate, or ctx ends.
func (e *enrolled) enrol(ctx context.Context, log *slog.Logger) (err error) {
	if e.who, err = guard.OpenIdentity(e.state, "f1", e.id, log); err != nil || e.who.Enrolled() {
		return err
	}
	to := e.config()
	to.ClientID = fmt.Sprintf("f1/enrol/%d", e.id)
	to.Subscriptions, to.CAFile, to.CertFile, to.KeyFile = e.who.Enrolling(), e.token, e.token, e.token
	l, err := mqtt.Dial(to)
	if err != nil {
		return err
	}
	defer l.Close()
	return e.who.Enrol(ctx, e.token, l)
}

func (e *enrolled) config() mqtt.Config {
	return mqtt.Config{Broker: e.url, Ordered: true, MinReconnect: 5 * time.Millisecond, MaxReconnect: 50 * time.Millisecond}
}

// serve connects with the certificate, and says that it is there.
func (e *enrolled) serve() {
	e.t.Helper()
	f1 := proto.Topics{Fabric: "f1"}
	pair, ca, trust := guard.IdentityFiles(e.state)
	var err error
	e.guard, err = guard.New(guard.Config{Mode: guard.Enforce, Fabric: "f1", Role: proto.RoleNode, KeyFile: pair, TrustFile: trust, Kept: trust, Reports: true, Hear: e.who.Hear})
	e.must(err)
	to := e.config()
	to.ClientID, to.Guard, to.CAFile, to.CertFile, to.KeyFile = f1.NodeClient(e.id), e.guard, ca, pair, pair
	to.Subscriptions = []string{f1.Trust(), f1.CRT(e.id), f1.Planner(), f1.Desired(e.id), f1.Command(e.id), f1.EveryDecision()}
	e.link, err = mqtt.Dial(to)
	e.must(err)
	e.who.Attach(e.guard, e.link.Send, e.link.Again)
	done := make(chan struct{})
	e.t.Cleanup(func() { e.link.Close(); <-done })
	e.agent = &fakeAgent{t: e.t, id: e.id, topics: f1, link: e.link}
	go func() {
		defer close(done)
		for p := range e.link.Recv() {
			e.agent.receive(p)
		}
	}()
}

func (e *enrolled) key() seal.KeyID {
	raw, err := os.ReadFile(filepath.Join(e.state, "identity.pem"))
	e.must(err)
	key, err := seal.ParseKey(raw)
	e.must(err)
	return seal.IDOf(key.Public().(ed25519.PublicKey))
}

func (r *rack) wait(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(40 * time.Second); !ok(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("never: %s", what)
		}
	}
}

func (r *rack) stands(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alarms[id]
}

// Goal: nodes get their certificates with nothing but tokens, with retries, cuts and
// over a restart of the planner; a thief is refused and stands as an alarm until the
// node is revoked; every key - nodes, issuer, root, planner and broker - is replaced
// while all stay connected. Method: the planner with its broker over TLS, eight nodes
// with real identities, links and guards.
func TestNodesEnrolAndKeysRotate(t *testing.T) {
	t.Parallel()
	const nodes = 8
	r := newRack(t, nodes)
	quiet := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	// Node 3 loses its power when its key is made, and comes with it later.
	cut, short := context.WithCancel(ctx)
	short()
	three := r.node(3, "node3")
	r.must(os.MkdirAll(three.state, 0o700))
	if err := three.enrol(cut, quiet); err == nil {
		t.Error("a cut one has its certificate")
	}
	all := make([]*enrolled, nodes)
	var done sync.WaitGroup
	for n := range all {
		all[n] = r.node(n, fmt.Sprint("node", n))
		done.Go(func() {
			if err := all[n].enrol(ctx, quiet); err != nil {
				t.Errorf("node %d: %v", n, err)
			}
		})
	}
	done.Wait()
	if t.Failed() {
		return
	}
	for _, e := range all {
		e.serve()
	}
	r.wait("all connected", func() bool {
		for _, e := range all {
			if !e.link.Up() {
				return false
			}
		}
		return true
	})
	// A thief, and then one who plays the true node's files again.
	var told strings.Builder
	thief := r.node(5, "thief")
	brief, end := context.WithTimeout(ctx, 2*time.Second)
	if err := thief.enrol(brief, slog.New(slog.NewTextHandler(&told, nil))); err == nil || thief.who.Enrolled() || !strings.Contains(told.String(), "ocsctl pki revoke f1/n/5") {
		t.Errorf("a thief: %v, told %q", err, told.String())
	}
	end()
	r.wait("the alarm", func() bool { return r.stands("5/token-used-twice") })
	if !all[5].link.Up() {
		t.Error("the true node is thrown out for a thief")
	}
	// Every key of a node is replaced.
	before := map[proto.NodeID]seal.KeyID{}
	look := func() {
		for _, e := range all {
			before[e.id] = e.key()
		}
	}
	changed := func() bool {
		for _, e := range all {
			if e.key() == before[e.id] || !e.link.Up() {
				return false
			}
		}
		return true
	}
	look()
	r.must(r.folder.Renewal())
	r.wait("other keys of all nodes", changed)
	// A revoked node is out, its token of before worth nothing; a new one lets it in.
	_, err := r.folder.Revoke("f1/n/5", "")
	r.must(err)
	r.wait("node 5 out", func() bool {
		return !all[5].link.Up() && strings.Contains(strings.ToLower(fmt.Sprint(all[5].link.Err())), "not auth")
	})
	all[5].link.Abandon()
	r.wait("no alarm any more", func() bool { return !r.stands("5/token-used-twice") })
	brief, end = context.WithTimeout(ctx, 2*time.Second)
	defer end()
	told.Reset()
	if again := r.node(5, "again"); again.enrol(brief, slog.New(slog.NewTextHandler(&told, nil))) == nil || !strings.Contains(told.String(), "ocsctl pki token 5") {
		t.Errorf("a token of before: %q", told.String())
	}
	r.must(os.RemoveAll(filepath.Join(r.dir, "tokens")))
	r.tokens(nodes)
	all[5] = r.node(5, "anew")
	r.must(all[5].enrol(ctx, quiet))
	all[5].serve()
	// Root, issuer, planner, broker; then the former ones away.
	look()
	r.must(r.folder.NewRoot())
	next := filepath.Join(r.dir, "next")
	issuer, err := r.folder.Issuer(pki.Request{Days: 30, Out: next}, "b")
	r.must(err)
	r.must(os.Rename(issuer.KeyFile, r.files["issuer"]))
	r.wait("keys by the other issuer", changed)
	former, err := pki.ReadKey(r.files["key"])
	r.must(err)
	own, err := r.folder.Issue(pki.Request{Names: []proto.Holder{{Fabric: "f1", Kind: proto.HolderPlanner, ID: "a"}}, Role: proto.RolePlanner, Days: 30, Out: next})
	r.must(err)
	edition := r.folder.Trust.Edition
	r.wait("both keys of the planner are known to all", func() bool {
		for _, e := range all {
			if e.guard.Trust().Edition < edition {
				return false
			}
		}
		return true
	})
	r.must(os.Rename(own[0].KeyFile, r.files["key"]))
	r.must(os.Rename(own[0].CertFile, r.files["cert"]))
	// A node that comes anew sees the broker's other certificate, by the other root.
	all[1].link.Again()
	r.wait("node 1 again", func() bool { return all[1].link.Stats().Connects >= 4 && all[1].link.Up() })
	opened := func() (n uint64) {
		for _, e := range all {
			c := e.guard.Counts()
			n += c.Refused.Sum()
		}
		return n
	}
	was := all[0].guard.Counts()
	r.wait("signs of life by the planner's other key", func() bool { return all[0].guard.Counts().Opened[guard.Planners] > was.Opened[guard.Planners]+1 })
	_, err = r.folder.Revoke("f1/planner/a", seal.IDOf(former.Public().(ed25519.PublicKey)).String())
	r.must(err)
	was, edition = all[0].guard.Counts(), r.folder.Trust.Edition
	r.wait("the former key away, and signs of life", func() bool {
		return all[0].guard.Trust().Edition == edition && all[0].guard.Counts().Opened[guard.Planners] > was.Opened[guard.Planners]+2
	})
	if n := opened(); n != 0 {
		t.Errorf("%d messages were refused meanwhile", n)
	}
	for _, e := range all {
		if s := e.link.Stats(); s.Losses > 3 {
			t.Errorf("node %d lost its link %d times", e.id, s.Losses)
		}
	}
}

// Goal: a node that was away while everything was replaced ten times - nodes' keys, issuers,
// root, planner and the certificate of the broker - comes back by itself, with what is in its
// folder, and has another key soon; but not by an issuer that was stolen.
// Method: two nodes enrol and go; the planner stands still meanwhile; then one is back, and
// after a theft the other.
func TestNodeAwayForTenRotationsOfEverything(t *testing.T) {
	r := newRack(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	one, two := r.node(0, "node0"), r.node(1, "node1")
	r.must(one.enrol(ctx, slog.New(slog.DiscardHandler)))
	r.must(two.enrol(ctx, slog.New(slog.DiscardHandler)))
	before := one.key()
	r.must(r.stop())
	planner := proto.Holder{Fabric: "f1", Kind: proto.HolderPlanner, ID: "a"}
	former := seal.IDOf(r.folder.Trust.Keys[0].Public[:])
	issuer := func(name string, stolen bool) {
		t.Helper()
		i, err := r.folder.Issuer(pki.Request{Days: 30, Out: filepath.Join(r.dir, name), Stolen: stolen}, name)
		r.must(err)
		r.files["issuer"] = i.KeyFile
	}
	for n := range 10 {
		r.must(r.folder.Renewal())
		issuer(fmt.Sprint("b", n), false)
		r.must(r.folder.NewRoot())
		issuer(fmt.Sprint("c", n), false)
		own, err := r.folder.Issue(pki.Request{Names: []proto.Holder{planner}, Role: proto.RolePlanner, Days: 30, Out: filepath.Join(r.dir, fmt.Sprint("planner", n))})
		r.must(err)
		_, err = r.folder.Revoke(planner.String(), former.String())
		r.must(err)
		r.files["cert"], r.files["key"], former = own[0].CertFile, own[0].KeyFile, own[0].Key
	}
	r.start("127.0.0.1:0")
	one.serve()
	r.wait("node 0 with another key, by the last issuer", func() bool {
		return one.link.Up() && one.key() != before && one.guard.Trust().Edition == r.folder.Trust.Edition
	})
	issuer("d", true)
	r.wait("the planner knows of the theft", func() bool { return one.guard.Trust().Edition == r.folder.Trust.Edition })
	two.serve()
	r.wait("node 1, whose key counts no more, is refused", func() bool {
		err := two.link.Err()
		return err != nil && strings.Contains(err.Error(), "ocsctl pki token")
	})
}
