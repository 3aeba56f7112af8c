package procs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ringlight/planner/fabric"
	"ringlight/sim/freeport"
	"ringlight/sim/step"
)

// KeysConfig is a cluster whose nodes have nothing but tokens, and whose every key is
// replaced under load, in place of all that.
type KeysConfig struct {
	Cuts     int  // how often each agent is killed while it enrols; 0: none of all this
	Embedded bool // the planner's own broker is used, not that of a process of its own
	// Only is what is replaced, by a part of its name, for a short run; "": everything.
	Only string
}

// KeysResult is what became of that.
type KeysResult struct {
	CutAt    map[string]int `json:"cut_at"`   // by what had come to an agent's folder
	Vouched  int            `json:"vouched"`  // keys that tokens brought
	Refused  int            `json:"refused"`  // lines about messages that were refused while keys changed
	After    int            `json:"after"`    // ... when all had the new ones; more than 0 is an error
	Faults   int            `json:"faults"`   // nodes that lost their power meanwhile
	Bypassed int            `json:"bypassed"` // ... that their neighbours stepped over by themselves
	Replaced []string       `json:"replaced"` // keys and certificates
}

// keysParams: rings of four, a spare for each four nodes.
func keysParams(nodes int) fabric.Params {
	p := procsParams
	p.Nodes, p.Spares = nodes, nodes/4
	return p
}

// keys is a run of it. Everything is done with the commands of docs/security.md.
type keys struct {
	run   *procs
	tally KeysResult
	rnd   *rand.Rand
	out   int   // folders that new keys went to
	turn  int   // of the faults
	thief []int // nodes whose tokens were stolen
	begun []int // whose agents were begun anew just now
}

const (
	// chosen: more agents that begin at once would make one another slow.
	enrolAtOnce = 8
	// lookEvery is how closely an agent's folder is looked at that is to be killed when a
	// file comes. chosen: a file takes a millisecond and more to be written.
	lookEvery = 300 * time.Microsecond
)

func (p *procs) enrolAndRotate(ctx context.Context) {
	k := &keys{run: p, rnd: rand.New(rand.NewPCG(p.Seed, 17)), thief: []int{0, p.f.Nodes - 1}}
	k.tally.CutAt = map[string]int{}
	p.keys, p.res.Keys = k, &k.tally
	for _, step := range []func(context.Context){p.lay, p.startBoards, k.robFirst, k.enrol, k.robLater, k.rotate, k.beginAnew} {
		step(ctx)
	}
}

// pki runs ocsctl pki.
func (k *keys) pki(ctx context.Context, words ...string) {
	step.Got(k.run.once(ctx, "ocsctl", append(append([]string{"pki"}, words...), "-dir", k.run.path("pki"))...))
}

// install puts a file in its place at the planner's, as a whole.
func (k *keys) install(from, name string) {
	step.Must(os.WriteFile(k.run.path("head/"+name+".new"), step.Got(os.ReadFile(from)), 0o600))
	step.Must(os.Rename(k.run.path("head/"+name+".new"), k.run.path("head/"+name)))
}

// hand hands the trust document to the planner, the authorities first, and has a broker of
// its own read its folder again.
func (k *keys) hand() {
	k.install(k.run.path("pki/ca.pem"), "ca.pem")
	k.install(k.run.path("pki/trust.cose"), "trust.cose")
	if c := k.run.runs["broker"]; c != nil {
		step.Must(c.Process.Signal(syscall.SIGHUP))
	}
}

// lay makes the root, the first keys and the tokens, and writes what brokers and planner
// need of them.
func (k *keys) lay(ctx context.Context, planner map[string]any) (broker string) {
	f := k.run.f.Name
	for _, words := range [][]string{{"init", "-fabric", f, "-domain", "cluster.example"}, {"planner", "a", "-days", "30"}, {"operator", "alice", "-role", "admin"},
		{"issuer", "a"}, {"token", fmt.Sprintf("0-%d", k.run.f.Nodes-1), "-out", k.run.path("tokens")}} {
		k.pki(ctx, words...)
	}
	step.Must(os.Mkdir(k.run.path("head"), 0o700))
	for name, from := range map[string]string{"planner.pem": f + "-planner-a.pem", "planner.key": f + "-planner-a.key", "issuer.pem": f + "-issuer-a.pem"} { // any order
		k.install(k.run.path("pki/"+from), name)
	}
	k.hand()
	k.operator("pki")
	maps.Copy(planner, map[string]any{"ca": k.run.path("head/ca.pem"), "cert": k.run.path("head/planner.pem"), "key": k.run.path("head/planner.key"),
		"seal": "enforce", "reports": "sealed", "trust": k.run.path("head/trust.cose"), "issuer": k.run.path("head/issuer.pem")})
	ports := [2]string{freeport.Address(), freeport.Address()}
	k.run.url, k.run.toAgents = "mqtts://"+ports[0], "mqtts://"+ports[1]
	if k.run.Keys.Embedded {
		k.run.toAgents = k.run.url
		delete(planner, "broker")
		planner["listen"] = ports[0]
		return ""
	}
	planner["broker"] = k.run.url
	return k.mosquitto(ctx, ports)
}

// mosquitto is the configuration of ocsctl pki mosquitto, whose folder stays where it is
// made, and what a run of it needs besides.
func (k *keys) mosquitto(ctx context.Context, ports [2]string) string {
	at := k.run.path("pki/mosquitto")
	k.pki(ctx, "mosquitto", "b", "-host", "127.0.0.1", "-at", at, "-listen", ports[1], "-others", ports[0])
	text := step.Got(os.ReadFile(at + "/mosquitto.conf"))
	more := "log_type error\nlog_type warning\nlog_type notice\nlog_type debug\n"
	if os.Getuid() == 0 {
		more += "user root\n" // else it would become one who may not enter here
	}
	return more + string(text)
}

// operator is the identity that asks from now on.
func (k *keys) operator(folder string) {
	file := k.run.path(folder + "/" + k.run.f.Name + "-op-alice")
	k.run.env = []string{"RINGLIGHT_CA=" + k.run.path("head/ca.pem"), "RINGLIGHT_CERT=" + file + ".pem", "RINGLIGHT_KEY=" + file + ".key"}
}

// agentOf is what an agent's configuration has besides.
func (k *keys) agentOf(n int) map[string]any {
	return map[string]any{"seal": "enforce", "reports": "sealed", "token": k.run.path(fmt.Sprintf("tokens/%s-enrol-%d.token", k.run.f.Name, n))}
}

// shelf is what a folder has: of each file its number, which is another one when the
// file is replaced.
type shelf map[string]uint64

func shelfOf(dir string) shelf {
	s := shelf{}
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			s[e.Name()] = info.Sys().(*syscall.Stat_t).Ino ^ uint64(info.ModTime().UnixNano())
		}
	}
	return s
}

// moment is when an agent is killed: a file has come.
type moment struct{ what, file string }

// moments of an enrolment, in their order.
var moments = []moment{{"at any time", ""}, {"a file half written", ".trust-"}, {"its key on disk", "next.key"}, {"authorities on disk", "ca.pem"}, {"trust document on disk", "trust.cose"}, {"certificate on disk", "identity.pem"}}

func (m moment) come(was, is shelf) bool {
	for name, number := range is { // any order: one is enough
		if strings.HasPrefix(name, m.file) && was[name] != number {
			return true
		}
	}
	return false
}

func (k *keys) enrolled(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "identity.pem"))
	return err == nil
}

// cut kills the agents of nodes, each at its moment; they run already. was is what their
// folders had before and does not count; nil: they enrol, and nothing comes after that.
func (k *keys) cut(ctx context.Context, at map[int]moment, was map[int]shelf) {
	var all sync.WaitGroup
	errs := make([]error, k.run.f.Nodes)
	for n, m := range at { // any order: each by itself
		c, any := k.run.runs[agentName(n)], time.Duration(k.rnd.Int64N(int64(300*time.Millisecond)))
		all.Go(func() {
			defer func() { _ = c.Process.Kill() }()
			if m.file == "" {
				time.Sleep(any)
				return
			}
			for end := time.Now().Add(procsService); !m.come(was[n], shelfOf(k.run.folder(n))) && (was != nil || !k.enrolled(k.run.folder(n))); time.Sleep(lookEvery) {
				if time.Now().After(end) || ctx.Err() != nil {
					errs[n] = fmt.Errorf("node %d: no %s within %v", n, m.what, procsService)
					return
				}
			}
		})
	}
	all.Wait()
	for n, m := range at { // any order: each by itself
		k.run.kill(agentName(n))
		k.tally.CutAt[m.what]++
	}
	step.Must(errors.Join(errs...))
}

// cutsOf are the moments at which a node's agent is killed, in their order.
func (k *keys) cutsOf() (list []moment) {
	which := k.rnd.Perm(len(moments))[:min(k.run.Keys.Cuts, len(moments))]
	slices.Sort(which)
	for _, i := range which {
		list = append(list, moments[i])
	}
	return list
}

// enrol lets all nodes enrol, some at a time, each agent killed and begun again; the
// planner is killed too.
func (k *keys) enrol(ctx context.Context) {
	began := time.Now()
	for first := 0; first < k.run.f.Nodes; first += enrolAtOnce {
		cuts := map[int][]moment{}
		for n := first; n < min(first+enrolAtOnce, k.run.f.Nodes); n++ {
			if k.run.runs[agentName(n)] == nil {
				cuts[n] = k.cutsOf()
			}
		}
		for round := range k.run.Keys.Cuts {
			at := map[int]moment{}
			for n, list := range cuts { // any order: each by itself
				if round < len(list) {
					at[n] = list[round]
					k.run.startAgent(n)
				}
			}
			if round == 0 && first == enrolAtOnce {
				k.run.kill("planner")
				k.run.startPlanner()
			}
			k.cut(ctx, at, nil)
		}
		for n := range cuts { // any order: each by itself
			k.run.startAgent(n)
		}
	}
	k.run.serving(ctx)
	// Whoever came again came with the same key: one for each token that was used, and
	// that of a thief that came first.
	if k.tally.Vouched = strings.Count(k.run.printed("planner", 0), `"a key is vouched for"`); k.tally.Vouched != k.run.f.Nodes+1 {
		step.Fail("%d keys were vouched for, want one for each of %d nodes and one thief", k.tally.Vouched, k.run.f.Nodes)
	}
	k.run.done(began, fmt.Sprintf("%d nodes enrol, agents killed %d times each", k.run.f.Nodes, k.run.Keys.Cuts), "killed with %v; the planner once; each node let in with one key; all in service", k.tally.CutAt)
}

// rob starts somebody with a node's token, on a board of his own.
func (k *keys) rob(n int) (name, folder string) {
	name = fmt.Sprintf("thief%d", n)
	board := map[string]any{"kind": "sim", "gpus": k.run.f.GPUsPerNode, "bundles": k.run.f.Bundles, "modules": k.run.Modules, "seed": 5000 + n, "calibrated": false}
	k.run.write(name+".json", k.run.agentOf(n, name, board))
	k.run.start(name, "ocs-agent", "run", "-config", k.run.path(name+".json"))
	return name, k.run.path(name)
}

// alarmed waits until an alarm stands, or stands no more.
func (k *keys) alarmed(ctx context.Context, id string, stands bool) {
	await(ctx, procsService, "alarm "+id, func() (bool, string) {
		has := slices.ContainsFunc(k.run.alarms(ctx), func(a procAlarm) bool { return a.ID == id })
		return has == stands, fmt.Sprintf("stands: %v", has)
	})
}

// robFirst has a thief come before the node: the node is refused, an alarm stands, and by
// what docs/security.md says then the thief is out and the node in.
func (k *keys) robFirst(ctx context.Context) {
	began, n := time.Now(), k.thief[1]
	name, folder := k.rob(n)
	await(ctx, procsService, name, func() (bool, string) { return k.enrolled(folder), "not enrolled" })
	k.run.startAgent(n)
	k.alarmed(ctx, fmt.Sprintf("%d/token-used-twice", n), true)
	holder := fmt.Sprintf("%s/n/%d", k.run.f.Name, n)
	await(ctx, procsService, agentName(n), func() (bool, string) {
		return strings.Contains(k.run.printed(agentName(n), 0), "ocsctl pki revoke "+holder), "is not told what to do"
	})
	k.run.signal(agentName(n), syscall.SIGKILL)
	if k.enrolled(k.run.folder(n)) {
		step.Fail("node %d came second and was let in", n)
	}
	if !k.run.Keys.Embedded { // mosquitto lets him in until his certificate ends, under the node's client id
		k.run.signal(name, syscall.SIGKILL)
	}
	k.pki(ctx, "revoke", holder)
	k.hand()
	k.pki(ctx, "token", fmt.Sprint(n), "-out", k.run.path("again"))
	file := fmt.Sprintf("%s-enrol-%d.token", k.run.f.Name, n)
	step.Must(os.Rename(k.run.path("again/"+file), k.run.path("tokens/"+file)))
	k.hand()
	k.alarmed(ctx, fmt.Sprintf("%d/token-used-twice", n), false)
	k.run.done(began, fmt.Sprintf("a thief comes before node %d", n), "alarm, node told what to do; revoked, another token")
}

// robLater has a thief play a token again that its node has used.
func (k *keys) robLater(ctx context.Context) {
	began, n := time.Now(), k.thief[0]
	name, folder := k.rob(n)
	k.alarmed(ctx, fmt.Sprintf("%d/token-used-twice", n), true)
	k.run.signal(name, syscall.SIGKILL)
	if first := fmt.Sprintf("thief%d", k.thief[1]); k.run.runs[first] != nil { // who knocked all the time
		k.run.signal(first, syscall.SIGKILL)
	}
	if k.enrolled(folder) {
		step.Fail("a thief was let in as node %d", n)
	}
	k.run.serving(ctx)
	k.run.done(began, fmt.Sprintf("a thief plays node %d's token again", n), "refused, alarm; the node is not touched")
}

// sameFile: an agent has the trust document that the root gave out last.
func sameFile(a, b string) bool {
	x, err := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	return err == nil && err2 == nil && slices.Equal(x, y)
}
